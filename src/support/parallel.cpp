// Runs tasks on torch's own threads.

#include "support/parallel.h"

#include <ATen/Parallel.h>
#include <torch/csrc/stable/c/shim.h>

#include <atomic>
#include <exception>
#include <mutex>

// Sets the number of MKL's threads in the calling thread (0: that of the process) and returns the
// previous one. Null if torch has another BLAS.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace nsimplex {

int thread_count() { return at::get_num_threads(); }

namespace detail {
namespace {

// Limits MKL to one thread in this thread.
class MklOnOneThread {
 public:
  MklOnOneThread() : before_(set(1)) {}
  ~MklOnOneThread() { set(before_); }
  MklOnOneThread(const MklOnOneThread&) = delete;
  MklOnOneThread& operator=(const MklOnOneThread&) = delete;

 private:
  static int set(int threads) {
    return MKL_Set_Num_Threads_Local ? MKL_Set_Num_Threads_Local(threads) : 0;
  }

  int before_;
};

// State of one parallel region. Workers draw task numbers from one counter.
struct Region {
  int64_t tasks;
  TaskFunction function;
  void* context;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;

  void work(int worker) {
    const MklOnOneThread same_bits;
    try {
      for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
        function(context, task, worker);
      }
    } catch (...) {
      next.store(tasks, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }
};

}  // namespace

void parallel_tasks(int64_t tasks, TaskFunction function, void* context) {
  if (tasks <= 0) return;
  Region region{tasks, function, context};
  const int64_t workers = std::min<int64_t>(tasks, thread_count());
  if (workers <= 1 || at::in_parallel_region()) {
    region.work(0);
  } else {
    // This is the C entry point instead of the header's at::parallel_for. Our compiler would
    // compile that template and make it a serial loop, or a second OpenMP runtime, if its flags
    // differ from torch's.
    const AOTITorchError status = torch_parallel_for(
        0, workers, 1,
        [](int64_t begin, int64_t end, void* state) {
          for (int64_t worker = begin; worker < end; ++worker) {
            static_cast<Region*>(state)->work(static_cast<int>(worker));
          }
        },
        &region);
    TORCH_CHECK(status == AOTI_TORCH_SUCCESS, "torch_parallel_for failed");
  }
  if (region.error) std::rethrow_exception(region.error);
}

}  // namespace detail
}  // namespace nsimplex
