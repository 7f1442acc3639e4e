#include "cli/run_log.h"

#include <fmt/format.h>

#include <stdexcept>

#include "support/error.h"

namespace nsimplex::cli {

RunLog::RunLog(const CommonOptions& options) : json_(options.json) {
  if (options.out.empty()) return;
  make_run_directory(options.out);
  std::ofstream(options.out + "/config.toml") << "# " << options.command_line << "\n"
                                              << options.config_toml;
  file_.open(options.out + "/metrics.jsonl", std::ios::trunc);
  if (!file_) throw InputError(fmt::format("--out: cannot write {}/metrics.jsonl", options.out));
}

void RunLog::write(const Json& line, bool shown) {
  if (json_ && shown) print_json_line(line);
  if (!file_.is_open()) return;
  file_ << line.dump() << std::endl;
  if (!file_) throw std::runtime_error("metrics.jsonl: cannot write (disk full?)");
}

}  // namespace nsimplex::cli
