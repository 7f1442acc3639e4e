#include "causal/structure/additive_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "causal/graphs/paths.h"
#include "causal/structure/edge_price.h"

namespace nsimplex::causal {
namespace {

constexpr int64_t kAllCandidates = 50;   // columns up to which all may become parents
constexpr int64_t kSomeCandidates = 30;  // of a column, beyond
constexpr double kNever = -std::numeric_limits<double>::infinity();

class AdditiveSearch {
 public:
  AdditiveSearch(AdditiveRegression& regression, const AllowedEdges& edges, int64_t observations,
                 const std::function<void()>& checkpoint)
      : regression_(regression),
        edges_(edges),
        observations_(static_cast<double>(observations)),
        level_(edge_level(edges.features(), kFalseEdges)),
        checkpoint_(checkpoint),
        paths_(edges.features()),
        parents_(static_cast<size_t>(edges.features())),
        left_(Vector::Ones(edges.features())),
        gains_(Matrix::Constant(edges.features(), edges.features(), kNever)) {
    const int64_t features = edges.features();
    for (int64_t effect = 0; effect < features; ++effect) {
      for (int64_t cause = 0; cause < features; ++cause) {
        if (edges.required(cause, effect)) add(cause, effect);
      }
    }
    const Matrix alone = regression.unexplained_by_one();
    for (int64_t effect = 0; effect < features; ++effect) {
      for (const int64_t cause : candidates(effect, alone)) gains_(cause, effect) = 0;
      update(effect);
    }
  }

  ParentLists run() {
    Eigen::Index cause = 0, effect = 0;
    while (gains_.maxCoeff(&cause, &effect) > 0) {
      if (checkpoint_) checkpoint_();
      if (paths_.leads(effect, cause)) {
        gains_(cause, effect) = kNever;
        continue;
      }
      add(cause, effect);
      update(effect);
    }
    for (int64_t column = 0; column < edges_.features(); ++column) shrink(column);
    return std::move(parents_);
  }

 private:
  std::vector<int64_t>& parents(int64_t column) { return parents_[static_cast<size_t>(column)]; }

  // The allowed causes of a column, the best ones by themselves where there are too many.
  std::vector<int64_t> candidates(int64_t effect, const Matrix& alone) const {
    std::vector<int64_t> result;
    for (int64_t cause = 0; cause < edges_.features(); ++cause) {
      if (edges_.allowed(cause, effect) && !edges_.required(cause, effect)) result.push_back(cause);
    }
    if (edges_.features() <= kAllCandidates || std::ssize(result) <= kSomeCandidates) return result;
    std::ranges::nth_element(result, result.begin() + kSomeCandidates, {},
                             [&](int64_t cause) { return alone(cause, effect); });
    result.resize(kSomeCandidates);
    return result;
  }

  int64_t coefficients(const std::vector<int64_t>& causes) const {
    return std::accumulate(causes.begin(), causes.end(), int64_t{0}, [&](int64_t sum, int64_t at) {
      return sum + regression_.parameters(at);
    });
  }

  // Degrees of freedom that so many coefficients leave.
  double free(int64_t coefficients) const {
    return observations_ - 1 - static_cast<double>(coefficients);
  }

  // The least fall of n log v at which `more` coefficients are significant, `all` with them.
  double price(int64_t all, int64_t more) {
    const auto [at, added] = prices_.try_emplace({all, more});
    if (added) {
      const double ratio = f_test_ratio(free(all), static_cast<double>(more), level_);
      at->second = -observations_ * std::log(ratio);
    }
    return at->second;
  }

  void add(int64_t cause, int64_t effect) {
    std::vector<int64_t>& set = parents(effect);
    set.insert(std::ranges::lower_bound(set, cause), cause);
    left_[effect] = regression_.unexplained(effect, set);
    gains_(cause, effect) = kNever;
    paths_.add({cause, effect});
  }

  // What each candidate of a column would add to its likelihood, less its price.
  void update(int64_t effect) {
    const std::vector<int64_t>& now = parents(effect);
    const int64_t used = coefficients(now);
    for (int64_t cause = 0; cause < edges_.features(); ++cause) {
      double& gain = gains_(cause, effect);
      if (gain == kNever) continue;
      const int64_t more = regression_.parameters(cause);
      // A fit needs more rows than coefficients, by a margin that leaves the noise a variance.
      if (more == 0 || free(used + more) < observations_ / 3) {
        gain = kNever;
        continue;
      }
      std::vector<int64_t> set = now;
      set.insert(std::ranges::lower_bound(set, cause), cause);
      const double left = regression_.unexplained(effect, set);
      gain = observations_ * std::log(left_[effect] / left) - price(used + more, more);
    }
  }

  void shrink(int64_t column) {
    std::vector<int64_t>& set = parents(column);
    for (;;) {
      if (checkpoint_) checkpoint_();
      const double free_now = free(coefficients(set));
      double worst = level_, without_worst = 0;
      int64_t least = -1;
      for (const int64_t cause : set) {
        if (edges_.required(cause, column)) continue;
        std::vector<int64_t> others = set;
        std::erase(others, cause);
        const double without = regression_.unexplained(column, others);
        const double chance =
            f_test_level(free_now, static_cast<double>(regression_.parameters(cause)),
                         std::min(left_[column] / without, 1.0));
        if (chance <= worst) continue;
        worst = chance;
        without_worst = without;
        least = cause;
      }
      if (least < 0) return;
      std::erase(set, least);
      left_[column] = without_worst;
    }
  }

  AdditiveRegression& regression_;
  const AllowedEdges& edges_;
  double observations_, level_;
  const std::function<void()>& checkpoint_;
  Paths paths_;
  ParentLists parents_;
  Vector left_;   ///< of every column's variance
  Matrix gains_;  ///< of an edge; kNever where there is, or may be, none
  std::map<std::pair<int64_t, int64_t>, double> prices_;
};

}  // namespace

ParentLists additive_graph(AdditiveRegression& regression, const AllowedEdges& edges,
                           int64_t observations, const std::function<void()>& checkpoint) {
  return AdditiveSearch(regression, edges, observations, checkpoint).run();
}

}  // namespace nsimplex::causal
