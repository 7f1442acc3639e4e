#pragma once

#include <nsimplex/export.h>

#include <string>

namespace nsimplex::io {

/// Holds a folder for this process, so that two runs never write the same files. Ends with the
/// object or the process, however that ends; leaves no file behind.
class NSIMPLEX_API FolderLock {
 public:
  /// Throws InputError when the folder cannot be opened or another process holds it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int handle_;
};

}  // namespace nsimplex::io
