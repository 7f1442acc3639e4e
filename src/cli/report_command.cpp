#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/python_program.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions : CommonOptions {
  std::string directory;
};

int run_report(const ReportOptions& options) {
  if (!fs::is_directory(options.directory)) {
    throw InputError(fmt::format("DIR: '{}' is not a directory", options.directory));
  }
  const int code =
      run_python({.command = "report",
                  .module = "nsimplex.report.__main__",
                  .package = "matplotlib",
                  .extra = "plots",
                  .arguments = {fs::absolute(options.directory).lexically_normal().string()}});
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
