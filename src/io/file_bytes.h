#pragma once

#include <nsimplex/export.h>

#include <cstdint>
#include <span>
#include <string>

namespace nsimplex::io {

/// The bytes of a whole file, in memory of this process from a page's beginning on.
///
/// It is a copy and not a mapping: whatever happens to the file afterwards, what was read stays. A file that changes
/// while it is read is refused. Special files without a size, as those below /proc, are read to their end.
class NSIMPLEX_API FileBytes {
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
NSIMPLEX_API std::string read_text(const std::string& path);

}  // namespace nsimplex::io
