#include "causal/graphs/xml_text.h"

#include <cstdint>

namespace nsimplex::causal {
namespace {

// How many bytes the character at the front of `text` has, or 0 where there is none that XML takes.
size_t character(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  uint32_t code = lead & (0xFF >> (size + 1));
  for (size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(at) & 0x3F);
  }
  constexpr uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // of each size
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool none = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < kFirst[size] || surrogate || none ? 0 : size;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const char c = text.front();
    const size_t size = character(text);
    if (size == 0) {
      result += "\xEF\xBF\xBD";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\r') {
      result += "&#13;";  // as it stands readers make a line feed of it
    } else if (size == 1 && static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n') {
      result += {'\xE2', '\x90', static_cast<char>(0x80 + c)};
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

}  // namespace nsimplex::causal
