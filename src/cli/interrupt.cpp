#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "io/atomic_file.h"

namespace nsimplex::cli::interrupt {
namespace {

volatile std::sig_atomic_t flag = 0;
volatile std::sig_atomic_t asked = 0;  // whether anybody reads the flag

// Only what POSIX allows in a handler: flags, write(), unlink(), signal() and _exit().
extern "C" void on_signal(int signal) {
  if (!asked) {
    io::abandon_temporary();
    _exit(kInterruptedCode);
  }
  flag = 1;
  constexpr char kMessage[] = "\nnsimplex: stopping; once more to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  std::signal(signal, SIG_DFL);
}

}  // namespace

void install() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool requested() {
  defer();
  return flag != 0;
}

void defer() { asked = 1; }

void check() {
  if (requested()) throw Interrupted();
}

}  // namespace nsimplex::cli::interrupt
