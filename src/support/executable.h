// Finds the folder of the running program.

#pragma once

#include <dlfcn.h>
#include <link.h>

#include <filesystem>

namespace nsimplex {

/// The folder of the program's file, bin/; empty if the system does not tell. Code of a library in
/// lib/ that a Python process has loaded gets the folder bin/ beside it.
inline std::filesystem::path executable_folder() {
  Dl_info object;
  void* map = nullptr;
  const auto* const here = reinterpret_cast<const void*>(&executable_folder);
  if (dladdr1(here, &object, &map, RTLD_DL_LINKMAP) != 0 && map != nullptr) {
    const std::filesystem::path library = static_cast<const link_map*>(map)->l_name;
    if (!library.empty()) return library.parent_path().parent_path() / "bin";  // else the program
  }
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : executable.parent_path();
}

}  // namespace nsimplex
