#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"

namespace nsimplex::io {

MappedFile::MappedFile(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw InputError("cannot read " + path + ": " + why);
  };
  // Non-blocking, so that opening a named pipe by mistake fails below instead of waiting for a
  // writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(std::strerror(errno));
  struct stat facts{};
  const bool known = ::fstat(file, &facts) == 0;
  void* memory = nullptr;
  if (known && S_ISREG(facts.st_mode) && facts.st_size > 0) {
    memory = ::mmap(nullptr, facts.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  }
  const int error = errno;
  ::close(file);
  if (!known || memory == MAP_FAILED) fail(std::strerror(error));
  if (S_ISDIR(facts.st_mode)) fail("is a folder");
  if (!S_ISREG(facts.st_mode)) fail("is not a regular file");
  data_ = static_cast<uint8_t*>(memory);
  size_ = static_cast<size_t>(facts.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::string read_text(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

}  // namespace nsimplex::io
