#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nsimplex::io {

/// A whole text as a number, as people write them: "-1.5e3", "+2"; not "inf", "nan", "0x10" or
/// "1 ", and nothing that double cannot hold.
std::optional<double> parse_number(std::string_view text);

/// A whole text as an integer of 64 bits: "-12", "+3".
std::optional<int64_t> parse_integer(std::string_view text);

/// What stands for a missing number: nothing, NA, N/A, NaN, nan, null, NULL or None.
bool is_missing(std::string_view text);

}  // namespace nsimplex::io
