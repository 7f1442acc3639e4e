#include "cli/run_log.h"

#include <exception>

#include "cli/run_folder.h"
#include "cli/text_flags.h"
#include "io/atomic_file.h"
#include "io/folders.h"

namespace nsimplex::cli {

RunLog::RunLog(const CommonOptions& options) : json_(options.json) {
  show_readings();
  if (options.out.empty()) return;
  make_run_directory(options.out);
  lock_.emplace(options.out);
  refuse_earlier_run(options, {});  // another run may have ended since the command looked
  io::write_text(options.out + "/config.toml", config_file(options));
  file_.emplace(options.out + "/metrics.jsonl", /*keep=*/0);
  io::sync_folder_of(options.out + "/metrics.jsonl");
  synced_ = std::chrono::steady_clock::now();
}

RunLog::~RunLog() noexcept(false) {
  if (!file_) return;
  try {
    file_->sync();
  } catch (const std::exception&) {
    // What is on its way already says why the run ends; otherwise nobody else would say that lines
    // may be lost.
    if (std::uncaught_exceptions() == 0) throw;
  }
}

void RunLog::write(const Json& line, bool shown) {
  if (json_ && shown) print_json_line(line);
  if (!file_) return;
  file_->append(line.dump(-1, ' ', false, Json::error_handler_t::replace));
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < std::chrono::seconds(1)) return;
  file_->sync();
  synced_ = now;
}

}  // namespace nsimplex::cli
