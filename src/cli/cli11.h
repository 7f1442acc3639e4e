// Includes CLI11 with settings that all sources must share.

#pragma once

// CLI11 with its settings for types. Its own header is included nowhere else, since all sources
// must see the same settings.

#include <CLI/CLI.hpp>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

// Torch's logging header, wherever it is included, makes vectors streamable as "1 2". CLI11 would
// then write the defaults of lists in this form, which --config cannot read back. Here they are
// "[1,2]" in all files.
template <class List, class Stream>
  requires std::same_as<std::remove_cvref_t<List>,
                        std::vector<typename std::remove_cvref_t<List>::value_type>>
class CLI::detail::is_ostreamable<List, Stream> {
 public:
  static constexpr bool value = false;
};

namespace nsimplex::cli {

/// The commands of a program or of a group of commands, also those that its help leaves out.
auto commands_below(auto& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Parses a whole text as an integer, with an optional plus. False if it is not an integer or out
/// of range.
template <std::integral Integer>
bool to_integer(const std::string& text, Integer& number) noexcept {
  const char* first = text.data();
  const char* const last = first + text.size();
  if (text.starts_with('+') && !text.starts_with("+-")) ++first;
  const auto [end, error] = std::from_chars(first, last, number);
  return error == std::errc() && end == last;
}

}  // namespace nsimplex::cli

// For 64-bit types, CLI11 reads numbers that are out of range, and -1 for unsigned types, as the
// largest number.
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
