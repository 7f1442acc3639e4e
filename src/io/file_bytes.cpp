#include "io/file_bytes.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "io/open_file.h"

namespace nsimplex::io {
namespace {

// Of a file that does not tell its size. It grows from here on, but some in /proc go on for terabytes.
constexpr size_t kFirstRoom = 64 * 1024, kMostUnsized = size_t{1} << 30;

}  // namespace

FileBytes::FileBytes(const std::string& path) {
  const OpenFile file(path);
  // One more than the size, so that an end is seen and not assumed.
  const size_t expected = file.size() > 0 ? static_cast<size_t>(file.size()) + 1 : kFirstRoom;
  // Memory of its own pages: nothing is cleared twice, and vectors of any width can be loaded from it.
  const auto require = [&](void* memory) {
    if (memory == MAP_FAILED) file.fail(std::strerror(errno));
    data_ = static_cast<uint8_t*>(memory);
  };
  require(::mmap(nullptr, expected, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  room_ = expected;
  try {
    for (;;) {
      size_ += static_cast<size_t>(file.read(static_cast<int64_t>(size_), data_ + size_,
                                             static_cast<int64_t>(room_ - size_)));
      if (size_ < room_) break;
      if (size_ > kMostUnsized && file.size() == 0) file.fail(std::strerror(EFBIG));
      require(::mremap(data_, room_, 2 * room_, MREMAP_MAYMOVE));
      room_ *= 2;
    }
    file.require_unchanged();
  } catch (...) {
    ::munmap(data_, room_);
    throw;
  }
}

FileBytes::~FileBytes() { ::munmap(data_, room_); }

std::string read_text(const std::string& path) {
  const FileBytes file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

}  // namespace nsimplex::io
