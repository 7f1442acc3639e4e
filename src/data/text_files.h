// Declares texts for training and evaluation.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nsimplex::data {

/// The bytes of one text, read from its file or from standard input: a copy, which later changes of
/// the file do not affect.
struct Text {
  std::string name;  ///< path, or "-"
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;  ///< of the bytes
};

/// Opens texts for training or evaluation, in the order given.
///
/// Each source is a file, a folder, or "-" for standard input. A folder stands for every file below
/// it whose name matches `glob` (or whose path below the folder does, if `glob` has a slash), in
/// the byte order of the paths. Names that begin with a dot, links to folders, empty files and
/// binary files are left out. A file is binary if its first 64 KiB hold a zero byte.
///
/// Throws InputError that names the source if it is missing, unreadable, empty or binary, or if a
/// folder has no text.
std::vector<Text> open_texts(const std::vector<std::string>& sources,
                             const std::string& glob = "*");

}  // namespace nsimplex::data
