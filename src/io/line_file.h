#pragma once

#include <nsimplex/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace nsimplex::io {

/// A text file that grows line by line, as the metrics of a run. It holds whole lines only: a line that cannot be stored
/// whole is taken back.
class NSIMPLEX_API LineFile {
 public:
  /// Opens or creates the file and cuts it to its first `keep` bytes. Throws InputError where it is no regular file (a
  /// link is not followed) or cannot be written.
  LineFile(const std::string& path, int64_t keep);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Adds `line` and its end. Throws std::runtime_error where it cannot be stored (a full disk).
  void append(std::string_view line);

  /// Flushes to disk. Throws std::runtime_error.
  void sync();

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace nsimplex::io
