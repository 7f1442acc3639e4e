// The function causal_warnings(): what a table has that its fit does not assume. And its operator.

#include <ATen/ATen.h>
#include <nsimplex/causal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>
#include <vector>

#include "causal/structure/fit_arguments.h"
#include "causal/structure/linear_model.h"
#include "causal/structure/told_directions.h"
#include "causal/tables/derived_columns.h"
#include "causal/tables/usable_table.h"
#include "causal/tensors.h"
#include "support/number_text.h"
#include "support/random.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr int64_t kLeastRows = 20;      // for tests of rows
constexpr int64_t kMostCompared = 200;  // columns
constexpr double kOrderLevel = 1e-3;    // of the test of all columns

// Ranks of the numbers of each column, centred and of mean square 1; equal numbers, such as those of
// columns of few values, have one rank.
Tensor ranks_of(const Tensor& values) {
  const int64_t rows = values.size(0);
  Tensor ranks = at::empty_like(values);
  for (int64_t column = 0; column < values.size(1); ++column) {
    const Tensor own = values.select(1, column).contiguous();
    const Tensor sorted = std::get<0>(own.sort());
    const Tensor first = at::searchsorted(sorted, own, false, /*right=*/false);
    const Tensor last = at::searchsorted(sorted, own, false, /*right=*/true);
    ranks.select(1, column).copy_((first + last).to(at::kDouble) / 2);
  }
  ranks = ranks - ranks.mean(0);
  return ranks / ranks.square().mean(0).sqrt().clamp_min(1.0 / static_cast<double>(rows));
}

// The number that a standard normal variable exceeds with this probability.
double normal_quantile(double probability) {
  return -std::numbers::sqrt2 *
         at::erfinv(at::scalar_tensor(2 * probability - 1, at::kDouble)).item<double>();
}

std::vector<int64_t> continuous_columns(const CausalFitOptions& options, int64_t count) {
  std::vector<int64_t> found;
  for (int64_t column = 0; column < count && std::ssize(found) < kMostCompared; ++column) {
    const bool other = !options.kinds.empty() &&
                       options.kinds[static_cast<size_t>(column)] != ColumnKind::continuous;
    if (!other) found.push_back(column);
  }
  return found;
}

// `sorted`: somebody has sorted the rows by a column, whose values then resemble each other.
std::string order_finding(const Tensor& ranks, bool sorted) {
  const int64_t rows = ranks.size(0), columns = ranks.size(1);
  const Tensor own = (ranks.narrow(0, 1, rows - 1) * ranks.narrow(0, 0, rows - 1)).mean(0);
  const double least = normal_quantile(kOrderLevel / static_cast<double>(columns)) /
                       std::sqrt(static_cast<double>(rows));
  const auto alike = own.gt(least).sum().item<int64_t>();
  if (alike < (sorted ? 2 : 1)) return "";
  return c10::str("The rows have an order, as of time or of batches: the noises of ", alike, " of ",
                  columns, " columns resemble those of the row before (the largest correlation is ",
                  number_text("%.2f", own.max().item<double>()), ")");
}

std::string scale_finding(const Tensor& noise) {
  const int64_t rows = noise.size(0), columns = noise.size(1);
  if (columns < 3) return "";
  const Tensor ranks = ranks_of(noise.abs());
  const Tensor correlations = ranks.t().mm(ranks) / static_cast<double>(rows);
  const Tensor upper = at::triu_indices(columns, columns, 1, at::kLong);
  const double median = correlations.index({upper[0], upper[1]}).median().item<double>();
  if (median < std::max(0.1, 3 / std::sqrt(static_cast<double>(rows)))) return "";
  return c10::str(
      "The rows have unequal scales: where the noise of one column is large, so are those of the "
      "others (the median correlation of their sizes is ",
      number_text("%.2f", median), ")");
}

bool is_sorted_by_a_column(const Tensor& table) {
  const Tensor steps = table.diff(1, 0);
  return steps.ge(0).all(0).logical_or(steps.le(0).all(0)).any().item<bool>();
}

