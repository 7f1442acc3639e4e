// The function check_causal_graph() and its operator: a test of a known graph.

#include <ATen/ATen.h>
#include <nsimplex/causal_effects.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "causal/effects/graph_tests.h"
#include "causal/graph/acyclic.h"
#include "causal/graph/partial_graph.h"
#include "causal/tensors.h"
#include "support/interruptible.h"
#include "support/number_text.h"
#include "support/random.h"

namespace nsimplex {
namespace {

using at::Tensor;
using namespace causal;

constexpr int64_t kMostPermutations = 100'000;
constexpr size_t kShownTests = 8;  // in a sentence

// An acyclic graph with the edges of one whose directions may be open. Throws InputError.
Matrix directed_graph(const char* argument, const Tensor& graph) {
  const Matrix given = view_matrix(graph);
  if (causal_order(given)) return given;
  std::optional<Matrix> member = PartialGraph(given).member();
  if (!member) throw InputError(std::string(argument).append(": expected no cycle"));
  return *std::move(member);
}

int64_t below(std::span<const TestedPair> tests, double level) {
  return std::ranges::count_if(tests, [&](const auto& each) { return each.p_value < level; });
}

// The tests for which `wanted` holds of the p-value after Holm's correction, the smallest first.
template <class Wanted>
std::vector<PairTest> chosen(const std::vector<TestedPair>& tests, Wanted&& wanted) {
  const std::vector<double> adjusted = holm_adjusted(tests);
  std::vector<PairTest> found;
  for (size_t k = 0; k < tests.size(); ++k) {
    const TestedPair& own = tests[k];
    if (!wanted(adjusted[k])) continue;
    found.push_back({own.first, own.second, own.given, own.correlation, own.p_value, adjusted[k]});
  }
  std::ranges::stable_sort(found, {}, &PairTest::p_value);
  return found;
}

class Findings {
 public:
  explicit Findings(const std::vector<std::string>& names) : names_(names) {}

  std::vector<std::string> of(const GraphCheck& found, double level) const {
    const std::string at = number_text("%.3g", level);
    std::vector<std::string> said;
    said.push_back(found.violated.empty()
                       ? c10::str("The table contradicts none of ", found.independences,
                                  " independences that the graph implies, at the level ", at)
                       : c10::str("The table contradicts ", found.violated.size(), " of ",
                                  found.independences,
                                  " independences that the graph implies, at the level ", at,
                                  "; an edge may be missing between ",
                                  pairs(found.violated, " and ", &PairTest::adjusted)));
    said.push_back(found.superfluous.empty()
                       ? c10::str("Every one of the ", found.edges, " edges is needed")
                       : c10::str(found.superfluous.size(), " of ", found.edges,
                                  " edges may be superfluous, because the table fits as well "
                                  "without: ",
                                  pairs(found.superfluous, " -> ", &PairTest::p_value)));
    const double permuted = found.permuted_bic.mean().item<double>();
    said.push_back(
        c10::str("BIC of the graph: ", number_text("%.1f", found.bic),
                 "; of permuted ones on average ", number_text("%.1f", permuted),
                 std::isnan(found.learned_bic)
                     ? ""
                     : "; of the learned graph " + number_text("%.1f", found.learned_bic)));
    said.push_back(c10::str(number_text("%.3g", 100 * found.p_value),
                            "% of graphs with permuted names violate no more independences"));
    return said;
  }

 private:
  std::string name(int64_t column) const {
    return names_.empty() ? c10::str("x", column) : names_[static_cast<size_t>(column)];
  }

  std::string pairs(const std::vector<PairTest>& tests, const char* between,
                    double PairTest::* p) const {
    std::string shown;
    for (size_t k = 0; k < std::min(tests.size(), kShownTests); ++k) {
      shown += c10::str(k > 0 ? ", " : "", name(tests[k].first), between, name(tests[k].second),
                        number_text(" (p = %.1g)", tests[k].*p));
    }
    const size_t more = tests.size() - std::min(tests.size(), kShownTests);
    return more > 0 ? c10::str(shown, " and ", more, " more") : shown;
  }

