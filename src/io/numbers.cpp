#include "io/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace nsimplex::io {
namespace {

template <class T>
std::optional<T> parse_all(std::string_view text) {
  // from_chars takes a minus but no plus.
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const auto number = parse_all<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_all<int64_t>(text); }

bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 8> kWords = {"",    "NA",   "N/A",  "NaN",
                                                      "nan", "null", "NULL", "None"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

}  // namespace nsimplex::io
