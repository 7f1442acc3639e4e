#include "cli/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cli/app.h"
#include "cli/lab_program.h"
#ifdef NSIMPLEX_TESTS_LAB
#include "lab/experiments.h"
#endif

namespace nsimplex::cli::testing {
namespace {

std::string new_file() {
  std::string path = (std::filesystem::temp_directory_path() / "nsimplex-test-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) throw std::runtime_error("no temporary file");
  close(descriptor);
  return path;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// As the main function of a program gets them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool has_one_thread() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads)) == 1;
}

std::vector<std::string> typed(std::vector<std::string> words) {
  words.insert(words.begin(), "nsimplex");
  return typed_words(static_cast<int>(words.size()), pointers_to(words).data());
}

// Returns only if the program cannot be started.
int become(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = with({program}, arguments);
  execv(program.c_str(), pointers_to(words).data());
  return 127;
}

// What the main functions of nsimplex and nsimplex-lab do.
int main_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = typed(arguments);
  if (auto of_lab = lab_arguments(words)) {
#ifdef NSIMPLEX_TESTS_LAB
    keep_freed_memory();
    return cli::run(lab::kProgram, typed(std::move(*of_lab)));
#else
    return start_lab(std::move(*of_lab));
#endif
  }
  keep_freed_memory();
  return cli::run(kProduct, std::move(words));
}

}  // namespace

Process::Process(const std::function<int()>& main) : out_path_(new_file()), err_path_(new_file()) {
  std::fflush(nullptr);  // or the fork would write it as well
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out_path_.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(open(err_path_.c_str(), O_WRONLY), STDERR_FILENO);
    leave(main());
  }
}

Process::Process(const std::vector<std::string>& arguments, const std::string& program)
    : Process([&] { return become(program, arguments); }) {}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove(out_path_);
  std::filesystem::remove(err_path_);
}

void Process::send(int signal) { kill(pid_, signal); }

bool Process::wait_for_error_output(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (read(err_path_).find(text) == std::string::npos) {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid != 0 || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void wait_until(const std::function<bool()>& happened) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waited in vain");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Finished Process::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  Finished finished;
  if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  finished.out = read(out_path_);
  finished.err = read(err_path_);
  return finished;
}

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Finished run(const std::vector<std::string>& arguments) {
  return run_after([] {}, arguments);
}

Finished run_after(const std::function<void()>& change, const std::vector<std::string>& arguments) {
  const bool forks = has_one_thread();
  return Process([&] {
           change();
           return forks ? main_of(arguments) : become(NSIMPLEX_EXECUTABLE, arguments);
         })
      .wait();
}

Finished run_program(const std::string& program, const std::vector<std::string>& arguments) {
  return Process(arguments, program).wait();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void expect_refused(std::vector<std::string> arguments, const std::string& out,
                    const std::string& says) {
  arguments.insert(arguments.end(), {"--out", out});
  const Finished finished = run(arguments);
  EXPECT_EQ(finished.code, 2) << says;
  EXPECT_EQ(lines_of(finished.err).size(), 1U) << finished.err;
  EXPECT_THAT(finished.err, ::testing::HasSubstr(says));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace nsimplex::cli::testing
