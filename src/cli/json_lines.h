#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace nsimplex::cli {

/// Fields stay in the order in which a command writes them, which is the documented one.
using Json = nlohmann::ordered_json;

/// The object with the field `kind` before all others: what the line is about, the word by which
/// readers tell lines apart.
Json of_kind(std::string_view kind, const Json& object);

/// Writes one object of a kind as one line to standard output. Text that is not UTF-8 is replaced,
/// never an error; numbers that JSON does not know (NaN, infinities) become null.
void print_json_line(std::string_view kind, const Json& object);

}  // namespace nsimplex::cli
