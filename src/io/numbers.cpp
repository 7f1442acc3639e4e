#include "io/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace nsimplex::io {
namespace {

// from_chars takes a minus but no plus.
std::string_view without_plus(std::string_view text) {
  return text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
}

// A whole text as a number. `large`: it is written as one and beyond what double holds.
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

  // Out of range above or below? The place of the first digit that is not 0, beside the point, and
  // the exponent say it: the result is about 10^(place + exponent), and nowhere near 1.
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

bool is_like_value(std::string_view text) {
  constexpr std::array<std::string_view, 8> kWords = {"inf",  "+inf",  "-inf",      "infinity",
                                                      "true", "false", "+infinity", "-infinity"};
  if (is_one_of(text, kWords)) return true;
  const size_t digit = text.find_first_not_of("+-.");
  return digit != std::string_view::npos && digit <= 2 && text[digit] >= '0' && text[digit] <= '9';
}

}  // namespace nsimplex::io
