// Declares facts about the build: the Python interpreter, the compiler and the commit.

#pragma once

namespace nsimplex::cli {

/// The Python interpreter from which this build took torch, which has the packages that the report
/// needs. It is empty if the interpreter is not on the machine where the build runs: for a wheel,
/// or a LibTorch without Python.
extern const char* const kBuildPython;

/// The compiler and its version: "GNU 12.2.0".
extern const char* const kBuildCompiler;

/// The abbreviated commit, with "-dirty" if files differed from it; "unknown" outside a repository.
extern const char* const kBuildCommit;

}  // namespace nsimplex::cli
