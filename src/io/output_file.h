// Declares output files that are whole or absent, lines that survive a crash, and locked folders.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace nsimplex::io {

/// Flushes the folder of `path`, so that a file that was created or renamed there is found after a
/// crash. Throws std::runtime_error.
void sync_folder_of(const std::string& path);

/// Creates `path` and its missing parents, and flushes the folders. Throws InputError.
void create_folders(const std::string& path);

/// Locks a folder for this process, so that two runs never write the same files. The lock ends with
/// the object or the process, however that ends. It leaves no file behind.
class FolderLock {
 public:
  /// Throws InputError if the folder cannot be opened or another process holds it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int handle_;
};

/// The stages of replacing a file, in this order.
enum class WriteStage { opened, written, synced, renamed, folder_synced };

/// Replaces a file either completely or not at all. The bytes go to `<path>.tmp` in the same
/// folder. commit() flushes this file to disk, renames it to `path` and then flushes the folder.
/// After a crash at any point `path` holds either the old or the new contents. The temporary file
/// is created exclusively; an existing file of its name is removed first (a link itself, and not
/// its target). Two writers of one path at the same time are the caller's mistake.
class AtomicFile {
 public:
  /// Throws InputError if no file can be created beside `path`, or if `path` is a folder, a named
  /// pipe or a device. A link at `path` is replaced.
  explicit AtomicFile(std::string path);

  /// Removes the temporary file unless commit() was reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws std::runtime_error if the bytes cannot be stored (a full disk).
  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// Makes the new contents visible and durable. Throws std::runtime_error.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int file_ = -1;
};

/// Removes the temporary file of the latest unfinished AtomicFile, if there is one. It is for a
/// signal handler that ends the process: it only calls unlink().
void abandon_temporary();

/// Replaces `path` by `text` as AtomicFile does.
void write_text(const std::string& path, std::string_view text);

/// Sets a function that is called after each stage of every AtomicFile of this process, for tests
/// that end the process there. An empty function removes it. Do not call this while files are being
/// written.
void set_write_observer(std::function<void(WriteStage, const std::string& path)> observer);

/// A text file that grows line by line, such as the metrics of a run. It holds whole lines only: a
/// line that cannot be stored completely is removed again.
class LineFile {
 public:
  /// Opens or creates the file and cuts it to its first `keep` bytes. Throws InputError if it is
  /// not a regular file (links are not followed) or cannot be written.
  LineFile(const std::string& path, int64_t keep);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Adds `line` and a line end. Throws std::runtime_error if it cannot be stored (a full disk).
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
