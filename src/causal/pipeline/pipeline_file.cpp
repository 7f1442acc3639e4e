// The files of a pipeline, and the operators of Python's pipeline, which keeps parameters and state
// itself and shares only the files.

#include "causal/pipeline/pipeline_file.h"

#include <ATen/ATen.h>
#include <torch/library.h>

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

namespace {

using at::Tensor;

void write(std::string_view path, std::string_view text, const std::vector<std::string>& names,
           at::TensorList tensors) {
  PipelineFile file{std::string(text), {}};
  TORCH_CHECK_VALUE(names.size() == tensors.size(), "[causal_pipeline] tensors: expected ",
                    names.size(), ", got ", tensors.size());
  for (size_t each = 0; each < names.size(); ++each) {
    file.tensors.push_back({names[each], tensors[each]});
  }
  write_pipeline_file(std::string(path), file);
}

std::tuple<std::string, std::vector<std::string>, std::vector<Tensor>> read(std::string_view path) {
  PipelineFile file;
  try {
    file = read_pipeline_file(std::string(path));
  } catch (const InputError& error) {
    C10_THROW_ERROR(ValueError, error.what());
  }
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (io::NamedTensor& each : file.tensors) {
    names.push_back(each.name);
    tensors.push_back(std::move(each.tensor));
  }
  return {file.text, names, tensors};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("causal_pipeline_write(str path, str text, str[] names, Tensor[] tensors) -> ()",
        TORCH_FN(write));
  m.def("causal_pipeline_read(str path) -> (str, str[], Tensor[])", TORCH_FN(read));
}

}  // namespace
}  // namespace nsimplex::causal
