// Computes statistics, fits and classification metrics, and logs training metrics to a file.

#include "train/scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "support/infinity.h"

namespace nsimplex::training {
namespace {

// Student's t at 97.5 % for 1 .. 30 degrees of freedom. For more, the normal value is at most 2 %
// too low.
constexpr std::array<double, 30> kStudent = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Sum of (a - mean a) (b - mean b).
double products(std::span<const double> a, std::span<const double> b) {
  const double of_a = mean(a), of_b = mean(b);
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - of_a) * (b[i] - of_b);
  return sum;
}

}  // namespace

Interval confidence_interval(std::span<const double> values) {
  const size_t n = values.size();
  if (n == 0) return {std::numeric_limits<double>::quiet_NaN(), -kInfinity, kInfinity, 0};
  const double middle = mean(values);
  if (n == 1) return {middle, -kInfinity, kInfinity, 1};
  const double deviation = spread(values).deviation;
  const double t = n - 2 < kStudent.size() ? kStudent[n - 2] : kNormal;
  const double half = t * deviation / std::sqrt(static_cast<double>(n));
  return {middle, middle - half, middle + half, static_cast<int64_t>(n)};
}

Spread spread(std::span<const double> values) {
  if (values.empty()) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {kNone, kNone};
  }
  const auto others = static_cast<double>(std::max<size_t>(values.size() - 1, 1));
  return {mean(values), std::sqrt(products(values, values) / others)};
}

Line fit_line(std::span<const double> x, std::span<const double> y) {
  const double xy = products(x, y), xx = products(x, x), yy = products(y, y);
  const double slope = xy / xx;
  return {slope, mean(y) - slope * mean(x), yy > 0 ? xy * xy / (xx * yy) : 1.0};
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

int64_t pairs_of(int64_t count) { return count * (count - 1) / 2; }

}  // namespace

ClassF1 class_f1(std::span<const int64_t> predicted, std::span<const int64_t> actual) {
  if (predicted.empty()) return {kNone, kNone};
  std::map<int64_t, BinaryCounts> classes;
  int64_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    if (predicted[i] == actual[i]) {
      ++right;
      ++classes[actual[i]].true_positive;
    } else {
      ++classes[predicted[i]].false_positive;
      ++classes[actual[i]].false_negative;
    }
  }
  double sum = 0.0;
  for (const auto& [number, counts] : classes) sum += counts.f1();
  return {ratio(right, std::ssize(predicted)), sum / static_cast<double>(classes.size())};
}

PartitionScores partition_scores(std::span<const int64_t> predicted,
                                 std::span<const int64_t> actual) {
  std::map<std::pair<int64_t, int64_t>, int64_t> both;
  std::map<int64_t, int64_t> of_predicted, of_actual;
  for (size_t i = 0; i < predicted.size(); ++i) {
    ++both[{predicted[i], actual[i]}];
    ++of_predicted[predicted[i]];
    ++of_actual[actual[i]];
  }
  const auto joined = [](const auto& parts) {
    int64_t pairs = 0;
    for (const auto& [part, count] : parts) pairs += pairs_of(count);
    return pairs;
  };
  const int64_t all = pairs_of(std::ssize(predicted)), together = joined(both),
                in_predicted = joined(of_predicted), in_actual = joined(of_actual);
  if (together == in_predicted && together == in_actual) return {1.0, 1.0, 1.0};
  const double expected =
      static_cast<double>(in_predicted) * static_cast<double>(in_actual) / static_cast<double>(all);
  const double mean = 0.5 * static_cast<double>(in_predicted + in_actual);
  return {ratio(2 * together, in_predicted + in_actual),
          ratio(all + 2 * together - in_predicted - in_actual, all),
          (static_cast<double>(together) - expected) / (mean - expected)};
}

namespace {

using Json = nlohmann::ordered_json;

// The number of bytes of the leading complete lines whose step is at most `step`.
int64_t valid_prefix(const std::string& path, int64_t step) {
  if (!std::filesystem::is_regular_file(path)) return 0;  // opening a pipe would wait
  std::ifstream file(path, std::ios::binary);
  int64_t size = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    // An ordered JSON object would search all its names for each new one.
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
