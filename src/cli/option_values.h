// Declares the checks of the values of options.

#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// Whether an option takes no value, and whether it takes several.
inline bool is_flag(const CLI::Option& option) { return option.get_expected_min() == 0; }
inline bool is_list(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

/// The value of an option as the help shows it: N, FILE, cpu|cuda; empty for a flag.
std::string option_value(const CLI::Option& option);

/// The values between which an option lets choose; empty if it takes others.
std::vector<std::string> choices_of(const CLI::Option& option);

/// Checks of the value of an option. They answer "expected a whole number from 1 to 8, got 9". In a
/// list, every member is checked.
CLI::Validator whole_number_within(int64_t least, int64_t most);
CLI::Validator number_within(double least, double most);

/// `what`: "one character".
CLI::Validator expected(const std::string& what, std::function<bool(const std::string&)> fits);

template <std::integral Number>
CLI::Validator within(Number least, Number most) {
  return whole_number_within(least, most);
}
inline CLI::Validator within(double least, double most) { return number_within(least, most); }

CLI::Validator above_zero();
CLI::Validator at_least_zero();

/// One of these names, which help and completion show.
CLI::Validator one_of(const std::vector<std::string>& names);

/// Shows these names where the command itself checks the value.
CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& names);

/// Finishes the options of a command and of those below it. Numbers are checked before CLI11
/// converts them, and the help shows N for a whole number, X for another one and the names between
/// which an option lets choose. A list is one word, with commas between its members, and the option
/// may be repeated. Only arguments and lists of files are several words.
void describe_values(CLI::App& app);

/// An error of CLI11 in the words of this program: "--steps: expected a whole number, got 'x'".
std::string plain_error(CLI::App& command, const CLI::ParseError& error);

}  // namespace nsimplex::cli
