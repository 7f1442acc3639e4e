#include "training/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "support/error.h"

namespace nsimplex::training {
namespace {

using Json = nlohmann::ordered_json;

// Bytes of the leading whole lines whose step is at most `step`.
int64_t valid_prefix(const std::string& path, int64_t step) {
  std::ifstream file(path, std::ios::binary);
  int64_t size = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) break;
    if (json["step"].get<int64_t>() > step) break;
    size += static_cast<int64_t>(line.size()) + 1;
  }
  return size;
}

}  // namespace

Json to_json(const Metrics& metrics) {
  Json json = {{"step", metrics.step}, {"train_loss", metrics.train_loss}, {"val_loss", nullptr}};
  if (metrics.val_loss) json["val_loss"] = *metrics.val_loss;
  json["tokens_per_second"] = metrics.tokens_per_second;
  if (metrics.auxiliary_loss) json["auxiliary_loss"] = *metrics.auxiliary_loss;
  return json;
}

MetricsLog::MetricsLog(const std::string& path, int64_t step) : path_(path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw InputError("cannot write " + path + ": " + std::strerror(errno));
  if (::ftruncate(file_, valid_prefix(path, step)) != 0) {
    const int error = errno;
    ::close(file_);
    throw InputError("cannot write " + path + ": " + std::strerror(error));
  }
}

MetricsLog::~MetricsLog() { ::close(file_); }

void MetricsLog::append(const Metrics& metrics) {
  const std::string line = to_json(metrics).dump() + "\n";
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written >= 0 && written < static_cast<ssize_t>(line.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(line.size())) fail();
}

void MetricsLog::sync() {
  if (::fsync(file_) != 0) fail();
}

void MetricsLog::fail() const {
  throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
}

}  // namespace nsimplex::training
