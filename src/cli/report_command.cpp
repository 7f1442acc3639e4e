// The command `report`: one page about a run.

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/python_program.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions : CommonOptions {
  std::string directory;
  std::vector<std::string> columns;
};

int run_report(const ReportOptions& options) {
  if (!fs::is_directory(options.directory)) {
    throw InputError(fmt::format("DIR: '{}' is not a directory", options.directory));
  }
  std::vector<std::string> arguments = {
      fs::absolute(options.directory).lexically_normal().string()};
  // As one word, since a name may begin with a dash.
  for (const std::string& column : options.columns) arguments.push_back("--column=" + column);
  const int code = run_python({.command = "report",
                               .module = "nsimplex.report.__main__",
                               .package = "matplotlib",
                               .extra = "plots",
                               .arguments = std::move(arguments)});
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
                   "nsimplex report runs/graph --column Mek --column Raf\n"
                   "NSIMPLEX_PYTHON=/usr/bin/python3 nsimplex report runs/demo",
       .acts = {.out = false, .seed = false, .threads = false}},
      options, run_report);
  add_argument(command, "DIR", options->directory, "Run directory; report.html is written into it");
  command
      .add_option("--column", options->columns,
                  "Show the strongest part of a learned graph around this column; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

}  // namespace nsimplex::cli
