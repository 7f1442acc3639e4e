#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nsimplex::io {

/// A whole text as a number, as people write them: "-1.5e3", "+2"; not "inf", "nan", "0x10" or
/// "1 ". What is nearer to 0 than any double is 0; what is beyond the largest double is nothing.
std::optional<double> parse_number(std::string_view text);

/// Whether a text is written as a number, but beyond the largest double (1.8e308): "1e400".
bool is_too_large(std::string_view text);

/// A whole text as an integer of 64 bits: "-12", "+3".
std::optional<int64_t> parse_integer(std::string_view text);

/// What stands for a missing number: nothing; NA, N/A, NaN, null, nil and None in capitals or not,
/// also as <NA>, #N/A, #NA and -nan; ?, - and a point.
bool is_missing(std::string_view text);

/// Whether a word is not a name but meant as a value: it begins as a number does, or it is one of
/// the words for infinity, true and false, in capitals or not.
bool is_like_value(std::string_view text);

}  // namespace nsimplex::io
