#include "training/metrics.h"

#include <limits>
#include <map>
#include <utility>

namespace nsimplex::training {
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

}  // namespace nsimplex::training
