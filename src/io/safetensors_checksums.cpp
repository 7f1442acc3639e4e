#include "io/safetensors_checksums.h"

#include <zlib.h>

namespace nsimplex::io {
namespace {

std::string crc(std::string_view bytes) {
  const uLong value = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kNoChecksum);
  for (size_t i = 0; i < text.size(); ++i) text[i] = kDigits[value >> (4 * (7 - i)) & 15];
  return text;
}

// Where the value stands; npos where there is none. Inside other texts of the header its quotes are escaped.
size_t place_of_value(std::string_view head) {
  std::string key(1, '"');
  key.append(kHeaderChecksum).append("\":\"");
  const size_t at = head.find(key);
  if (at == std::string_view::npos || head.size() - at - key.size() < kNoChecksum.size())
    return std::string_view::npos;
  return at + key.size();
}

}  // namespace

std::string checksum(std::span<const uint8_t> bytes) {
  return crc({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void seal_header(std::string& head) {
  head.replace(place_of_value(head), kNoChecksum.size(), crc(head));
}

Seal seal_of(std::string_view head) {
  const size_t at = place_of_value(head);
  if (at == std::string_view::npos) return Seal::none;
  std::string blank(head);
  blank.replace(at, kNoChecksum.size(), kNoChecksum);
  return crc(blank) == head.substr(at, kNoChecksum.size()) ? Seal::whole : Seal::broken;
}

}  // namespace nsimplex::io
