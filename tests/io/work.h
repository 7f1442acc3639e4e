#pragma once

#include <cstdint>
#include <functional>

namespace nsimplex::io {

/// What a call did, counted and not timed, so that two runs count the same.
struct Work {
  int64_t steps = 0;   ///< basic blocks run, and bytes that memchr() and its like went over
  int64_t memory = 0;  ///< bytes taken from the heap at the peak
};

/// The work of a call in code that is compiled with -fsanitize-coverage=trace-pc and linked so that
/// this file's versions of memchr() and its like are called: see CMakeLists.txt.
Work work_of(const std::function<void()>& call);

}  // namespace nsimplex::io
