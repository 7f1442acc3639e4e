// Runs a part of a command that is written in Python, and programs that run beside a command.

#include "cli/python_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "cli/build_facts.h"
#include "support/error.h"
#include "support/executable.h"
#include "support/log.h"

namespace nsimplex::cli {

// The parts of PythonCompanion::Process. It is known outside this file, so they cannot be unnamed.
namespace running {

// A process that is killed and collected if an exception ends its use.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    wait();
  }

  void signal(int number) const { kill(id_, number); }

  int wait() {
    int status = 0;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
    return status;
  }

  // Absent if it has not ended by then.
  std::optional<int> wait_until(std::chrono::steady_clock::time_point latest) {
    constexpr auto kPoll = std::chrono::milliseconds(20);
    int status = 0;
    while (waitpid(id_, &status, WNOHANG) != id_) {
      if (std::chrono::steady_clock::now() > latest) return std::nullopt;
      std::this_thread::sleep_for(kPoll);
    }
    id_ = 0;
    return status;
  }

 private:
  pid_t id_;
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { shut(); }

  int number() const { return number_; }
  void shut() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// A program that was started. Without pipes its input is that of this process, and its output is
// thrown away.
struct Started {
  std::string interpreter;
  Child child;
  Descriptor output, input;
};

}  // namespace running

namespace {

namespace fs = std::filesystem;
using running::Child, running::Descriptor, running::Started;

// The interpreter runs isolated (-I): neither the current folder nor the environment adds to its
// imports. The program adds two folders: the package that was built with this executable, and the
// user's own packages. If a package is missing, it prints one line instead of a traceback.
constexpr char kLoader[] = R"py(
import importlib, site, sys
folder, command, module, package, extra = sys.argv[1:6]
del sys.argv[1:6]
if folder:
    sys.path.insert(0, folder)
sys.path.append(site.getusersitepackages())
try:
    main = importlib.import_module(module).main
except ImportError as error:
    needs = f"packages nsimplex and {package}" if package else "package nsimplex"
    pip = f"{sys.executable} -m pip install"
    if package and (error.name or "").partition(".")[0] == package:
        install = f"{pip} {package} (the extra {extra})"
    else:
        own = f"'.[{extra}]'" if extra else "."
        install = f"in nsimplex's folder: {pip} --no-build-isolation {own}"
    sys.exit(f"nsimplex: {command} needs the Python {needs} ({error}); {install}")
sys.exit(main())
)py";

// $NSIMPLEX_PYTHON, which the wheel's script sets to its own; otherwise the interpreter of the
// build.
std::string interpreter(const std::string& command) {
  const char* named = std::getenv("NSIMPLEX_PYTHON");
  if (named && *named) return named;
  if (*kBuildPython) return kBuildPython;
  throw std::runtime_error(
      fmt::format("{} needs a Python with nsimplex; name it in NSIMPLEX_PYTHON", command));
}

// An executable in a build folder uses the package that was built with it. The library that a Python
// process has loaded is reached by a link in that package.
std::string own_package() {
  std::error_code error;
  const fs::path bin = fs::canonical(executable_folder(), error);
  if (error) return "";
  const fs::path package = bin.parent_path() / "python";
  return fs::exists(package / "nsimplex") ? package.string() : "";
}

using Taker = std::function<std::string(const Json&)>;

// A child that has ended does not read; read_lines() finds out.
void answer(int pipe, const std::string& text) {
  if (text.empty()) return;
  const std::string line = text + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t written = write(pipe, line.data() + sent, line.size() - sent);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    sent += static_cast<size_t>(written);
  }
}

void throw_error(const Json& error) {
  const std::string kind = error["kind"], text = error["text"];
  if (kind == "input") throw InputError(text);
  if (kind == "failed") throw std::runtime_error(text);
}

// Gives every line of the pipe to `take` until the other end is closed. A signal to this process is
// passed on once.
void read_lines(int pipe, int back, const Child& child, const Taker& take) {
  constexpr int kMilliseconds = 100;  // until a signal is seen
  std::string text;
  bool told = false;
  while (true) {
    if (!told && interrupt::requested()) {
      child.signal(SIGTERM);
      told = true;
    }
    pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kMilliseconds) <= 0) continue;
    std::array<char, 1 << 16> part;
    const ssize_t count = ::read(pipe, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.append(part.data(), static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                                    /*allow_exceptions=*/false);
      if (!line.is_object()) continue;
      if (line.contains("error")) throw_error(line["error"]);
      answer(back, take(line));
    }
    text.erase(0, begin);
  }
}