  const std::vector<std::string>& names_;
};

// Figures of the graph with its names permuted.
void add_permuted(GraphCheck& found, const Covariance& covariance, const Matrix& graph,
                  const GraphCheckOptions& options) {
  RandomStream random(static_cast<uint64_t>(options.seed));
  std::vector<int64_t> names(static_cast<size_t>(graph.rows()));
  found.permuted_bic = at::empty({options.permutations}, at::kDouble);
  found.permuted_violations = at::empty({options.permutations}, at::kDouble);
  int64_t as_good = 1;  // the graph itself
  for (int64_t k = 0; k < options.permutations; ++k) {
    if (options.checkpoint) options.checkpoint();
    std::iota(names.begin(), names.end(), int64_t{0});
    for (size_t at = names.size(); at > 1; --at) {
      std::swap(names[at - 1], names[static_cast<size_t>(random.below(static_cast<int64_t>(at)))]);
    }
    const TestedGraph other = tested_graph(covariance, renamed(graph, names));
    const int64_t violations = below(other.independences, options.level);
    found.permuted_bic[k] = other.bic;
    found.permuted_violations[k] = static_cast<double>(violations);
    as_good += violations <= found.violations;
  }
  found.p_value = static_cast<double>(as_good) / static_cast<double>(options.permutations + 1);
}

}  // namespace

GraphCheck check_causal_graph(const Tensor& table, const Tensor& graph,
                              const GraphCheckOptions& options) {
  const auto [given, edges] = checked_table_and_graph("[check_causal_graph] ", table, graph);
  const int64_t rows = given.size(0), count = given.size(1);
  TORCH_CHECK_VALUE(rows >= 4, "[check_causal_graph] table: expected at least 4 rows, got ", rows);
  TORCH_CHECK_VALUE(options.level > 0 && options.level < 1,
                    "[check_causal_graph] level: expected a number in (0, 1), got ", options.level);
  TORCH_CHECK_VALUE(options.permutations >= 1 && options.permutations <= kMostPermutations,
                    "[check_causal_graph] permutations: expected 1 to ", kMostPermutations,
                    ", got ", options.permutations);
  Tensor learned;
  if (options.learned.defined()) {
    learned = checked_graph("[check_causal_graph] learned", options.learned);
    TORCH_CHECK_VALUE(learned.size(0) == count, "[check_causal_graph] learned: expected one over ",
                      count, " columns, got ", learned.size(0));
  }
  return as_function("check_causal_graph", [&] {
    if (!options.names.empty()) require_one_per_column("names", options.names.size(), count);
    require_room("table", {count, count});
    const Tensor values = times_power(given, -large_exponent(given));
    const Covariance covariance = covariance_of(view_matrix(values));
    const Matrix directed = directed_graph("graph", edges);
    const TestedGraph tested = tested_graph(covariance, directed);
    GraphCheck found{
        .violated = chosen(tested.independences, [&](double p) { return p < options.level; }),
        .independences = std::ssize(tested.independences),
        .superfluous = {},
        .edges = std::ssize(tested.edges),
        .bic = tested.bic,
        .learned_bic = std::nan(""),
        .permuted_bic = {},
        .permuted_violations = {},
        .violations = below(tested.independences, options.level),
        .p_value = 1,
        .findings = {}};
    // An edge is kept by its own test: a correction would call weak edges superfluous.
    for (const PairTest& each : chosen(tested.edges, [](double /*p*/) { return true; })) {
      if (each.p_value >= options.level) found.superfluous.push_back(each);
    }
    std::ranges::reverse(found.superfluous);
    if (learned.defined()) {
      found.learned_bic = tested_graph(covariance, directed_graph("learned", learned)).bic;
    }
    add_permuted(found, covariance, directed, options);
    found.findings = Findings(options.names).of(found, options.level);
    return found;
  });
}

namespace {

struct TestTables {
  Tensor pairs, given, numbers;
};

// Pairs [k, 2], which columns are given [k, M], and correlation, p-value and adjusted p-value.
TestTables tables_of(const std::vector<PairTest>& tests, int64_t count) {
  const int64_t size = std::ssize(tests);
  TestTables found{at::empty({size, 2}, at::kLong), at::zeros({size, count}, at::kBool),
                   at::empty({size, 3}, at::kDouble)};
  for (int64_t k = 0; k < size; ++k) {
    const PairTest& each = tests[static_cast<size_t>(k)];
    found.pairs[k][0] = each.first;
    found.pairs[k][1] = each.second;
    for (const int64_t column : each.given) found.given[k][column] = true;
    found.numbers[k][0] = each.correlation;
    found.numbers[k][1] = each.p_value;
    found.numbers[k][2] = each.adjusted;
  }
  return found;
}

// The tables of violated independences and of superfluous edges; the numbers of independences,
// edges and violations; BIC of the graph and of the learned one, and the p-value; the permuted
// figures; the findings.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, std::vector<int64_t>,
           std::vector<double>, Tensor, Tensor, std::vector<std::string>>
check_operator(const Tensor& table, const Tensor& graph, const std::optional<Tensor>& learned,
               std::vector<std::string> names, double level, int64_t permutations, int64_t seed) {
  const Interruptible interruptible;
  const GraphCheck found = check_causal_graph(table, graph,
                                              {.level = level,
                                               .permutations = permutations,
                                               .seed = seed,
                                               .learned = learned.value_or(Tensor()),
                                               .names = std::move(names),
                                               .checkpoint = [&] { interruptible.check(); }});
  const TestTables violated = tables_of(found.violated, graph.size(0)),
                   superfluous = tables_of(found.superfluous, graph.size(0));
  return {violated.pairs,
          violated.given,
          violated.numbers,
          superfluous.pairs,
          superfluous.given,
          superfluous.numbers,
          {found.independences, found.edges, found.violations},
          {found.bic, found.learned_bic, found.p_value},
          found.permuted_bic,
          found.permuted_violations,
          found.findings};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def(
      "causal_check_graph(Tensor table, Tensor graph, Tensor? learned, str[] names, float level, "
      "int permutations, int seed) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, int[], "
      "float[], Tensor, Tensor, str[])",
      TORCH_FN(check_operator));
}

}  // namespace
}  // namespace nsimplex
