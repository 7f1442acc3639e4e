#pragma once

// CLI11 with what it is told of types; its own header is included nowhere else, since all sources
// have to see the same.

#include <CLI/CLI.hpp>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

// Torch's logging header makes vectors streamable, "1 2", wherever it is included, and CLI11 would
// then write the defaults of lists that way, which --config cannot read back. They are "[1,2]" in
// all files, whatever these include.
template <class List, class Stream>
  requires std::same_as<std::remove_cvref_t<List>,
                        std::vector<typename std::remove_cvref_t<List>::value_type>>
class CLI::detail::is_ostreamable<List, Stream> {
 public:
  static constexpr bool value = false;
};

namespace nsimplex::cli {

/// A whole text as an integer, with a plus or not; false where it is none or out of range.
template <std::integral Integer>
bool to_integer(const std::string& text, Integer& number) noexcept {
  const char* first = text.data();
  const char* const last = first + text.size();
  if (text.starts_with('+') && !text.starts_with("+-")) ++first;
  const auto [end, error] = std::from_chars(first, last, number);
  return error == std::errc() && end == last;
}

}  // namespace nsimplex::cli

// Of 64 bits CLI11 takes what is out of range, and -1 where there is no sign, for the largest
// number.
template <>
inline bool CLI::detail::integral_conversion<uint64_t>(const std::string& input,
                                                       uint64_t& output) noexcept {
  return nsimplex::cli::to_integer(input, output);
}

template <>
inline bool CLI::detail::integral_conversion<int64_t>(const std::string& input,
                                                      int64_t& output) noexcept {
  return nsimplex::cli::to_integer(input, output);
}

template <>
inline bool CLI::detail::integral_conversion<int>(const std::string& input, int& output) noexcept {
  return nsimplex::cli::to_integer(input, output);
}
