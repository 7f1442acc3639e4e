#include "io/folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "support/error.h"

namespace nsimplex::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& folder) {
  throw std::runtime_error("cannot write " + folder.string() + ": " + std::strerror(errno));
}

}  // namespace

void sync_folder_of(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) fail(folder);
  const int status = ::fsync(handle);
  const int error = errno;
  ::close(handle);
  errno = error;
  // Some network file systems cannot flush a folder and say EINVAL; nothing more can be done there.
  if (status != 0 && error != EINVAL) fail(folder);
}

void create_folders(const std::string& path) {
  fs::path made;
  for (const fs::path& part : fs::path(path).lexically_normal()) {
    made /= part;
    std::error_code error;
    if (part.empty() || !fs::create_directory(made, error)) {
      if (error) throw InputError("cannot create '" + path + "': " + error.message());
      continue;
    }
    sync_folder_of(made);
  }
}

}  // namespace nsimplex::io
