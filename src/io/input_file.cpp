// Holds a file or standard input in memory, and notices a file that changes while it is in use.

#include "io/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "support/error.h"

namespace nsimplex::io {
namespace {

// For a file that does not report its size. The buffer grows from here, up to a limit because some
// files in /proc never end.
constexpr size_t kFirstRoom = size_t{64} * 1024, kMostUnsized = size_t{1} << 30;

constexpr const char* kStandardInput = "-";

std::vector<uint8_t> read_standard_input() {
  constexpr size_t kChunk = size_t{1} << 20;
  std::vector<uint8_t> bytes;
  for (size_t filled = 0;;) {
    bytes.resize(filled + kChunk);
    const ssize_t count = ::read(STDIN_FILENO, bytes.data() + filled, kChunk);
    if (count < 0 && errno != EINTR) {
      throw InputError(std::string("cannot read standard input: ") + std::strerror(errno));
    }
    filled += static_cast<size_t>(std::max<ssize_t>(count, 0));
    bytes.resize(filled);
    if (count == 0) return bytes;
  }
}

// What came on standard input. It can be read only once, so it is kept until standard input is
// another file.
std::shared_ptr<const std::vector<uint8_t>> standard_input() {
  static std::mutex mutex;
  static std::shared_ptr<const std::vector<uint8_t>> kept;
  static struct stat kept_of{};
  const std::lock_guard lock(mutex);
  struct stat facts{};
  if (::fstat(STDIN_FILENO, &facts) != 0) {
    throw InputError(std::string("cannot read standard input: ") + std::strerror(errno));
  }
  const bool same = facts.st_dev == kept_of.st_dev && facts.st_ino == kept_of.st_ino;
  if (!kept || !same) {
    kept = std::make_shared<const std::vector<uint8_t>>(read_standard_input());
    kept_of = facts;
  }
  return kept;
}

// Separate pages: nothing is cleared twice, and vectors of any width can be loaded from them.
void* new_pages(size_t size) {
  return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

FileBytes::FileBytes(const std::string& path) {
  if (path == kStandardInput) {
    const auto bytes = standard_input();
    void* const memory = new_pages(bytes->size() + 1);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(memory);
    room_ = bytes->size() + 1;
    size_ = bytes->size();
    std::ranges::copy(*bytes, data_);
    return;
  }
  const OpenFile file(path);
  // One byte more than the size, so that the end is seen and not assumed.
  const size_t expected = file.size() > 0 ? static_cast<size_t>(file.size()) + 1 : kFirstRoom;
  const auto require = [&](void* memory) {
    if (memory == MAP_FAILED) file.fail(std::strerror(errno));
    data_ = static_cast<uint8_t*>(memory);
  };
  require(new_pages(expected));
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

void Source::fail(const std::string& why) const {
  throw InputError("cannot read " + (name == kStandardInput ? "standard input" : name) + ": " +
                   why);
}

std::span<const uint8_t> Source::part(uint64_t begin, uint64_t count) const {
  if (begin > bytes.size() || count > bytes.size() - begin) {
    fail("truncated: " + std::to_string(count) + " bytes expected from byte " +
         std::to_string(begin) + " on, there are " + std::to_string(bytes.size()) + " in all");
  }
  return bytes.subspan(begin, count);
}

uint64_t Source::little(uint64_t begin, int count) const {
  uint64_t number = 0;
  int shift = 0;
  for (const uint8_t byte : part(begin, count)) {
    number |= uint64_t{byte} << shift;
    shift += 8;
  }
  return number;
}

OpenFile::OpenFile(const std::string& path) : path_(path) {
  // The system would take the part before it as the path.
  if (path.find('\0') != std::string::npos) fail("a path with a zero byte");
  // Non-blocking, so that a named pipe is refused below instead of waiting for a writer.
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
  // Linux reads at most 2 GiB - 4 KiB per call.
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
