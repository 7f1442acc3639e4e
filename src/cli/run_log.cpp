#include "cli/run_log.h"

#include <fmt/format.h>

#include <stdexcept>

#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "io/atomic_file.h"
#include "support/error.h"

namespace nsimplex::cli {

RunLog::RunLog(const CommonOptions& options) : json_(options.json) {
  show_readings();
  if (options.out.empty()) return;
  make_run_directory(options.out);
  io::write_text(options.out + "/config.toml", config_file(options));
  file_.open(options.out + "/metrics.jsonl", std::ios::trunc);
  if (!file_) throw InputError(fmt::format("--out: cannot write {}/metrics.jsonl", options.out));
}

void RunLog::write(const Json& line, bool shown) {
  if (json_ && shown) print_json_line(line);
  if (!file_.is_open()) return;
  file_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  if (!file_) throw std::runtime_error("metrics.jsonl: cannot write (disk full?)");
}

}  // namespace nsimplex::cli
