// Parses numbers and missing values, and decodes text files to UTF-8.

#include "io/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "support/printable.h"

namespace nsimplex::io {
namespace {

// from_chars accepts a minus but no plus.
std::string_view without_plus(std::string_view text) {
  return text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
}

// Parses a whole text as a number. `large`: it is written as a number but too large for a double.
std::optional<double> parse_double(std::string_view text, bool& large) {
  text = without_plus(text);
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  large = false;
  if (end != last || (error != std::errc() && error != std::errc::result_out_of_range)) {
    return std::nullopt;
  }
  if (error == std::errc()) return std::isfinite(value) ? std::optional(value) : std::nullopt;

  // The number is out of range. The place of the first nonzero digit, relative to the point, and
  // the exponent tell whether it is too large or too small: the result is about 10^(place +
  // exponent), and far from 1.
  const bool minus = text.starts_with('-');
  if (minus) text.remove_prefix(1);
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return minus ? -0.0 : 0.0;
  const size_t point = std::min(digits.find('.'), digits.size());
  const auto place = static_cast<double>(point) - static_cast<double>(first);
  double exponent = 0;
  if (e < text.size()) {
    std::string_view written = text.substr(e + 1);
    const bool down = written.starts_with('-');
    if (down || written.starts_with('+')) written.remove_prefix(1);
    for (const char digit : written) exponent = 10 * exponent + (digit - '0');
    if (down) exponent = -exponent;
  }
  large = place + exponent > 0;
  return large ? std::nullopt : std::optional(minus ? -0.0 : 0.0);
}

// `words` are in small letters.
template <size_t count>
bool is_one_of(std::string_view text, const std::array<std::string_view, count>& words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return std::ranges::equal(text, word, [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a | 0x20) : a) == b;
    });
  });
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  bool large = false;
  return parse_double(text, large);
}

namespace {

// Takes the mark between groups of digits off a text, and returns whether it was there.
bool take_group_mark(std::string_view& text, char thousands) {
  const auto take = [&](std::string_view mark) {
    const bool there = text.starts_with(mark);
    if (there) text.remove_prefix(mark.size());
    return there;
  };
  if (take({&thousands, 1})) return true;
  return thousands == ' ' && (take("\xc2\xa0") || take("\xe2\x80\xaf"));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The text without marks between groups of three digits before the decimals, "1.234,5" as
// "1234,5". Nothing if they are at other places.
std::optional<std::string> without_groups(std::string_view text, NumberFormat format) {
  std::string plain;
  if (text.starts_with('-') || text.starts_with('+')) {
    plain += text.front();
    text.remove_prefix(1);
  }
  size_t digits = 0;
  for (bool grouped = false; !text.empty();) {
    if (take_group_mark(text, format.thousands)) {
      if (digits == 0 || digits > 3 || (grouped && digits != 3)) return std::nullopt;
      grouped = true;
      digits = 0;
    } else if (is_digit(text.front())) {
      plain += text.front();
      text.remove_prefix(1);
      ++digits;
    } else {
      if (grouped && digits != 3) return std::nullopt;
      return plain.append(text);
    }
    if (text.empty() && grouped && digits != 3) return std::nullopt;
  }
  return plain;
}

}  // namespace

std::optional<double> parse_number(std::string_view text, NumberFormat format) {
  std::string plain(text);
  if (format.thousands != '\0') {
    auto ungrouped = without_groups(text, format);
    if (!ungrouped) return std::nullopt;
    plain = *std::move(ungrouped);
  }
  if (format.decimal != '.') {
    if (plain.find('.') != std::string::npos) return std::nullopt;
    const size_t mark = plain.find(format.decimal);
    if (mark != std::string::npos) plain[mark] = '.';
  }
  return parse_number(plain);
}

bool is_too_large(std::string_view text) {
  bool large = false;
  parse_double(text, large);
  return large;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  text = without_plus(text);
  int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 14> kWords = {
      "", "na", "n/a", "nan", "-nan", "null", "nil", "none", "<na>", "#n/a", "#na", "?", "-", "."};
  return is_one_of(text, kWords);
}

std::optional<bool> parse_truth(std::string_view text) {
  if (is_one_of(text, std::to_array<std::string_view>({"true"}))) return true;
  if (is_one_of(text, std::to_array<std::string_view>({"false"}))) return false;
  return std::nullopt;
}

bool is_like_value(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords = {"inf",      "+inf",      "-inf",
                                                      "infinity", "+infinity", "-infinity"};
  if (is_one_of(text, kWords) || parse_truth(text)) return true;
  const size_t digit = text.find_first_not_of("+-.");
  return digit != std::string_view::npos && digit <= 2 && text[digit] >= '0' && text[digit] <= '9';
}

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

// The characters of the bytes 0x80 to 0x9f in Windows-1252; 0: there is none.
constexpr std::array<uint16_t, 32> kWindows1252 = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

std::string decode_bytes(const Source& source, std::string_view bytes, Encoding encoding) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size(); ++at) {
    uint32_t code = static_cast<uint8_t>(bytes[at]);
    if (encoding == Encoding::windows1252 && code >= 0x80 && code < 0xa0) {
      code = kWindows1252[code - 0x80];
      if (code == 0) fail_at(source, bytes.substr(0, at), "a byte that Windows-1252 does not have");
    }
    append_utf8(text, code);
  }
  return text;
}

}  // namespace

Text::Text(const Source& source, Encoding encoding) : view_(source.text()) {
  const auto take = [&](std::string_view mark) {
    const bool there = view_.starts_with(mark);
    if (there) view_.remove_prefix(mark.size());
    return there;
  };
  if (take(kUtf32LittleMark) || take(kUtf32BigMark)) {
    source.fail("UTF-32 is not supported; save the file as UTF-8");
  }
  if (view_.starts_with("\x1f\x8b")) source.fail("compressed with gzip: unpack it first");
  if (encoding != Encoding::detect) {
    decoded_ = decode_bytes(source, view_, encoding);
    view_ = decoded_;
  }
  const bool little = take(kUtf16LittleMark), big = !little && take(kUtf16BigMark);
  if (little || big) {
    decoded_ = decode_utf16(source, view_, little);
    view_ = decoded_;
  } else if (!take(kUtf8Mark)) {
    // Before UTF-8 is checked, because the line of a wrong byte means nothing in a binary file.
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
