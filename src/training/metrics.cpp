#include "training/metrics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace nsimplex::training {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

int64_t pairs_of(int64_t count) { return count * (count - 1) / 2; }

// Calls step(positives, negatives) for the examples of each different score, the highest first.
template <class Step>
void by_falling_score(std::span<const double> scores, std::span<const uint8_t> positive,
                      Step&& step) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t begin = 0; begin < order.size();) {
    int64_t found[2] = {0, 0};
    size_t end = begin;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) {
      ++found[positive[order[end]] != 0];
    }
    step(found[1], found[0]);
    begin = end;
  }
}

}  // namespace

void BinaryCounts::add(bool predicted, bool actual) {
  ++(predicted ? (actual ? true_positive : false_positive)
               : (actual ? false_negative : true_negative));
}

double BinaryCounts::accuracy() const {
  return ratio(true_positive + true_negative,
               true_positive + true_negative + false_positive + false_negative);
}

double BinaryCounts::precision() const {
  return ratio(true_positive, true_positive + false_positive);
}

double BinaryCounts::recall() const { return ratio(true_positive, true_positive + false_negative); }

double BinaryCounts::f1() const {
  return ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative);
}

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

double area_under_roc(std::span<const double> scores, std::span<const uint8_t> positive) {
  int64_t positives = 0, negatives = 0;
  double above = 0.0;  // pairs of a positive and a negative below it
  by_falling_score(scores, positive, [&](int64_t more_positives, int64_t more_negatives) {
    above += static_cast<double>(more_negatives) *
             (static_cast<double>(positives) + 0.5 * static_cast<double>(more_positives));
    positives += more_positives;
    negatives += more_negatives;
  });
  if (positives == 0 || negatives == 0) return kNone;
  return above / (static_cast<double>(positives) * static_cast<double>(negatives));
}

double average_precision(std::span<const double> scores, std::span<const uint8_t> positive) {
  int64_t positives = 0, seen = 0;
  double area = 0.0;
  by_falling_score(scores, positive, [&](int64_t more_positives, int64_t more_negatives) {
    positives += more_positives;
    seen += more_positives + more_negatives;
    area += static_cast<double>(more_positives) * ratio(positives, seen);
  });
  return positives == 0 ? kNone : area / static_cast<double>(positives);
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
