#include "support/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace nsimplex {
namespace {

// Sets the number of threads for one test.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~ThreadCount() { at::set_num_threads(before_); }

 private:
  int before_;
};

class ParallelThreads : public ::testing::TestWithParam<int> {};

// Every task waits for all others: it passes only where as many threads run at one time as were
// set.
TEST_P(ParallelThreads, AllThreadsThatWereSetWorkAtOnce) {
  const int count = GetParam();
  const ThreadCount guard(count);
  ASSERT_EQ(thread_count(), count);
  std::mutex mutex;
  std::condition_variable arrived;
  std::set<std::thread::id> threads;
  std::set<int> workers;
  bool all = true;
  parallel_tasks(count, [&](int64_t, int worker) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    workers.insert(worker);
    arrived.notify_all();
    all &= arrived.wait_for(lock, std::chrono::seconds(60),
                            [&] { return threads.size() == static_cast<size_t>(count); });
  });
  EXPECT_TRUE(all) << "only " << threads.size() << " threads came";
  EXPECT_EQ(workers.size(), static_cast<size_t>(count));
  EXPECT_EQ(*workers.begin(), 0);
  EXPECT_EQ(*workers.rbegin(), count - 1);
}

TEST_P(ParallelThreads, EveryTaskRunsOnceAndWorkersAreExclusive) {
  const ThreadCount guard(GetParam());
  constexpr int64_t kTasks = 1000;
  std::vector<std::atomic<int>> runs(kTasks);
  std::vector<std::atomic<int>> busy(static_cast<size_t>(thread_count()));
  std::atomic<bool> exclusive{true};
  parallel_tasks(kTasks, [&](int64_t task, int worker) {
    if (busy.at(static_cast<size_t>(worker))++ != 0) exclusive = false;
    ++runs[static_cast<size_t>(task)];
    --busy[static_cast<size_t>(worker)];
  });
  EXPECT_TRUE(exclusive);
  for (const auto& each : runs) EXPECT_EQ(each, 1);
}

INSTANTIATE_TEST_SUITE_P(Counts, ParallelThreads, ::testing::Values(1, 2, 3, 5));

TEST(Parallel, NoTasksIsNoWork) {
  parallel_tasks(0, [](int64_t, int) { FAIL(); });
  parallel_tasks(-3, [](int64_t, int) { FAIL(); });
}

TEST(Parallel, AnExceptionReachesTheCallerAfterAllHaveStopped) {
  const ThreadCount guard(3);
  std::atomic<int> running{0};
  const auto run = [&] {
    parallel_tasks(100, [&](int64_t task, int) {
      ++running;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      --running;
      if (task == 7) throw std::runtime_error("task 7");
    });
  };
  EXPECT_THROW(
      {
        try {
          run();
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "task 7");
          EXPECT_EQ(running, 0);
          throw;
        }
      },
      std::runtime_error);
  std::atomic<int> after{0};
  parallel_tasks(10, [&](int64_t, int) { ++after; });
  EXPECT_EQ(after, 10) << "the pool survives";
}

TEST(Parallel, ANestedRegionRunsOnItsCallersThread) {
  const ThreadCount guard(2);
  std::atomic<int> inner{0};
  std::atomic<bool> same{true};
  parallel_tasks(2, [&](int64_t, int) {
    const std::thread::id outer = std::this_thread::get_id();
    parallel_tasks(50, [&](int64_t, int worker) {
      if (std::this_thread::get_id() != outer || worker != 0) same = false;
      ++inner;
    });
  });
  EXPECT_EQ(inner, 100);
  EXPECT_TRUE(same);
}

// A second OpenMP runtime in the process would ignore torch.set_num_threads.
TEST(Parallel, OneOpenMpRuntimeIsMapped) {
  parallel_tasks(4, [](int64_t, int) {});
  std::set<std::string> runtimes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* name : {"libgomp", "libomp", "libiomp"}) {
      if (line.find(name) != std::string::npos) runtimes.insert(line.substr(line.find('/')));
    }
  }
  EXPECT_EQ(runtimes.size(), 1u) << ::testing::PrintToString(runtimes);
}

}  // namespace
}  // namespace nsimplex
