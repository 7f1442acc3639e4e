#include "cli/transfer_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "cli/output.h"
#include "cli/statements.h"

namespace nsimplex::cli {
namespace {

using analysis::Statement;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

BestRate best_of(const TransferCell& cell, const std::vector<TransferPoint>& points,
                 const std::set<double>& rates) {
  BestRate best{.cell = cell, .rate = kNan, .val_loss = kNan};
  for (const double rate : rates) {
    double sum = 0;
    int64_t seeds = 0;
    bool stable = true;
    for (const TransferPoint& point : points) {
      if (!(point.cell == cell) || point.rate != rate) continue;
      sum += point.val_loss;
      ++seeds;
      stable = stable && point.stable;
    }
    if (seeds == 0) continue;
    if (stable) best.largest_stable = rate;
    const double mean = sum / static_cast<double>(seeds);
    if (std::isfinite(mean) && !(mean >= best.val_loss)) {
      best.rate = rate;
      best.val_loss = mean;
    }
  }
  best.bracketed = best.rate > *rates.begin() && best.rate < *rates.rbegin();
  return best;
}

std::vector<TransferCell> cells_of(const std::vector<TransferPoint>& points) {
  std::vector<TransferCell> cells;
  for (const TransferPoint& point : points) {
    if (std::ranges::find(cells, point.cell) == cells.end()) cells.push_back(point.cell);
  }
  return cells;
}

}  // namespace

std::string name(const TransferCell& cell) {
  return fmt::format("{} {} x {}", cell.scale, cell.heads, cell.head_dim);
}

Json to_json(const TransferCell& cell) {
  return {{"analysis", "transfer"},    {"scale", cell.scale},
          {"axis", cell.axis},         {"heads", cell.heads},
          {"head_dim", cell.head_dim}, {"dim", cell.heads * cell.head_dim}};
}

Json to_json(const BestRate& best) {
  Json line = to_json(best.cell);
  line.update({{"best_rate", best.rate},
               {"best_loss", best.val_loss},
               {"largest_stable_rate", best.largest_stable},
               {"bracketed", best.bracketed},
               {"moved", best.moved}});
  return line;
}

TransferSummary summarize(const std::vector<TransferPoint>& points) {
  std::set<double> rates;
  for (const TransferPoint& point : points) rates.insert(point.rate);
  const auto place = [&](double rate) { return std::distance(rates.begin(), rates.find(rate)); };
  TransferSummary summary;
  std::vector<std::string> names;
  const BestRate* base = nullptr;
  const std::vector<TransferCell> cells = cells_of(points);
  summary.best.reserve(cells.size());
  for (const TransferCell& cell : cells) {
    BestRate& best = summary.best.emplace_back(best_of(cell, points, rates));
    if (cell.axis == kTransferBase) {
      base = &best;
      continue;
    }
    const std::string text =
        fmt::format("best rate within a step of the smallest model's: {} scales, more {}",
                    cell.scale, cell.axis);
    if (std::ranges::find(names, text) == names.end()) {
      names.push_back(text);
      summary.statements.emplace_back(text);
    }
    const bool known = base && std::isfinite(best.rate) && std::isfinite(base->rate);
    if (known) best.moved = place(best.rate) - place(base->rate);
    const auto steps = static_cast<double>(std::abs(best.moved));
    summary.statements.back().add(known && steps <= 1, known ? 1 - steps : kNan);
  }
  return summary;
}

std::string text_of(const TransferSummary& summary) {
  Table table(
      {"scale", "grew", "heads", "head dim", "best rate", "loss", "steps moved", "stable to"});
  for (const BestRate& best : summary.best) {
    const TransferCell& cell = best.cell;
    table.add({cell.scale, cell.axis, fmt::format("{}", cell.heads),
               fmt::format("{}", cell.head_dim),
               fmt::format("{:.3g}{}", best.rate, best.bracketed ? "" : " (end)"),
               fmt::format("{:.4f}", best.val_loss), fmt::format("{:+}", best.moved),
               fmt::format("{:.3g}", best.largest_stable)});
  }
  return table.text() + "\n" + statements_table(summary.statements);
}

}  // namespace nsimplex::cli
