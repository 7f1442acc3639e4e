// Declares the models and results of `lab transfer`.

#pragma once

#include <string>
#include <vector>

#include "analysis/statement.h"
#include "cli/output.h"

namespace nsimplex::cli {

/// The smallest model, from which every axis grows.
inline constexpr const char* kTransferBase = "base";

/// A model of a learning-rate transfer.
struct TransferCell {
  std::string scale, axis;  ///< axis: the direction of growth; kTransferBase for the smallest
  int64_t heads = 1, head_dim = 1;

  bool operator==(const TransferCell&) const = default;
};

/// "unit 2 x 16": scale, heads, head dim.
std::string name(const TransferCell& cell);
Json to_json(const TransferCell& cell);

/// One training at one rate.
struct TransferPoint {
  TransferCell cell;
  double rate = 0;
  double val_loss = 0;  ///< NaN if it diverged
  bool stable = false;
};

struct BestRate {
  TransferCell cell;
  double rate = 0, val_loss = 0;  ///< means over the seeds; NaN if all rates diverged
  double largest_stable = 0;      ///< the largest rate at which every seed was stable; 0: none
  bool bracketed = false;         ///< whether rates on both sides of the best one were tried
  int64_t moved = 0;              ///< steps of the ladder from the best rate of the smallest model
};
Json to_json(const BestRate& best);

struct TransferSummary {
  std::vector<BestRate> best;  ///< in the order of the cells

  /// For every scale and axis: the best rate is within one step of the ladder of the smallest
  /// model's. Each larger model is a draw with slack 1 - |steps|.
  std::vector<analysis::Statement> statements;
};

/// Of all points, the seeds of a cell and rate together. A rate at which a seed diverged is never
/// best.
TransferSummary summarize(const std::vector<TransferPoint>& points);

/// Two tables for people.
std::string text_of(const TransferSummary& summary);

}  // namespace nsimplex::cli
