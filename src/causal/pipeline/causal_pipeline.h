#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::causal {

/// A saved pipeline: a safetensors file with tensors by name and a JSON text that says the rest,
/// {"parameters": {..}, "names": [..], "columns": [..], "model": ".."}, as far as it was fitted.
struct PipelineFile {
  std::string text;
  std::vector<io::NamedTensor> tensors;
};

void write_pipeline_file(const std::string& path, const PipelineFile& file);

/// Tensors are copies. InputError where the file is something else.
PipelineFile read_pipeline_file(const std::string& path);

}  // namespace nsimplex::causal
