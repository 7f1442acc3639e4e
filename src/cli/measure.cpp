#include "cli/measure.h"

#include <algorithm>
#include <chrono>

#include "cli/interrupt.h"

namespace nsimplex::cli {
namespace {

double milliseconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& contestants,
                                        int rounds, const std::function<void(int)>& between) {
  interrupt::defer();
  for (const auto& contestant : contestants) {
    contestant();
    interrupt::check();
  }
  std::vector<std::vector<double>> times(contestants.size());
  for (int round = 1; round <= rounds && !interrupt::requested(); ++round) {
    std::vector<double> of_round;
    for (const auto& contestant : contestants) {
      of_round.push_back(milliseconds_of(contestant));
      if (interrupt::requested()) break;
    }
    if (of_round.size() < contestants.size()) break;  // only whole rounds are compared
    for (size_t i = 0; i < of_round.size(); ++i) times[i].push_back(of_round[i]);
    between(round);
  }
  std::vector<double> medians;
  for (const auto& of_contestant : times) {
    if (of_contestant.empty()) throw Interrupted();
    medians.push_back(median(of_contestant));
  }
  return medians;
}

}  // namespace nsimplex::cli
