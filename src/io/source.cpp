#include "io/source.h"

#include "support/error.h"

namespace nsimplex::io {

void Source::fail(const std::string& why) const {
  throw InputError("cannot read " + name + ": " + why);
}

std::span<const uint8_t> Source::part(uint64_t begin, uint64_t count) const {
  if (begin > bytes.size() || count > bytes.size() - begin) {
    fail("truncated: " + std::to_string(count) + " bytes expected from byte " +
         std::to_string(begin) + " on, there are " + std::to_string(bytes.size()) + " in all");
  }
  return bytes.subspan(begin, count);
}

uint64_t Source::little(uint64_t begin, int count) const {
  uint64_t number = 0;
  int shift = 0;
  for (const uint8_t byte : part(begin, count)) {
    number |= uint64_t{byte} << shift;
    shift += 8;
  }
  return number;
}

std::string printable(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const auto next = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
    const bool late_control = byte == 0xc2 && next >= 0x80 && next < 0xa0;  // U+0080 to U+009F
    if (late_control) ++at;
    result += byte < ' ' || byte == 127 || late_control ? '?' : text[at];
  }
  return result;
}

std::string quoted(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string_view shown = text;
  if (text.size() > kMost) {
    size_t end = kMost;  // not within a character
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    shown = text.substr(0, end);
  }
  return std::string("\"")
      .append(printable(shown))
      .append(shown.size() < text.size() ? "..\"" : "\"");
}

}  // namespace nsimplex::io