// Pairs of equal values among the rows, as a share of all pairs.
double equal_share(const Tensor& column) {
  const Tensor counts = std::get<2>(at::_unique2(column, true, false, /*return_counts=*/true));
  const auto rows = static_cast<double>(column.numel());
  const Tensor pairs = counts * (counts - 1);
  return pairs.sum().to(at::kDouble).item<double>() / (rows * (rows - 1));
}

// The smallest step between different values.
double step_of(const Tensor& column) {
  const Tensor values = std::get<0>(at::_unique(column));
  return values.numel() < 2 ? 0 : values.diff().min().item<double>();
}

std::string repeat_finding(const Tensor& table, const Tensor& variances) {
  const int64_t rows = table.size(0), columns = table.size(1);
  std::unordered_map<uint64_t, int64_t> seen;
  const Tensor bits = table.contiguous().view(at::kLong);
  const int64_t* value = bits.const_data_ptr<int64_t>();
  int64_t repeated = 0;
  double pairs = 0;
  for (int64_t row = 0; row < rows; ++row) {
    uint64_t hash = 0;
    for (int64_t column = 0; column < columns; ++column) {
      hash = random_bits(hash, static_cast<uint64_t>(*value++));
    }
    const int64_t before = seen[hash]++;
    repeated += before > 0 ? 1 : 0;
    pairs += static_cast<double>(before);
  }
  constexpr int64_t kLeastShare = 20;  // one in so many rows
  if (repeated == 0 || repeated * kLeastShare < rows) return "";
  double expected = 0.5 * static_cast<double>(rows) * static_cast<double>(rows - 1);
  double least = 1;
  for (int64_t column = 0; column < columns; ++column) {
    const double equal = equal_share(table.select(1, column));
    least = std::min(least, equal);
    // Two normal noises of deviation s, rounded to steps d, are equal with probability d / (2 s
    // sqrt(pi)) for small d.
    const double deviation = std::sqrt(variances[column].item<double>());
    const double rounded = step_of(table.select(1, column)) /
                           (2 * std::sqrt(std::numbers::pi) * std::max(deviation, 1e-300));
    expected *= std::min(1.0, std::max(rounded, equal));
  }
  // Rows of few values, such as counts that are mostly 0, are equal for other reasons, too.
  constexpr double kManyValues = 0.05;
  if (least > kManyValues || pairs <= 10 * expected + 2) return "";
  return c10::str(repeated, " of ", rows, " rows repeat earlier ones");
}

// Sentences in which `name` has the names of the columns.
class Warnings {
 public:
  Warnings(const Tensor& table, const CausalFit& fit, const CausalFitOptions& options)
      : table_(times_power(table, -large_exponent(table))),
        fit_(fit),
        options_(options),
        names_(options.names.empty() ? column_names(table.size(1)) : options.names) {}

  std::vector<std::string> all() {
    derived();
    rows();
    directions();
    columns();
    return std::move(found_);
  }

 private:
  void add(std::string sentence) {
    if (!sentence.empty()) found_.push_back(std::move(sentence));
  }

  bool whole() const { return !table_.isnan().any().item<bool>(); }

  void derived() {
    const Tensor values = table_.contiguous();
    for (const DerivedColumn& each : derived_columns(view_matrix(values))) {
      add(c10::str(relation_text(each, names_),
                   ": edges among these columns are arbitrary and may turn others; leave out ",
                   names_[static_cast<size_t>(each.column)]));
    }
  }

  void rows() {
    if (table_.size(0) < kLeastRows || !whole()) return;
    const LinearModel model =
        linear_model(table_, fit_.adjacency, options_.groups, options_.targets);
    add(repeat_finding(table_, model.variances));
    const std::vector<int64_t> chosen = continuous_columns(options_, table_.size(1));
    if (!options_.targets.empty() || chosen.size() < 2) return;
    const Tensor own = at::tensor(at::IntArrayRef(chosen), at::kLong);
    const Tensor noise = noises(table_, model, options_.groups).index_select(1, own);
    add(order_finding(ranks_of(noise), is_sorted_by_a_column(table_)));
    add(scale_finding(noise));
  }

