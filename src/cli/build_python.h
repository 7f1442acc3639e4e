#pragma once

namespace nsimplex::cli {

/// The Python interpreter from which this build took torch, which has the packages that the report
/// needs. It is empty if the interpreter is not on the machine where the build runs: for a wheel,
/// or a LibTorch without Python.
extern const char* const kBuildPython;

}  // namespace nsimplex::cli
