#pragma once

#include "cli/options.h"

namespace nsimplex::cli {

/// Name of the file with sizes and checksums of the files that a run reads.
inline constexpr char kInputsFile[] = "inputs.json";

/// Writes the sizes and checksums of `options.inputs` into the folder of a new run.
void write_inputs(const CommonOptions& options);

/// Throws InputError with the name of the first input that is not as it was when the run in
/// `options.resume` began. A run without kInputsFile, of an earlier version, is not checked.
void check_inputs(const CommonOptions& options);

}  // namespace nsimplex::cli
