// Counts the draws for which a statement holds, and how much room they leave.

#include "analysis/statement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/median.h"

namespace nsimplex::analysis {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void Statement::add(bool holds, double slack) {
  if (!holds && !first_violation_) first_violation_ = draws_;
  ++draws_;
  violations_ += !holds;
  if (!std::isnan(slack)) slacks_.push_back(slack);
}

void Statement::add_bound(double left, double right, double tolerance) {
  // 0 <= 0 leaves no room, and 0 / 0 would be undefined.
  add(left <= right * (1 + tolerance), left == right ? 1.0 : right / left);
}

void Statement::add_slack(double slack) {
  constexpr double kRounding = 1e-12;
  add(slack >= -kRounding, slack);
}

bool Statement::holds() const {
  const auto allowed = (1 - share_) * static_cast<double>(draws_);
  return draws_ > 0 && static_cast<double>(violations_) <= allowed + 1e-9;
}

double Statement::share() const {
  if (draws_ == 0) return kNan;
  return static_cast<double>(draws_ - violations_) / static_cast<double>(draws_);
}

double Statement::median_slack() const { return median(slacks_); }

}  // namespace nsimplex::analysis
