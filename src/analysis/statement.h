// Declares a statement that random draws test.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex::analysis {

/// A statement that is tested: its draws, those that violate it, and the slack of the others.
class Statement {
 public:
  /// `share` of the draws must hold; 1 for a theorem.
  explicit Statement(std::string name, double share = 1.0)
      : name_(std::move(name)), share_(share) {}

  /// A statement that a paper makes in one place, "Prop. 4.1".
  Statement(std::string source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  /// Adds one draw. `slack` measures the statement's room; NaN is left out of the median.
  void add(bool holds, double slack);

  /// Adds one draw of left <= right, both >= 0. It is violated if left > right (1 + tolerance) or
  /// if either is NaN. Its slack is right / left.
  void add_bound(double left, double right, double tolerance = 1e-9);

  /// Adds one draw of a slack that should not be negative. It is violated if the slack is below
  /// 0 by more than rounding, 1e-12, or NaN.
  void add_slack(double slack);

  /// Where a paper makes the statement; empty for a statement of our own.
  const std::string& source() const { return source_; }
  const std::string& name() const { return name_; }
  int64_t draws() const { return draws_; }
  int64_t violations() const { return violations_; }

  /// The number of the first draw that violated it, counted from 0.
  std::optional<int64_t> first_violation() const { return first_violation_; }

  /// Whether enough draws held, and there was at least one.
  bool holds() const;

  /// Share of the draws that held; NaN without draws.
  double share() const;

  /// The median slack, the lower one of the two middle ones for an even number; NaN without any.
  double median_slack() const;

 private:
  std::string source_, name_;
  double share_ = 1.0;
  int64_t draws_ = 0, violations_ = 0;
  std::optional<int64_t> first_violation_;
  std::vector<double> slacks_;
};

}  // namespace nsimplex::analysis
