#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nsimplex::analysis {

/// A statement put to the test: draws, those that violate it, and how much room the others leave.
class Statement {
 public:
  /// `share`: of the draws that has to hold; 1 for a theorem.
  explicit Statement(std::string name, double share = 1.0)
      : name_(std::move(name)), share_(share) {}

  /// One draw. `slack` is whatever the statement's room is measured by; NaN has no part in the
  /// median.
  void add(bool holds, double slack);

  /// One draw of left <= right, both >= 0. It is violated where left > right (1 + tolerance), or
  /// where either is NaN; its slack is right / left.
  void add_bound(double left, double right, double tolerance = 1e-9);

  const std::string& name() const { return name_; }
  int64_t draws() const { return draws_; }
  int64_t violations() const { return violations_; }

  /// Which draw was the first violation, counted from 0.
  std::optional<int64_t> first_violation() const { return first_violation_; }

  /// Whether enough draws held, and there was one.
  bool holds() const;

  /// Share of the draws that held; NaN without draws.
  double share() const;

  /// The middle slack, the lower one of the two where they are an even number; NaN without any.
  double median_slack() const;

 private:
  std::string name_;
  double share_;
  int64_t draws_ = 0, violations_ = 0;
  std::optional<int64_t> first_violation_;
  std::vector<double> slacks_;
};

}  // namespace nsimplex::analysis
