#pragma once

#include <nsimplex/export.h>

#include <cstdint>
#include <span>
#include <string>

namespace nsimplex::io {

/// A whole regular file mapped into memory, pages read on first touch.
///
/// The mapping is private: what is written into it stays in this process. A file that is replaced
/// by a rename keeps its mapped contents; one that is truncated in place while mapped must not be
/// touched.
class NSIMPLEX_API MappedFile {
 public:
  /// Throws InputError when `path` is missing, unreadable or not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<uint8_t> bytes() const { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// The contents of a regular file. Throws InputError as MappedFile does.
NSIMPLEX_API std::string read_text(const std::string& path);

}  // namespace nsimplex::io
