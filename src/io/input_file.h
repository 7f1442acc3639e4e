#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/printable.h"

namespace nsimplex::io {

/// The bytes of a whole file, in memory of this process from a page's beginning on.
///
/// It is a copy and not a mapping: whatever happens to the file afterwards, what was read stays. A file that changes
/// while it is read is refused. Special files without a size, as those below /proc, are read to their end.
class FileBytes {
 public:
  /// Throws InputError when `path` is missing, unreadable, not a regular file or larger than memory.
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  /// They may be written to, which changes nothing but this object.
  std::span<uint8_t> bytes() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0, room_ = 0;
};

/// The contents of a regular file. Throws InputError as FileBytes does.
std::string read_text(const std::string& path);

/// At the peak a parser holds so many bytes of memory for each byte of the file (for each byte that
/// it unpacks to, for a compressed one): a graph6 character holds six edges of 16 bytes, and a
/// vector that grows holds its numbers up to three times.
inline constexpr int64_t kMostMemory = 320;

/// Bytes to be parsed and the name that errors give them: a path, or a path and a part of the file.
///
/// The parsers of this folder take untrusted bytes: whatever these are, they return or throw an
/// InputError, in time and memory proportional to the bytes (to what the bytes unpack to, for
/// compressed ones: at most 1032 times as many, deflate's own limit).
struct Source {
  std::string name;
  std::span<const uint8_t> bytes;

  /// Throws InputError "cannot read NAME: WHY".
  [[noreturn]] void fail(const std::string& why) const;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool starts_with(std::string_view magic) const { return text().starts_with(magic); }

  /// `count` bytes from `begin` on; fails as truncated where there are not so many.
  std::span<const uint8_t> part(uint64_t begin, uint64_t count) const;

  /// A little-endian number of 1 to 8 bytes.
  uint64_t little(uint64_t begin, int count) const;

  /// A part of these bytes under a name of its own.
  Source inner(const std::string& part_name, std::span<const uint8_t> part_bytes) const {
    return {name + ", " + part_name, part_bytes};
  }
};

/// A regular file that is open for reading, and what it looked like then.
class OpenFile {
 public:
  /// Throws InputError when `path` is missing, unreadable or not a regular file.
  explicit OpenFile(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int64_t size() const { return size_; }

  /// Reads up to `count` bytes from `offset` on; fewer at the end of the file alone. May be called by several threads.
  int64_t read(int64_t offset, void* to, int64_t count) const;

  /// Throws InputError when the file has another size or time of change than it had when it was opened. One without a
  /// size is special and may change.
  void require_unchanged() const;

  /// Throws InputError "cannot read PATH: WHY".
  [[noreturn]] void fail(const std::string& why) const;

 private:
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0, changed_seconds_ = 0, changed_nanoseconds_ = 0;
};

}  // namespace nsimplex::io
