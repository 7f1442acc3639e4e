#include "support/utf8.h"

namespace nsimplex {

// The table of well-formed sequences is that of the Unicode standard, section 3.9.
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
  // Of the first byte the bits that belong to the character, by the number of bytes.
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

}  // namespace nsimplex
