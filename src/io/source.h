#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/printable.h"

namespace nsimplex::io {

/// At the peak a parser holds so many bytes of memory for each byte of the file (for each byte that
/// it unpacks to, for a compressed one): a graph6 character holds six edges of 16 bytes, and a
/// vector that grows holds its numbers up to three times.
inline constexpr int64_t kMostMemory = 320;

/// Bytes to be parsed and the name that errors give them: a path, or a path and a part of the file.
///
/// The parsers of this folder take untrusted bytes: whatever these are, they return or throw an
/// InputError, in time and memory proportional to the bytes (to what the bytes unpack to, for
/// compressed ones: at most 1032 times as many, deflate's own limit).
struct Source {
  std::string name;
  std::span<const uint8_t> bytes;

  /// Throws InputError "cannot read NAME: WHY".
  [[noreturn]] void fail(const std::string& why) const;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool starts_with(std::string_view magic) const { return text().starts_with(magic); }

  /// `count` bytes from `begin` on; fails as truncated where there are not so many.
  std::span<const uint8_t> part(uint64_t begin, uint64_t count) const;

  /// A little-endian number of 1 to 8 bytes.
  uint64_t little(uint64_t begin, int count) const;

  /// A part of these bytes under a name of its own.
  Source inner(const std::string& part_name, std::span<const uint8_t> part_bytes) const {
    return {name + ", " + part_name, part_bytes};
  }
};

}  // namespace nsimplex::io
