#include "io/text.h"

#include <algorithm>

#include "support/utf8.h"

namespace nsimplex::io {
namespace {

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::string_view kUtf16LittleMark = "\xff\xfe", kUtf16BigMark = "\xfe\xff";
constexpr std::string_view kUtf32LittleMark{"\xff\xfe\0\0", 4}, kUtf32BigMark{"\0\0\xfe\xff", 4};

[[noreturn]] void fail_at(const Source& source, std::string_view before, const std::string& why) {
  source.fail("line " + std::to_string(1 + count_line_ends(before)) + ": " + why);
}

void check_utf8(const Source& source, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) {
      constexpr const char* kHex = "0123456789abcdef";
      const auto byte = static_cast<uint8_t>(text[at]);
      fail_at(source, text.substr(0, at),
              std::string("not UTF-8: byte 0x") + kHex[byte >> 4] + kHex[byte & 15] +
                  "; save the file as UTF-8");
    }
    at += length;
  }
}

std::string decode_utf16(const Source& source, std::string_view bytes, bool little) {
  std::string text;
  text.reserve(bytes.size());
  if (bytes.size() % 2 != 0) source.fail("truncated: UTF-16 of an odd number of bytes");
  const auto unit = [&](size_t at) -> uint32_t {
    const auto low = static_cast<uint8_t>(bytes[at + (little ? 0 : 1)]);
    const auto high = static_cast<uint8_t>(bytes[at + (little ? 1 : 0)]);
    return high << 8 | low;
  };
  for (size_t at = 0; at < bytes.size(); at += 2) {
    uint32_t code = unit(at);
    if (code >= 0xd800 && code < 0xe000) {
      const uint32_t low = at + 2 < bytes.size() ? unit(at + 2) : 0;
      if (code >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
        fail_at(source, text, "not UTF-16: half of a pair of surrogates");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 2;
    }
    append_utf8(text, code);
  }
  return text;
}

}  // namespace

Text::Text(const Source& source) : view_(source.text()) {
  const auto take = [&](std::string_view mark) {
    const bool there = view_.starts_with(mark);
    if (there) view_.remove_prefix(mark.size());
    return there;
  };
  if (take(kUtf32LittleMark) || take(kUtf32BigMark)) {
    source.fail("UTF-32 is not supported; save the file as UTF-8");
  }
  if (view_.starts_with("\x1f\x8b")) source.fail("compressed with gzip: unpack it first");
  const bool little = take(kUtf16LittleMark), big = !little && take(kUtf16BigMark);
  if (little || big) {
    decoded_ = decode_utf16(source, view_, little);
    view_ = decoded_;
  } else if (!take(kUtf8Mark)) {
    // Before UTF-8 is checked: of a binary file the line of a wrong byte says nothing.
    constexpr size_t kLooked = 1024;
    if (view_.substr(0, kLooked).find('\0') != std::string_view::npos) {
      source.fail("neither npy, npz nor text");
    }
  }
  check_utf8(source, view_);
  const size_t zero = view_.find('\0');
  if (zero != std::string_view::npos) {
    fail_at(source, view_.substr(0, zero), "a zero byte, which no text has");
  }
}

int64_t count_line_ends(std::string_view text) {
  int64_t count = 0;
  while (!text.empty()) {
    const size_t size = text.size();
    if (take_line(text).size() < size) ++count;
  }
  return count;
}

void take_line_end(std::string_view& rest) { rest.remove_prefix(rest.starts_with("\r\n") ? 2 : 1); }

std::string_view take_line(std::string_view& rest) {
  const auto end =
      std::find_if(rest.begin(), rest.end(), [](char c) { return c == '\n' || c == '\r'; });
  const std::string_view line = rest.substr(0, end - rest.begin());
  rest.remove_prefix(line.size());
  if (!rest.empty()) take_line_end(rest);
  return line;
}

}  // namespace nsimplex::io
