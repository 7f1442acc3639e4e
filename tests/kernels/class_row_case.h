#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cpu/equivariant/class_kernels.h"

namespace nsimplex::kernels::testing {

template <class T>
std::vector<T> draw_rows(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(generator));
  return values;
}

/// All tasks, in reverse: none waits for another.
template <class Problem, class Run>
void run_all(const Problem& problem, Run&& run) {
  for (int64_t task = class_row_tasks(problem.rows) - 1; task >= 0; --task) run(problem, task);
}

}  // namespace nsimplex::kernels::testing
