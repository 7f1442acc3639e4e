#include "cli/smoothing_masks.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "analysis/mask_families.h"
#include "analysis/mask_hypergraph.h"
#include "cli/interrupt.h"
#include "graph/generators.h"

namespace nsimplex::cli {
namespace {

using analysis::KeySets;
using analysis::MaskRows;
using at::Tensor;

// [S 3.1]'s constant, of Gharan and Trevisan.
constexpr double kConstant = 2 * 48;

struct Family {
  std::string name;
  std::vector<int64_t> edges;
};

// Every pair of a clique on nodes first .. last - 1.
void add_clique(std::vector<int64_t>& edges, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    for (int64_t j = i + 1; j < last; ++j) edges.insert(edges.end(), {i, j});
  }
}

// Connected graphs on n nodes, a power of two.
std::vector<Family> families(int64_t n, uint64_t seed) {
  Family chain{"chain", {}}, cycle{"cycle", {}}, star{"star", {}}, complete{"complete", {}},
      tree{"tree", {}}, grid{"grid", {}}, cube{"hypercube", {}}, barbell{"barbell", {}},
      grown{"preferential attachment", graph::preferential_attachment(n, 2, seed)};
  int64_t side = 1;
  while (side * side * 4 <= n) side *= 2;
  for (int64_t i = 1; i < n; ++i) {
    chain.edges.insert(chain.edges.end(), {i - 1, i});
    star.edges.insert(star.edges.end(), {0, i});
    tree.edges.insert(tree.edges.end(), {(i - 1) / 2, i});
    if (i % side != 0) grid.edges.insert(grid.edges.end(), {i - 1, i});
    if (i >= side) grid.edges.insert(grid.edges.end(), {i - side, i});
    for (int64_t bit = 1; bit <= i; bit *= 2) {
      if ((i & bit) != 0) cube.edges.insert(cube.edges.end(), {i - bit, i});
    }
  }
  cycle.edges = chain.edges;
  cycle.edges.insert(cycle.edges.end(), {0, n - 1});
  add_clique(complete.edges, 0, n);
  add_clique(barbell.edges, 0, n / 2);
  add_clique(barbell.edges, n / 2, n);
  barbell.edges.insert(barbell.edges.end(), {n / 2 - 1, n / 2});
  return {chain, cycle, star, complete, tree, grid, cube, barbell, grown};
}

class MaskExperiment {
 public:
  MaskExperiment(Verdicts& verdicts, const std::function<void(const Json&)>& write)
      : verdicts_(verdicts), write_(write) {}

  void test_graph(const Family& family, int64_t nodes) {
    const int64_t edges = std::ssize(family.edges) / 2;
    const std::vector<int64_t> rows{0, edges}, all{0, nodes};
    const Lengths found =
        measure({{family.edges.data(), edges, 2}, rows, all, Symmetry::undirected});
    const auto radius = static_cast<double>(found.radius);
    const auto diameter = static_cast<double>(found.diameter);
    verdicts_.test(
        "rad <= diam <= 96 ln(n) / lambda_2, graphs", [&] { return file(family.edges, 2); },
        [&](analysis::Statement& each) {
          each.add(found.connected() && radius <= diameter && diameter <= found.bound,
                   found.bound / diameter);
        });
    write(family.name, 1, nodes, found);
  }

  void test_mask(const std::string& family, const MaskRows& mask) {
    interrupt::check();
    const Lengths found = measure(mask.view());
    if (found.radius >= 0 && found.connected()) {
      verdicts_.test(
          "rad <= 96 ln(n) / lambda_2, one-way masks",
          [&] { return file(mask.values, mask.order + 1); },
          [&](analysis::Statement& each) {
            each.add_bound(static_cast<double>(found.radius), found.bound);
          });
    }
    write(family, mask.order, mask.nodes(), found);
  }

 private:
  struct Lengths {
    int64_t radius, diameter;
    double gap, bound;

    bool connected() const { return diameter >= 0; }
  };

  static Lengths measure(const graph::TupleView& view) {
    const analysis::MaskHypergraph found = analysis::mask_hypergraph(view);
    const int64_t n = view.nodes();
    const double gap = analysis::spectral_gap(found.skeleton, 0, n);
    return {analysis::extent_of(found.receivers, 0, n).radius,
            analysis::extent_of(found.skeleton, 0, n).diameter, gap,
            kConstant * std::log(static_cast<double>(n)) / gap};
  }

  static io::Safetensors file(const std::vector<int64_t>& rows, int64_t width) {
    io::Safetensors file;
    file.tensors.push_back({"tuples", at::tensor(rows, at::kLong).view({-1, width})});
    return file;
  }

  void write(const std::string& family, int64_t order, int64_t nodes, const Lengths& found) const {
    const auto length = [](int64_t value) { return value < 0 ? Json() : Json(value); };
    write_({{"draw", "mask"},
            {"family", family},
            {"order", order},
            {"nodes", nodes},
            {"radius", length(found.radius)},
            {"diameter", length(found.diameter)},
            {"lambda_2", found.gap},
            {"bound", found.bound}});
  }

  Verdicts& verdicts_;
  const std::function<void(const Json&)>& write_;
};

// Every position sees itself and the one before; the last sees all.
KeySets summary_keys(int64_t nodes) {
  KeySets keys = analysis::window_keys(nodes, 2);
  keys.back() = analysis::window_keys(nodes, nodes).back();
  return keys;
}

}  // namespace

void test_masks(uint64_t seed, Verdicts& verdicts, const std::function<void(const Json&)>& write) {
  MaskExperiment experiment(verdicts, write);
  RandomStream random(seed);
  for (int64_t nodes = 8; nodes <= 512; nodes *= 4) {
    for (const Family& family : families(nodes, seed)) {
      interrupt::check();
      experiment.test_graph(family, nodes);
    }
  }
  for (int64_t order = 1; order <= 3; ++order) {
    for (const int64_t nodes : {8, 16, 32, 64}) {
      const auto both = [&](const std::string& name, const KeySets& keys) {
        experiment.test_mask(name, analysis::product_mask(keys, order));
        if (order > 1) experiment.test_mask(name + ", paths", analysis::path_mask(keys, order));
      };
      both("window 2", analysis::window_keys(nodes, 2));
      both("window 4", analysis::window_keys(nodes, 4));
      both("band 1", analysis::band_keys(nodes, 1));
      both("4 random keys", analysis::random_keys(nodes, 4, random));
    }
  }
  // The tuples of the last position join all, but nothing comes back from there: the skeleton is a
  // complete graph, while information goes from one position to the next.
  for (const int64_t nodes : {40, 160, 640}) {
    experiment.test_mask("window 2 and a summary", analysis::product_mask(summary_keys(nodes), 2));
  }
}

}  // namespace nsimplex::cli