// In the new process: becomes the interpreter. It allocates nothing, since another thread may have
// held the allocator's lock.
[[noreturn]] void become(char* const* arguments, int input, int output, bool piped, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  if (piped) std::signal(SIGINT, SIG_IGN);
  if (piped) dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  execvp(arguments[0], arguments);
  _exit(127);
}

Started start(const PythonProgram& program, bool piped) {
  std::vector<std::string> words{interpreter(program.command),
                                 "-I",
                                 "-c",
                                 kLoader,
                                 own_package(),
                                 program.command,
                                 program.module,
                                 program.package,
                                 program.extra};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> out{-1, -1}, in{-1, -1};
  if (piped && (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(in.data(), O_CLOEXEC) != 0)) {
    throw std::runtime_error("cannot make a pipe");
  }
  Descriptor output(out[0]), child_input(in[0]), input(in[1]);
  const Descriptor child_output(piped ? out[1] : open("/dev/null", O_WRONLY | O_CLOEXEC));
  const pid_t parent = getpid(), id = fork();
  if (id < 0) throw std::runtime_error("cannot start a process");
  if (id == 0) {
    become(arguments.data(), child_input.number(), child_output.number(), piped, parent);
  }
  return {words.front(), Child(id), std::move(output), std::move(input)};
}

// The status of a program that has ended, unless it never was an interpreter.
void require_interpreter(int status, const std::string& interpreter) {
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 127) return;
  throw std::runtime_error(
      fmt::format("cannot run '{}'; name a Python with nsimplex in NSIMPLEX_PYTHON", interpreter));
}

}  // namespace

int run_python(const PythonProgram& program, const Taker& take) {
  if (take) interrupt::defer();
  Started started = start(program, take != nullptr);
  if (take) read_lines(started.output.number(), started.input.number(), started.child, take);
  const int status = started.child.wait();
  require_interpreter(status, started.interpreter);
  const bool exited = WIFEXITED(status);
  if (take && (exited ? WEXITSTATUS(status) == kInterruptedCode : interrupt::requested())) {
    throw Interrupted();
  }
  if (!exited && take) {
    throw std::runtime_error(
        fmt::format("the Python of {} ended by signal {}", program.command, WTERMSIG(status)));
  }
  return exited ? WEXITSTATUS(status) : 1;
}

struct PythonCompanion::Process {
  explicit Process(const PythonProgram& program) : started(start(program, /*piped=*/true)) {}

  Started started;
};

PythonCompanion::PythonCompanion(const PythonProgram& program)
    : command_(program.command), process_(std::make_unique<Process>(program)) {
  Started& started = process_->started;
  std::string first;
  char letter = 0;
  while (true) {
    const ssize_t count = ::read(started.output.number(), &letter, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || letter == '\n') break;
    first += letter;
  }
  const Json line = Json::parse(first, nullptr, /*allow_exceptions=*/false);
  if (line.is_object() && line.contains("error")) throw_error(line["error"]);
  if (line.is_object() && line.contains("ready")) return;
  started.input.shut();
  require_interpreter(started.child.wait(), started.interpreter);
  throw std::runtime_error(fmt::format("the Python of {} did not start", command_));
}

PythonCompanion::~PythonCompanion() {
  constexpr auto kPatience = std::chrono::seconds(60);
  Started& started = process_->started;
  started.input.shut();
  const std::optional<int> status =
      started.child.wait_until(std::chrono::steady_clock::now() + kPatience);
  if (!status) {
    log_line(fmt::format("warning: {} did not end within {} s", command_, kPatience.count()));
  } else if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
    log_line(fmt::format("warning: the Python of {} failed", command_));
  }
}

void PythonCompanion::tell(const std::string& line) {
  answer(process_->started.input.number(), line);
}

std::string text_of_table(const Json& rows) {
  const std::vector<std::vector<std::string>> cells = rows;
  Table table(cells.front());
  for (size_t row = 1; row < cells.size(); ++row) table.add(cells[row]);
  return table.text();
}

}  // namespace nsimplex::cli
