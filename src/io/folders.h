#pragma once

#include <nsimplex/export.h>

#include <string>

namespace nsimplex::io {

/// Flushes the names that the folder of `path` holds: a file that was created or renamed there is then found after a
/// crash. Throws std::runtime_error.
NSIMPLEX_API void sync_folder_of(const std::string& path);

/// Creates `path` and what is missing above it, and flushes the names. Throws InputError.
NSIMPLEX_API void create_folders(const std::string& path);

}  // namespace nsimplex::io
