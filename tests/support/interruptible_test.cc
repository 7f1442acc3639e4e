#include "support/interruptible.h"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

namespace nsimplex {
namespace {

volatile std::sig_atomic_t handled = 0;

extern "C" void count_signal(int) { handled = handled + 1; }

TEST(Interruptible, EndsAComputationAndCallsTheHostsHandler) {
  handled = 0;
  struct sigaction host = {}, before = {}, after = {};
  host.sa_handler = count_signal;
  ASSERT_EQ(sigaction(SIGINT, &host, &before), 0);
  {
    const Interruptible outer;
    EXPECT_NO_THROW(outer.check());
    {
      const Interruptible inner;
      std::raise(SIGINT);
      EXPECT_EQ(handled, 1);
      EXPECT_THROW(inner.check(), std::runtime_error);
    }
    EXPECT_THROW(outer.check(), std::runtime_error);
    std::raise(SIGINT);
    EXPECT_EQ(handled, 2);
  }
  ASSERT_EQ(sigaction(SIGINT, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, count_signal);
  // What was interrupted is over: the next one begins anew.
  EXPECT_NO_THROW(Interruptible().check());
  sigaction(SIGINT, &before, nullptr);
}

TEST(Interruptible, LeavesTheDefaultActionAlone) {
  struct sigaction usual = {}, before = {}, during = {};
  usual.sa_handler = SIG_DFL;
  ASSERT_EQ(sigaction(SIGINT, &usual, &before), 0);
  {
    const Interruptible interruptible;
    ASSERT_EQ(sigaction(SIGINT, nullptr, &during), 0);
    EXPECT_EQ(during.sa_handler, SIG_DFL);
  }
  sigaction(SIGINT, &before, nullptr);
}

}  // namespace
}  // namespace nsimplex
