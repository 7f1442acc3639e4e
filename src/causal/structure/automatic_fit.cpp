// The estimator auto: it chooses kinds of columns, curves, and directions by noise.

#include "causal/structure/automatic_fit.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "causal/structure/curved_effects.h"
#include "causal/structure/prepare.h"
#include "causal/tables/kinds_of_values.h"
#include "causal/tables/usable_table.h"
#include "causal/tensors.h"
#include "support/number_text.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kMostCurved = 100, kMostTurned = 1000;  // columns
constexpr double kCurvatureLevel = 0.01;
constexpr size_t kShown = 8;  // names in a sentence

// "sick and well are binary; visits is a count".
std::string kinds_text(const std::vector<ColumnKind>& kinds, std::vector<std::string> names) {
  if (names.empty()) names = column_names(std::ssize(kinds));
  constexpr std::array kShownKinds{std::tuple{ColumnKind::binary, "binary", "binary"},
                                   std::tuple{ColumnKind::count, "a count", "counts"},
                                   std::tuple{ColumnKind::category, "a category", "categories"}};
  std::string text;
  for (const auto& [kind, one, several] : kShownKinds) {
    std::vector<std::string> own;
    for (size_t column = 0; column < kinds.size(); ++column) {
      if (kinds[column] == kind) own.push_back(names[column]);
    }
    if (own.empty()) continue;
    if (!text.empty()) text += "; ";
    for (size_t k = 0; k < std::min(own.size(), kShown); ++k) text += (k > 0 ? ", " : "") + own[k];
    if (own.size() > kShown) text += " and " + std::to_string(own.size() - kShown) + " more";
    text.append(own.size() == 1 ? " is " : " are ").append(own.size() == 1 ? one : several);
  }
  return text + ", by the values";
}

// The fit that the table calls for, of continuous columns of plain rows.
class ContinuousFit {
 public:
  ContinuousFit(TableView table, CausalFitOptions options,
                const std::function<CausalFit(const CausalFitOptions&)>& fit)
      : options_(std::move(options)), fit_(fit), table_(table), columns_(table.cols()) {}

  CausalFit best() {
    CausalFitOptions turning = options_;
    turning.orient_by_noise = options_.orient_by_noise || may_turn();
    CausalFit found = fit_(turning);
    if (found.interrupted) return found;
    if (found.noise) found.choices.findings.push_back(found.noise->finding);
    if (options_.orient_by_noise) return found;
    if (columns_ > kMostCurved) {
      found.choices.findings.push_back(
          "curves are looked for among at most 100 columns: nonlinear fits them in any table");
      return found;
    }
    const Matrix prepared = prepared_table(table_, /*standardise=*/true);
    const double p = curvature_p_value({prepared.data(), prepared.rows(), prepared.cols()},
                                       view_matrix(found.adjacency));
    if (p >= kCurvatureLevel) {
      found.choices.findings.push_back(
          "effects are lines: no curve explains a column better (p = " + number_text("%.2g)", p));
      return found;
    }
    CausalFitOptions curved = options_;
    curved.nonlinear = true;
    CausalFit other = fit_(curved);
    if (other.interrupted) return found;
    other.choices.findings.push_back("effects are curves: lines explain columns worse (p = " +
                                     number_text("%.2g)", p));
    return other;
  }

 private:
  bool may_turn() const { return table_.rows() >= 4 && columns_ <= kMostTurned; }

  CausalFitOptions options_;
  const std::function<CausalFit(const CausalFitOptions&)>& fit_;
  TableView table_;
  int64_t columns_;
};

}  // namespace

CausalFit automatic_fit(TableView table, const CausalFitOptions& options,
                        const std::function<CausalFit(const CausalFitOptions&)>& fit) {
  CausalFitOptions own = options;
  own.estimator = StructureEstimator::order;
  const bool gaps = options.missing == MissingValues::likelihood;
  if (options.nonlinear || !options.kinds.empty() || gaps) return fit(own);
  const bool may_have_kinds = !options.soft && !options.orient_by_noise;
  if (may_have_kinds && table.cols() <= kMostCurved) own.kinds = kinds_of_values(table);
  if (!own.kinds.empty()) {
    CausalFit found = fit(own);
    found.choices.findings.push_back(kinds_text(own.kinds, options.names));
    return found;
  }
  if (!options.groups.empty() || !options.targets.empty()) return fit(own);
  return ContinuousFit(table, own, fit).best();
}

}  // namespace nsimplex::causal
