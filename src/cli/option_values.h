// Declares the checks of the values of options.

#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli11.h"

namespace nsimplex::cli {

/// Checks of the value of an option. They answer "expected a whole number from 1 to 8, got 9". In a
/// list, every member is checked.
CLI::Validator whole_number_within(int64_t least, int64_t most);
CLI::Validator number_within(double least, double most);

template <std::integral Number>
CLI::Validator within(Number least, Number most) {
  return whole_number_within(least, most);
}
inline CLI::Validator within(double least, double most) { return number_within(least, most); }

CLI::Validator above_zero();
CLI::Validator at_least_zero();

/// One of these names, which help and completion show.
CLI::Validator one_of(const std::vector<std::string>& names);

/// Finishes the options of a command and of those below it. Numbers are checked before CLI11
/// converts them, and the help shows N for a whole number, X for another one and the names between
/// which an option lets choose.
void describe_values(CLI::App& app);

/// An error of CLI11 in the words of this program: "--steps: expected a whole number, got 'x'".
std::string plain_error(const CLI::App& command, const CLI::ParseError& error);

}  // namespace nsimplex::cli
