#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

// A driver that runs a kernel's tasks the way a test wants them.

namespace nsimplex::kernels::testing {

/// How the tasks of a phase are run.
struct Drive {
  int threads = 1;
  bool reversed = false;
};

/// Memory of exactly the size asked for, 64-byte aligned, filled with NaN, with a guard behind it.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) : bytes_(bytes) {
    const size_t whole = (bytes + kGuard + 63) / 64 * 64;
    memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(64, whole)));
    std::memset(memory_.get(), 0xff, whole);  // NaN as fp32
  }
  void* get() { return memory_.get(); }
  bool guard_untouched() const {
    for (size_t i = bytes_; i < bytes_ + kGuard; ++i) {
      if (memory_.get()[i] != 0xff) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 128;
  struct Free {
    void operator()(unsigned char* memory) const { std::free(memory); }
  };
  size_t bytes_;
  std::unique_ptr<unsigned char, Free> memory_;
};

/// Runs all phases of a plan; fails the running test when a task writes beyond its workspace or
/// scratch.
template <class Plan, class Run>
void drive_plan(const Plan& plan, Drive drive, Run run) {
  GuardedMemory workspace(plan.workspace_bytes);
  std::vector<std::unique_ptr<GuardedMemory>> scratch;
  for (int t = 0; t < drive.threads; ++t) {
    scratch.push_back(std::make_unique<GuardedMemory>(plan.scratch_bytes));
  }
  for (int phase = 0; phase < plan.phases; ++phase) {
    std::atomic<int64_t> next{0};
    auto work = [&](int thread) {
      for (int64_t task; (task = next++) < plan.tasks[phase];) {
        const int64_t number = drive.reversed ? plan.tasks[phase] - 1 - task : task;
        run(phase, number, workspace.get(), scratch[thread]->get());
      }
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < drive.threads; ++t) threads.emplace_back(work, t);
    work(0);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_TRUE(workspace.guard_untouched()) << "workspace overrun";
  for (auto& memory : scratch) EXPECT_TRUE(memory->guard_untouched()) << "scratch overrun";
}

}  // namespace nsimplex::kernels::testing
