#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/build_python.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "support/error.h"
#include "support/executable.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions : CommonOptions {
  std::string directory;
};

// The interpreter runs isolated (-I): neither the current folder nor the environment adds to its
// imports. The program adds two folders: the package that was built with this executable, and the
// user's own packages. If the package or matplotlib is missing, it prints one line instead of a
// traceback.
constexpr char kProgram[] = R"(
import site, sys
package = sys.argv.pop(1)
if package:
    sys.path.insert(0, package)
sys.path.append(site.getusersitepackages())
try:
    from nsimplex.report.__main__ import main
except ImportError as error:
    sys.exit(f"nsimplex: report needs the Python packages nsimplex and matplotlib ({error}); in nsimplex's "
             f"folder: {sys.executable} -m pip install --no-build-isolation . matplotlib")
sys.exit(main())
)";

// $NSIMPLEX_PYTHON, which the wheel's script sets to its own; otherwise the interpreter of the
// build.
std::string python() {
  const char* named = std::getenv("NSIMPLEX_PYTHON");
  if (named && *named) return named;
  if (*kBuildPython) return kBuildPython;
  throw std::runtime_error("report needs a Python with nsimplex; name it in NSIMPLEX_PYTHON");
}

// An executable in a build folder uses the package that was built with it.
std::string own_package() {
  const fs::path package = executable_folder().parent_path() / "python";
  return fs::exists(package / "nsimplex") ? package.string() : "";
}

// Runs the page maker and returns its exit code. It shares our standard error and ends with us.
int run_python(const std::string& interpreter, const std::string& directory) {
  const std::string package = own_package();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it ended before the line above
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execlp(interpreter.c_str(), interpreter.c_str(), "-I", "-c", kProgram, package.c_str(),
           directory.c_str(), nullptr);
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
    print_json_line("report", {{"report", page}});
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
       .summary = "Write one self-contained page about a run: curves, samples, rates, machine",
       .examples = "nsimplex report runs/first\n"
                   "NSIMPLEX_PYTHON=/usr/bin/python3 nsimplex report runs/demo",
       .acts = {.out = false, .seed = false, .threads = false}},
      options, run_report);
  command.add_option("DIR", options->directory, "Run directory; report.html is written into it")
      ->type_name("")
      ->required();
}

}  // namespace nsimplex::cli
