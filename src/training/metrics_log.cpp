#include "training/metrics_log.h"

#include <filesystem>
#include <fstream>

namespace nsimplex::training {
namespace {

using Json = nlohmann::ordered_json;

// Bytes of the leading whole lines whose step is at most `step`.
int64_t valid_prefix(const std::string& path, int64_t step) {
  if (!std::filesystem::is_regular_file(path)) return 0;  // opening a pipe would wait
  std::ifstream file(path, std::ios::binary);
  int64_t size = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    // An ordered object would look through all its names for each that comes.
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) break;
    if (json["step"].get<int64_t>() > step) break;
    size += static_cast<int64_t>(line.size()) + 1;
  }
  return size;
}

}  // namespace

Json to_json(const Metrics& metrics) {
  Json json = {{"kind", kMetricsKind},
               {"step", metrics.step},
               {"train_loss", metrics.train_loss},
               {"val_loss", nullptr}};
  if (metrics.val_loss) json["val_loss"] = *metrics.val_loss;
  json["tokens_per_second"] = metrics.tokens_per_second;
  if (metrics.auxiliary_loss) json["auxiliary_loss"] = *metrics.auxiliary_loss;
  return json;
}

MetricsLog::MetricsLog(const std::string& path, int64_t step)
    : file_(path, valid_prefix(path, step)) {}

void MetricsLog::append(const Metrics& metrics) { file_.append(to_json(metrics).dump()); }

}  // namespace nsimplex::training
