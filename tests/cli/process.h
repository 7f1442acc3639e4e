#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace nsimplex::cli::testing {

/// What a finished `nsimplex` process left behind.
struct Finished {
  int code = -1;   ///< exit code; -1 when a signal ended it
  int signal = 0;  ///< that signal
  std::string out, err;
};

/// A running process, by default of `nsimplex`, with its standard output and error in files.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments,
                   const std::string& program = NSIMPLEX_EXECUTABLE);
  /// A fork of this process that ends with the code of `main`.
  explicit Process(const std::function<int()>& main);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal);
  /// Waits until standard error contains `text`; false when the process ends or a minute passes
  /// first.
  bool wait_for_error_output(const std::string& text);
  Finished wait();

 private:
  pid_t pid_ = -1;
  std::string out_path_, err_path_;
};

/// Asks every few milliseconds until `happened()`, which leaves the processor to the other process;
/// throws after five minutes.
void wait_until(const std::function<bool()>& happened);

/// `arguments` followed by `more`.
std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more);

/// Runs `nsimplex` with these arguments to its end. The program takes 0.3 s to load LibTorch, so this
/// does what its main function does in a fork of the test, which has loaded it. A test that has
/// started threads starts the program, because a fork would lose them.
Finished run(const std::vector<std::string>& arguments);

/// The same after `change`, which may give the new process other streams.
Finished run_after(const std::function<void()>& change, const std::vector<std::string>& arguments);

/// Runs another program, or `nsimplex` in another place.
Finished run_program(const std::string& program, const std::vector<std::string>& arguments);

std::vector<std::string> lines_of(const std::string& text);

/// Runs `nsimplex` with these arguments and `--out out`, and expects bad usage: exit code 2, one
/// line that contains `says`, and nothing at `out`.
void expect_refused(std::vector<std::string> arguments, const std::string& out,
                    const std::string& says);

}  // namespace nsimplex::cli::testing
