#include "support/printable.h"

#include <algorithm>

#include "support/utf8.h"

namespace nsimplex {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// Whether a terminal takes a character for more than a letter to be shown.
bool acts(uint32_t character) {
  constexpr uint32_t kArabicMark = 0x061c, kZeroWidthMark = 0xfeff;
  const auto within = [&](uint32_t first, uint32_t last) {
    return first <= character && character <= last;
  };
  return character < 0x20 || within(0x7f, 0x9f)  // C0, DEL and C1
         || within(0x200e, 0x200f)               // marks of direction
         || within(0x2028, 0x202e)               // ends of lines; embeddings and overrides
         || within(0x2066, 0x2069)               // isolates
         || character == kArabicMark || character == kZeroWidthMark;
}

void append_escape(std::string& result, char kind, uint32_t number, int digits) {
  result.append("\\").push_back(kind);
  for (int digit = digits - 1; digit >= 0; --digit) result += kHex[number >> (4 * digit) & 15];
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kKnown = "\n\r\t", kLetters = "nrt";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text.substr(0, 4));
    const size_t known = kKnown.find(text.front());
    const uint32_t character = length == 0 ? 0 : utf8_character(text.substr(0, length));
    if (known != std::string_view::npos) {
      result.append("\\").push_back(kLetters[known]);
    } else if (length == 0 || character < 0x80) {
      const auto byte = static_cast<uint8_t>(text.front());
      if (length == 0 || acts(byte)) {
        append_escape(result, 'x', byte, 2);
      } else {
        result += text.front();
      }
    } else if (acts(character)) {
      append_escape(result, 'u', character, 4);
    } else {
      result.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string quoted_name(std::string_view text) {
  constexpr size_t kMost = 40, kLongestCharacter = 4;
  std::string_view shown = text;
  if (text.size() > kMost) {
    size_t end = kMost;  // not within a character
    while (end > kMost - kLongestCharacter && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) {
      --end;
    }
    shown = text.substr(0, end);
  }
  return std::string("\"")
      .append(printable(shown))
      .append(shown.size() < text.size() ? "..\"" : "\"");
}

}  // namespace nsimplex
