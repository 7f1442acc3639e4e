// Declares the file of a pipeline.

#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "io/safetensors.h"

namespace nsimplex::causal {

/// A saved pipeline: a safetensors file with named tensors and a JSON text with all other data,
/// {"parameters": {..}, "names": [..], "columns": [..], "model": ".."}, as far as it was fitted.
struct PipelineFile {
  std::string text;
  std::vector<io::NamedTensor> tensors;
};

void write_pipeline_file(const std::string& path, const PipelineFile& file);

/// The tensors are copies. Throws InputError if the file is not a pipeline.
PipelineFile read_pipeline_file(const std::string& path);

}  // namespace nsimplex::causal
