#include "causal/pipeline/pipeline_file.h"

#include <ATen/ATen.h>

#include "support/error.h"

namespace nsimplex::causal {
namespace {

constexpr char kFormat[] = "nsimplex causal pipeline 2";

}  // namespace

void write_pipeline_file(const std::string& path, const PipelineFile& file) {
  io::write_safetensors(path, {file.tensors, {{"format", kFormat}, {"pipeline", file.text}}});
}

PipelineFile read_pipeline_file(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path);
  const auto format = file.metadata.find("format");
  const auto text = file.metadata.find("pipeline");
  if (format == file.metadata.end() || format->second != kFormat || text == file.metadata.end()) {
    throw InputError(std::string("cannot read ")
                         .append(path)
                         .append(": expected format \"")
                         .append(kFormat)
                         .append("\""));
  }
  PipelineFile result{text->second, {}};
  for (const io::NamedTensor& each : file.tensors) {
    result.tensors.push_back({each.name, each.tensor.clone()});
  }
  return result;
}

}  // namespace nsimplex::causal
