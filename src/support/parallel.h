// Declares how tasks are run on torch's own threads.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <type_traits>

namespace nsimplex {

/// The number of threads that torch's pool would use for a parallel region started here
/// (torch.set_num_threads).
int thread_count();

namespace detail {
using TaskFunction = void (*)(void* context, int64_t task, int worker);
void parallel_tasks(int64_t tasks, TaskFunction function, void* context);
}  // namespace detail

/// Runs body(task, worker) for every task in [0, tasks) on torch's own thread pool, in no fixed
/// order. 0 <= worker < thread_count() is unique among the tasks that run at the same time. Free
/// workers take the next task, so uneven tasks balance. An exception of a task is rethrown here
/// after all have stopped. MKL uses one thread in a task, even if this thread runs all tasks, so
/// its bits do not depend on the number of threads. (Otherwise torch lets MKL plan for all threads
/// even inside a parallel region, and MKL then splits the sums of a product into as many parts.)
template <class Body>
void parallel_tasks(int64_t tasks, Body&& body) {
  detail::parallel_tasks(
      tasks,
      [](void* context, int64_t task, int worker) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(task, worker);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace nsimplex
