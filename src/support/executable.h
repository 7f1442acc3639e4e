#pragma once

#include <filesystem>

namespace nsimplex {

/// The folder of the running program's file; empty if the system does not tell.
inline std::filesystem::path executable_folder() {
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : executable.parent_path();
}

}  // namespace nsimplex
