#include "io/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "support/error.h"

namespace nsimplex::io {

OpenFile::OpenFile(const std::string& path) : path_(path) {
  // The system would take what is before it for the path.
  if (path.find('\0') != std::string::npos) fail("a path with a zero byte");
  // Non-blocking, so that opening a named pipe by mistake fails below instead of waiting for a writer.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) fail(std::strerror(errno));
  struct stat facts{};
  const char* why = ::fstat(file_, &facts) != 0 ? std::strerror(errno)
                    : S_ISDIR(facts.st_mode)    ? "is a folder"
                    : !S_ISREG(facts.st_mode)   ? "is not a regular file"
                                                : nullptr;
  if (why) {
    ::close(file_);
    fail(why);
  }
  size_ = facts.st_size;
  changed_seconds_ = facts.st_mtim.tv_sec;
  changed_nanoseconds_ = facts.st_mtim.tv_nsec;
}

OpenFile::~OpenFile() { ::close(file_); }

int64_t OpenFile::read(int64_t offset, void* to, int64_t count) const {
  // Linux reads at most 2 GiB - 4 KiB a call.
  constexpr int64_t kLargest = int64_t{1} << 30;
  int64_t filled = 0;
  while (filled < count) {
    const ssize_t got =
        ::pread(file_, static_cast<char*>(to) + filled,
                static_cast<size_t>(std::min(count - filled, kLargest)), offset + filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(std::strerror(errno));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

void OpenFile::require_unchanged() const {
  struct stat facts{};
  if (::fstat(file_, &facts) != 0) fail(std::strerror(errno));
  if (size_ == 0 && facts.st_size == 0) return;
  if (facts.st_size != size_ || facts.st_mtim.tv_sec != changed_seconds_ ||
      facts.st_mtim.tv_nsec != changed_nanoseconds_) {
    fail("it was changed while it was in use");
  }
}

void OpenFile::fail(const std::string& why) const {
  throw InputError("cannot read " + path_ + ": " + why);
}

}  // namespace nsimplex::io
