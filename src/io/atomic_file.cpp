#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "io/folders.h"
#include "support/error.h"

namespace nsimplex::io {
namespace {

std::function<void(WriteStage, const std::string&)>& observer() {
  static std::function<void(WriteStage, const std::string&)> function;
  return function;
}

// The name of the temporary file that a signal would leave behind.
std::atomic<const char*> unfinished{nullptr};
static_assert(std::atomic<const char*>::is_always_lock_free);  // as a signal handler needs it

void reached(WriteStage stage, const std::string& path) {
  if (observer()) observer()(stage, path);
}

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
}

// What stands at `path` and is no file is not replaced; a link is, and not what it leads to.
void require_replaceable(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode))
    return;
  throw InputError("cannot write " + path + ": it is not a regular file");
}

// A new file that nobody else has opened. What has its name already was left over by a writer that ended, or is a link
// that would lead elsewhere: it goes, and not what it leads to.
int create_exclusively(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int file = ::open(path.c_str(), kFlags, 0666);
  if (file >= 0 || errno != EEXIST || ::unlink(path.c_str()) != 0) return file;
  return ::open(path.c_str(), kFlags, 0666);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  require_replaceable(path_);
  unfinished.store(temporary_.c_str());
  file_ = create_exclusively(temporary_);
  if (file_ < 0) {
    unfinished.store(nullptr);
    throw InputError("cannot write " + path_ + ": " + std::strerror(errno));
  }
  reached(WriteStage::opened, path_);
}

AtomicFile::~AtomicFile() {
  unfinished.store(nullptr);
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
  unfinished.store(nullptr);
  ::close(std::exchange(file_, -1));
  reached(WriteStage::renamed, path_);
  sync_folder_of(path_);
  reached(WriteStage::folder_synced, path_);
}

void abandon_temporary() {
  if (const char* const path = unfinished.load()) ::unlink(path);
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
