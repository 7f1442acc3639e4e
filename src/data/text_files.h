#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nsimplex::data {

/// The bytes of one text, read from its file or from standard input: a copy, which a change of the file does not reach.
struct Text {
  std::string name;  ///< path, or "-"
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;  ///< of the bytes
};

/// Opens texts for training or evaluation, in the order given.
///
/// Each source is a file, a folder, or "-" for standard input. A folder means every file below it
/// whose name (or, where `glob` has a slash, whose path below the folder) matches `glob`, in the
/// byte order of the paths; names that begin with a dot, links to folders, empty files and binary
/// files are left out. A file is binary when its first 64 KiB hold a zero byte.
///
/// Throws InputError that names the source when it is missing, unreadable, empty or binary, or when
/// nothing in a folder is text.
std::vector<Text> open_texts(const std::vector<std::string>& sources,
                             const std::string& glob = "*");

}  // namespace nsimplex::data
