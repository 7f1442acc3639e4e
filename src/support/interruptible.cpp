// Records Ctrl-C next to the signal handler of the host program.

#include "support/interruptible.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <stdexcept>

namespace nsimplex {
namespace {

std::mutex mutex;  // protects the two below
int living = 0;
bool installed = false;
struct sigaction host;  // the handler of SIGINT before

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

extern "C" void note_interrupt(int signal, siginfo_t* info, void* context) {
  interrupted.store(true, std::memory_order_relaxed);
  if ((host.sa_flags & SA_SIGINFO) != 0) {
    host.sa_sigaction(signal, info, context);
  } else {
    host.sa_handler(signal);
  }
}

bool has_own_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

}  // namespace

Interruptible::Interruptible() {
  const std::lock_guard lock(mutex);
  if (living++ > 0) return;
  interrupted = false;
  if (sigaction(SIGINT, nullptr, &host) != 0 || !has_own_handler(host)) return;
  struct sigaction ours = host;
  ours.sa_flags |= SA_SIGINFO;
  ours.sa_sigaction = note_interrupt;
  installed = sigaction(SIGINT, &ours, nullptr) == 0;
}

Interruptible::~Interruptible() {
  const std::lock_guard lock(mutex);
  if (--living > 0 || !installed) return;
  installed = false;
  // Other code may have taken over the signal in the meantime.
  struct sigaction now = {};
  if (sigaction(SIGINT, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) == 0 ||
      now.sa_sigaction != note_interrupt) {
    return;
  }
  sigaction(SIGINT, &host, nullptr);
}

bool Interruptible::came() const { return interrupted.load(std::memory_order_relaxed); }

void Interruptible::check() const {
  if (came()) throw std::runtime_error("interrupted");
}

}  // namespace nsimplex
