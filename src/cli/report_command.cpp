#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/json_lines.h"
#include "cli/output.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions : CommonOptions {
  std::string directory;
};

// The package may be missing, or lack matplotlib: one line instead of a traceback.
constexpr char kProgram[] = R"(
import sys
try:
    from nsimplex.report.__main__ import main
except ImportError as error:
    sys.exit(f"nsimplex: report needs the Python packages nsimplex and matplotlib ({error}); in nsimplex's "
             f"folder: {sys.executable} -m pip install --no-build-isolation . matplotlib")
sys.exit(main())
)";

fs::path executable_folder() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : executable.parent_path();
}

// $NSIMPLEX_PYTHON, else the .venv of the source tree that this executable was built in, else
// python3.
std::string python() {
  const char* named = std::getenv("NSIMPLEX_PYTHON");
  if (named && *named) return named;
  for (fs::path folder = executable_folder(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const fs::path candidate = folder / ".venv/bin/python";
    if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return "python3";
}

// An executable in a build folder brings the package that was built with it.
void prefer_own_package() {
  const fs::path package = executable_folder().parent_path() / "python";
  if (!fs::exists(package / "nsimplex")) return;
  const char* path = std::getenv("PYTHONPATH");
  const std::string value = package.string() + (path && *path ? std::string(":") + path : "");
  setenv("PYTHONPATH", value.c_str(), 1);
}

// Runs the page maker and returns its exit code; its standard error is ours.
int run_python(const std::string& interpreter, const std::string& directory) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    prefer_own_package();
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execlp(interpreter.c_str(), interpreter.c_str(), "-c", kProgram, directory.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return 1;
  if (WEXITSTATUS(status) == 127) {
    throw std::runtime_error(fmt::format(
        "cannot run '{}'; name a Python with nsimplex in NSIMPLEX_PYTHON", interpreter));
  }
  return WEXITSTATUS(status);
}

int run_report(const ReportOptions& options) {
  if (!fs::is_directory(options.directory)) {
    throw InputError(fmt::format("DIR: '{}' is not a directory", options.directory));
  }
  const std::string directory = fs::absolute(options.directory).lexically_normal().string();
  const int code = run_python(python(), directory);
  if (code != 0) return code;
  const std::string page = (fs::path(options.directory) / "report.html").string();
  if (options.json) {
    print_json_line({{"report", page}});
  } else {
    print(page + "\n");
  }
  return 0;
}

}  // namespace

void add_report_command(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "report",
       .summary = "One self-contained page about a run: curves, samples, rates, machine",
       .examples = "nsimplex report runs/first\n"
                   "NSIMPLEX_PYTHON=/usr/bin/python3 nsimplex report runs/demo",
       .acts = {.out = false, .seed = false, .threads = false}},
      options, run_report);
  command.add_option("DIR", options->directory, "Run directory; report.html is written into it")
      ->type_name("")
      ->required();
}

}  // namespace nsimplex::cli
