#pragma once

#include <nlohmann/json.hpp>

namespace nsimplex::cli {

/// Fields stay in the order in which a command writes them, which is the documented one.
using Json = nlohmann::ordered_json;

/// Writes one object as one line to standard output. Text that is not UTF-8 is replaced, never an
/// error; numbers that JSON does not know (NaN, infinities) become null.
void print_json_line(const Json& object);

}  // namespace nsimplex::cli
