// Declares the bytes of input files, and the errors that name a file.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/printable.h"

namespace nsimplex::io {

/// The bytes of a whole file, in this process' memory, starting at a page boundary.
///
/// This is a copy and not a mapping, so later changes of the file do not affect it. A file that
/// changes while it is read is refused. Special files without a size, such as those below /proc,
/// are read to their end. The path "-" stands for standard input, which is read once and
/// kept until it is another file, so that all objects of this path have the same bytes.
class FileBytes {
 public:
  /// Throws InputError if `path` is missing, unreadable, not a regular file or larger than memory.
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  /// They may be written to; this changes only this object.
  std::span<uint8_t> bytes() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0, room_ = 0;
};

/// The contents of a regular file. Throws InputError as FileBytes does.
std::string read_text(const std::string& path);

/// The largest number of bytes of memory that a parser holds per byte of the file, or per unpacked
/// byte for a compressed file. For example, a graph6 character holds six edges of 16 bytes, and a
/// growing vector holds its numbers up to three times.
inline constexpr int64_t kMostMemory = 320;

/// Bytes to parse and their name in errors: a path, or a path and a part of the file.
///
/// The parsers of this folder take untrusted bytes. For any bytes they either return or throw an
/// InputError, with time and memory proportional to the bytes (to the unpacked bytes for compressed
/// files: at most 1032 times as many, deflate's own limit).
struct Source {
  std::string name;
  std::span<const uint8_t> bytes;

  /// Throws InputError "cannot read NAME: WHY".
  [[noreturn]] void fail(const std::string& why) const;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool starts_with(std::string_view magic) const { return text().starts_with(magic); }

  /// `count` bytes from `begin` on; fails as truncated if there are fewer.
  std::span<const uint8_t> part(uint64_t begin, uint64_t count) const;

  /// A little-endian number of 1 to 8 bytes.
  uint64_t little(uint64_t begin, int count) const;

  /// A part of these bytes under its own name.
  Source inner(const std::string& part_name, std::span<const uint8_t> part_bytes) const {
    return {name + ", " + part_name, part_bytes};
  }
};

/// A regular file that is open for reading, with its state at that time.
class OpenFile {
 public:
  /// Throws InputError if `path` is missing, unreadable or not a regular file.
  explicit OpenFile(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int64_t size() const { return size_; }

  /// Reads up to `count` bytes from `offset` on; fewer only at the end of the file. Several threads
  /// may call it.
  int64_t read(int64_t offset, void* to, int64_t count) const;

  /// Throws InputError if the file's size or time of change differs from when it was opened. A
  /// special file without a size may change.
  void require_unchanged() const;

  /// Throws InputError "cannot read PATH: WHY".
  [[noreturn]] void fail(const std::string& why) const;

 private:
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0, changed_seconds_ = 0, changed_nanoseconds_ = 0;
};

}  // namespace nsimplex::io
