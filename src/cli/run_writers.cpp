// Starts the process that hands the lines of a run to TensorBoard, Weights & Biases or MLflow.

#include "cli/run_writers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/run_folder.h"
#include "cli/toml.h"
#include "io/input_file.h"
#include "support/error.h"

namespace nsimplex::cli {
namespace {

PythonProgram follower(const CommonOptions& options) {
  return {.command = "--log",
          .module = "nsimplex._followed_run",
          .package = "",
          .extra = "",
          .arguments = {options.folder(), fmt::format("{}", fmt::join(options.log, ",")),
                        options.resume.empty() ? "no" : "yes"}};
}

// Those in config.toml of the run that continues.
std::vector<std::string> recorded(const std::string& folder) {
  std::vector<TomlEntry> entries;
  try {
    entries = parse_toml(io::read_text(folder + "/" + kConfigFile));
  } catch (const InputError&) {
    return {};  // the command says what is wrong with the folder
  }
  const auto found = std::ranges::find(entries, "log", &TomlEntry::name);
  return found == entries.end() ? std::vector<std::string>{} : found->values;
}

}  // namespace

RunWriters::RunWriters(const CommonOptions& options) : program_(follower(options)) {}

void RunWriters::begin() {
  if (begun_) return;
  program_.tell("begin");
  begun_ = true;
}

std::unique_ptr<RunWriters> start_writers(CommonOptions& options) {
  if (options.log.empty() && !options.resume.empty()) options.log = recorded(options.resume);
  if (options.log.empty() || !options.ranks->writes()) return nullptr;
  return std::make_unique<RunWriters>(options);
}

}  // namespace nsimplex::cli
