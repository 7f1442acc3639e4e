#include "io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"

namespace nsimplex::io {

FolderLock::FolderLock(const std::string& folder)
    : handle_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (handle_ < 0) throw InputError("cannot open " + folder + ": " + std::strerror(errno));
  if (::flock(handle_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(handle_);
  // A file system without locks is no reason not to run.
  handle_ = -1;
  if (error == EWOULDBLOCK) throw InputError(folder + " is in use by another process");
}

FolderLock::~FolderLock() {
  if (handle_ >= 0) ::close(handle_);
}

}  // namespace nsimplex::io
