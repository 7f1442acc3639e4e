#pragma once

#include <nsimplex/export.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace nsimplex::io {

/// What has just happened to a file that is being replaced, in this order.
enum class WriteStage { opened, written, synced, renamed, folder_synced };

/// Replaces a file as a whole or not at all: the bytes go to `<path>.tmp` in the same folder, which
/// commit() flushes to disk and renames over `path`; the folder is flushed last. After a crash at
/// any point `path` holds either the old or the new contents. The temporary file is created
/// exclusively; whatever has its name goes first, a link and not what it leads to. Two writers of
/// one path at a time are the caller's mistake.
class NSIMPLEX_API AtomicFile {
 public:
  /// Throws InputError when no file can be created beside `path`, or `path` is a folder, a named
  /// pipe or a device. A link at `path` is replaced.
  explicit AtomicFile(std::string path);

  /// Removes the temporary file unless commit() was reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws std::runtime_error when the bytes cannot be stored (a full disk).
  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// Makes the new contents visible and durable. Throws std::runtime_error.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int file_ = -1;
};

/// Removes the temporary file of the AtomicFile that was made last and is not finished, if there is one. For a signal
/// handler that ends the process: it only calls unlink().
NSIMPLEX_API void abandon_temporary();

/// Replaces `path` by `text` as AtomicFile does.
NSIMPLEX_API void write_text(const std::string& path, std::string_view text);

/// Called after each stage of every AtomicFile of this process, for tests that end the process
/// there. An empty function removes it. Not to be set while files are being written.
NSIMPLEX_API void set_write_observer(
    std::function<void(WriteStage, const std::string& path)> observer);

}  // namespace nsimplex::io
