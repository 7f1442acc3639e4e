#pragma once

namespace nsimplex::cli {

/// The Python interpreter that this build took torch from, which has what the report needs; empty for a build whose
/// interpreter is not on the machine where it runs: a wheel, or a LibTorch without Python.
extern const char* const kBuildPython;

}  // namespace nsimplex::cli
