#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// Checksums of a safetensors file, as text in its "__metadata__", where other readers leave them alone.

namespace nsimplex::io {

/// Of the tensors: a JSON object with the checksum of each tensor's bytes by its name.
inline constexpr std::string_view kTensorChecksums = "tensor_checksums";
/// Of the bytes before the data: the header's length and the header, this value being eight zeros.
inline constexpr std::string_view kHeaderChecksum = "header_checksum";
inline constexpr std::string_view kNoChecksum = "00000000";

/// CRC-32 (the polynomial of zlib) in eight hexadecimal digits: every change of up to 32 bits in a row is seen.
std::string checksum(std::span<const uint8_t> bytes);

/// Puts the checksum into a header whose metadata have kNoChecksum under kHeaderChecksum. `head` is the length and the
/// header.
void seal_header(std::string& head);

enum class Seal { none, whole, broken };

/// Whether a header has a checksum, and whether it fits.
Seal seal_of(std::string_view head);

}  // namespace nsimplex::io
