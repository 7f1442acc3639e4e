// Escapes text for a line of a terminal, and reads UTF-8.

#include "support/printable.h"

#include <algorithm>

namespace nsimplex {

// The table of well-formed sequences is in section 3.9 of the Unicode standard.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t at) {
    return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0};
  };
  const auto follows = [&](size_t at, uint8_t low = 0x80, uint8_t high = 0xbf) {
    return low <= byte(at) && byte(at) <= high;
  };
  if (text.empty()) return 0;
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return follows(1) ? 2 : 0;
  if (first < 0xf0) {
    const bool second = first == 0xe0   ? follows(1, 0xa0)
                        : first == 0xed ? follows(1, 0x80, 0x9f)  // no surrogates
                                        : follows(1);
    return second && follows(2) ? 3 : 0;
  }
  if (first > 0xf4) return 0;
  const bool second = first == 0xf0   ? follows(1, 0x90)
                      : first == 0xf4 ? follows(1, 0x80, 0x8f)
                                      : follows(1);
  return second && follows(2) && follows(3) ? 4 : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text.substr(0, 4));
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

uint32_t utf8_character(std::string_view text) {
  const size_t length = utf8_length(text);
  // The bits of the first byte that belong to the character, by the number of bytes.
  constexpr uint32_t kFirst[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t character = static_cast<uint8_t>(text[0]) & kFirst[length];
  for (size_t at = 1; at < length; ++at) {
    character = character << 6 | (static_cast<uint8_t>(text[at]) & 0x3f);
  }
  return character;
}

void append_utf8(std::string& text, uint32_t character) {
  const auto tail = [&](int shift) {
    text.push_back(static_cast<char>(0x80 | (character >> shift & 0x3f)));
  };
  if (character < 0x80) {
    text.push_back(static_cast<char>(character));
  } else if (character < 0x800) {
    text.push_back(static_cast<char>(0xc0 | character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    text.push_back(static_cast<char>(0xe0 | character >> 12));
    tail(6);
    tail(0);
  } else {
    text.push_back(static_cast<char>(0xf0 | character >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// Whether a character does more on a terminal than show a letter.
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
    size_t end = kMost;  // the end must not be within a character
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
