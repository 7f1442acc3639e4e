// How plain code runs independent tasks, so that its caller decides on threads.

#pragma once

#include <cstdint>
#include <functional>

namespace nsimplex::causal {

/// Runs body(0) .. body(tasks - 1) in any order, perhaps at once: who calls plain code decides on
/// threads. Tasks write nothing that another one reads, so that bits depend on no schedule.
using TaskLoop = std::function<void(int64_t tasks, const std::function<void(int64_t)>& body)>;

inline void one_by_one(int64_t tasks, const std::function<void(int64_t)>& body) {
  for (int64_t task = 0; task < tasks; ++task) body(task);
}

}  // namespace nsimplex::causal
