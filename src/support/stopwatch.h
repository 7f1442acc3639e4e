// Measures wall time and processor time.

#pragma once

#include <chrono>
#include <ctime>
#include <ratio>

namespace nsimplex {

/// Seconds since it was made, by one clock.
template <class Clock>
class StopwatchOf {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  typename Clock::time_point start_ = Clock::now();
};

/// Processor time of this process, over all its threads.
struct ProcessorClock {
  using duration = std::chrono::duration<std::clock_t, std::ratio<1, CLOCKS_PER_SEC>>;
  using time_point = std::chrono::time_point<ProcessorClock, duration>;

  static time_point now() { return time_point(duration(std::clock())); }
};

using Stopwatch = StopwatchOf<std::chrono::steady_clock>;
using ProcessorStopwatch = StopwatchOf<ProcessorClock>;

}  // namespace nsimplex
