// Locks folders, replaces files atomically and appends lines that survive a crash.

#include "io/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

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
  // Some network file systems cannot flush a folder and return EINVAL. Nothing more can be done
  // then.
  if (status != 0 && error != EINVAL) fail(folder);
}

void create_folders(const std::string& path) {
  fs::path made;
  for (const fs::path& part : fs::path(path).lexically_normal()) {
    made /= part;
    std::error_code error;
    if (part.empty() || !fs::create_directory(made, error)) {
      // There may be a file, and "File exists" would say too little about it.
      if (error == std::errc::file_exists) error = std::make_error_code(std::errc::not_a_directory);
      if (error) throw InputError("cannot create '" + path + "': " + error.message());
      continue;
    }
    sync_folder_of(made);
  }
}

FolderLock::FolderLock(const std::string& folder)
    : handle_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (handle_ < 0) throw InputError("cannot open " + folder + ": " + std::strerror(errno));
  if (::flock(handle_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(handle_);
  // A file system without locks is no reason to stop.
  handle_ = -1;
  if (error == EWOULDBLOCK) throw InputError(folder + " is in use by another process");
}

FolderLock::~FolderLock() {
  if (handle_ >= 0) ::close(handle_);
}

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

// Something at `path` that is not a file is not replaced. A link itself is replaced, and not its
// target.
void require_replaceable(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode) || S_ISLNK(facts.st_mode))
    return;
  throw InputError("cannot write " + path + ": it is not a regular file");
}

// Creates a new file that nobody else has opened. An existing file of that name was left over by a
// writer that ended, or is a link to another place. It is removed; the target of a link is not.
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
  // Linux writes at most 2 GiB - 4 KiB per call.
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

LineFile::LineFile(const std::string& path, int64_t keep) : path_(path), size_(keep) {
  // Non-blocking, so that a named pipe is refused below instead of waiting for a reader.
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                 0666);
  const char* why = nullptr;
  struct stat facts{};
  if (file_ < 0) {
    why = errno == ELOOP   ? "it is a link"
          : errno == ENXIO ? "it is not a regular file"
                           : std::strerror(errno);
  } else if (::fstat(file_, &facts) != 0) {
    why = std::strerror(errno);
  } else if (!S_ISREG(facts.st_mode)) {
    why = "it is not a regular file";
  } else if (::ftruncate(file_, keep) != 0) {
    why = std::strerror(errno);
  }
  if (!why) return;
  if (file_ >= 0) ::close(file_);
  throw InputError("cannot write " + path + ": " + why);
}

LineFile::~LineFile() { ::close(file_); }

void LineFile::append(std::string_view line) {
  const std::string whole = std::string(line).append("\n");
  for (size_t done = 0; done < whole.size();) {
    const ssize_t count = ::write(file_, whole.data() + done, whole.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = errno;
      [[maybe_unused]] const int status = ::ftruncate(file_, size_);
      errno = error;
      fail();
    }
    done += static_cast<size_t>(count);
  }
  size_ += static_cast<int64_t>(whole.size());
}

void LineFile::sync() {
  if (::fsync(file_) != 0) fail();
}

void LineFile::fail() const {
  throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
}

}  // namespace nsimplex::io
