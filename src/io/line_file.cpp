#include "io/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "support/error.h"

namespace nsimplex::io {

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