  void directions() {
    constexpr int64_t kMostOrdered = 1000;  // columns
    constexpr int64_t kFewEdges = 5;        // fewer than variance_order() speaks of
    const auto edges = fit_.adjacency.count_nonzero().item<int64_t>();
    const auto open = [&](bool scaled) {
      const Tensor told = told_graph(fit_, options_, scaled);
      return told.logical_and(told.t()).sum().item<int64_t>() == 2 * edges;
    };
    if (edges == 0 || fit_.adjacency.size(0) > kMostOrdered) return;
    const bool scaled = options_.standardise || has_one_variance(table_);
    if (open(scaled)) {
      add(edges == 1 ? "The table does not tell the direction of the edge"
                     : c10::str("The table tells the direction of none of the ", edges, " edges"));
    } else if (edges < kFewEdges && open(/*scaled=*/true)) {
      add("Variances alone tell the direction of the edges, so units of columns may have decided "
          "it");
    }
  }

  void columns() {
    std::string few;
    for (int64_t column = 0; column < table_.size(1); ++column) {
      const Tensor values = table_.select(1, column);
      const std::string& name = names_[static_cast<size_t>(column)];
      if (!options_.kinds.empty() || !values.frac().eq(0).all().item<bool>()) continue;
      const auto different = std::get<0>(at::_unique(values)).numel(), rows = values.numel();
      const double range = (values.max() - values.min()).item<double>();
      if (rows >= kLeastRows && different == rows && range == static_cast<double>(rows - 1)) {
        add(c10::str(name, " numbers the rows, as an id or a time does"));
      }
      constexpr int64_t kFewValues = 10, kRowsPerValue = 5;
      if (different > kFewValues || rows < kRowsPerValue * different) continue;
      few += c10::str(few.empty() ? "" : ", ", name, " (", different, " values)");
    }
    if (!few.empty()) {
      add(c10::str(
          "Columns of few whole numbers have linear effects and Gaussian noise here; kinds "
          "make them binary, counts or categories: ",
          few));
    }
  }

  Tensor table_;
  const CausalFit& fit_;
  const CausalFitOptions& options_;
  std::vector<std::string> names_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> causal_warnings(const Tensor& table, const CausalFit& fit,
                                         const CausalFitOptions& options) {
  const auto [values, graph] =
      checked_table_and_graph("[causal_warnings] ", table, fit.adjacency, Gaps::kept);
  return as_function("causal_warnings", [&] {
    check_fit_options(options, values.size(0), values.size(1));
    if (!options.names.empty()) {
      require_one_per_column("names", options.names.size(), values.size(1));
    }
    CausalFit own = fit;
    own.adjacency = graph;
    const CausalFitOptions settled = settled_options(options, fit.choices);
    return Warnings(values, own, settled).all();
  });
}

namespace causal {
namespace {

struct WarningsCall {
  Tensor table;
  FitArguments fit;
  Tensor graph;
  std::string_view model;
  std::vector<std::string> names;

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.table), FitArguments::fields(self.fit),
                          std::tie(self.graph, self.model, self.names));
  }
};

std::vector<std::string> warnings_operator(const WarningsCall& call) {
  const Tensor values = checked_matrix("[causal_warnings] table", call.table);
  CausalFitOptions options = fit_options("causal_warnings", call.fit, values.size(0));
  options.names = call.names;
  CausalFit fit{};
  fit.adjacency = call.graph;
  fit.model = call.model;
  return causal_warnings(values, fit, options);
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  const std::string schema = "causal_warnings(Tensor table, " + fit_schema() +
                             ", Tensor graph, str model, str[] names) -> str[]";
  m.def(schema.c_str(), TORCH_FN(flat<&warnings_operator>));
}

}  // namespace
}  // namespace causal
}  // namespace nsimplex
