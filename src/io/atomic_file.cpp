#include "io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "support/error.h"

namespace nsimplex::io {
namespace {

std::function<void(WriteStage, const std::string&)>& observer() {
  static std::function<void(WriteStage, const std::string&)> function;
  return function;
}

void reached(WriteStage stage, const std::string& path) {
  if (observer()) observer()(stage, path);
}

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

// A rename is durable only when the folder that holds the name is on disk.
void sync_folder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
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

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) throw InputError("cannot write " + path_ + ": " + std::strerror(errno));
  reached(WriteStage::opened, path_);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  // Linux writes at most 2 GiB - 4 KiB a call.
  constexpr size_t kLargest = size_t{1} << 30;
  for (const char* next = static_cast<const char*>(data); size > 0;) {
    const ssize_t count = ::write(file_, next, std::min(size, kLargest));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(path_);
    next += count;
    size -= static_cast<size_t>(count);
  }
}

void AtomicFile::commit() {
  reached(WriteStage::written, path_);
  if (::fsync(file_) != 0) fail(path_);
  reached(WriteStage::synced, path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_);
  ::close(std::exchange(file_, -1));
  reached(WriteStage::renamed, path_);
  sync_folder(path_);
  reached(WriteStage::folder_synced, path_);
}

void write_text(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void set_write_observer(std::function<void(WriteStage, const std::string&)> function) {
  observer() = std::move(function);
}

}  // namespace nsimplex::io
