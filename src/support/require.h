// Checks that throw InputError with one line.

#pragma once

#include <cstdint>
#include <sstream>
#include <string_view>

#include "support/error.h"

namespace nsimplex {

/// Throws InputError with the concatenated parts unless `ok`. The message is one line, "[call]
/// argument: expected X, got Y", without the call where a command or a caller adds it.
template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (ok) return;
  std::ostringstream message;
  (message << ... << parts);
  throw InputError(message.str());
}

/// The same with the usual message: "ARGUMENT: expected EXPECTED, got GOT".
template <class Got>
void require_argument(bool ok, std::string_view argument, std::string_view expected,
                      const Got& got) {
  require(ok, argument, ": expected ", expected, ", got ", got);
}

/// The same for a count: "ARGUMENT: expected at least LEAST, got COUNT".
inline void require_at_least(std::string_view argument, int64_t least, int64_t count) {
  require(count >= least, argument, ": expected at least ", least, ", got ", count);
}

/// The same for a count with an upper end: "ARGUMENT: expected at most MOST, got COUNT", too.
inline void require_within(std::string_view argument, int64_t least, int64_t most, int64_t count) {
  require_at_least(argument, least, count);
  require(count <= most, argument, ": expected at most ", most, ", got ", count);
}

}  // namespace nsimplex
