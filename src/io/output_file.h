#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace nsimplex::io {

/// Flushes the names that the folder of `path` holds: a file that was created or renamed there is then found after a
/// crash. Throws std::runtime_error.
void sync_folder_of(const std::string& path);

/// Creates `path` and what is missing above it, and flushes the names. Throws InputError.
void create_folders(const std::string& path);

/// Holds a folder for this process, so that two runs never write the same files. Ends with the
/// object or the process, however that ends; leaves no file behind.
class FolderLock {
 public:
  /// Throws InputError when the folder cannot be opened or another process holds it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int handle_;
};

/// What has just happened to a file that is being replaced, in this order.
enum class WriteStage { opened, written, synced, renamed, folder_synced };

/// Replaces a file as a whole or not at all: the bytes go to `<path>.tmp` in the same folder, which
/// commit() flushes to disk and renames over `path`; the folder is flushed last. After a crash at
/// any point `path` holds either the old or the new contents. The temporary file is created
/// exclusively; whatever has its name goes first, a link and not what it leads to. Two writers of
/// one path at a time are the caller's mistake.
class AtomicFile {
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
void abandon_temporary();

/// Replaces `path` by `text` as AtomicFile does.
void write_text(const std::string& path, std::string_view text);

/// Called after each stage of every AtomicFile of this process, for tests that end the process
/// there. An empty function removes it. Not to be set while files are being written.
void set_write_observer(std::function<void(WriteStage, const std::string& path)> observer);

/// A text file that grows line by line, as the metrics of a run. It holds whole lines only: a line that cannot be stored
/// whole is taken back.
class LineFile {
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
