#pragma once

#include <cstdint>
#include <string>

namespace nsimplex::io {

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
