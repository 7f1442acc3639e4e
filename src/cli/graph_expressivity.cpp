// The command `graph expressivity`: how many pairs of graphs equivariant layers distinguish.

#include <fmt/format.h>

#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "analysis/graph_network.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "equivariant/classes/equivariant_classes.h"
#include "equivariant/expressivity/colour_refinement.h"
#include "equivariant/expressivity/field_network.h"
#include "equivariant/expressivity/simplicial_refinement.h"
#include "support/error.h"
#include "support/parallel.h"
#include "support/stopwatch.h"

namespace nsimplex::cli {
namespace {

constexpr char kLinear[] = "linear", kPpgn[] = "ppgn", kSimplicial[] = "simplicial";

struct ExpressivityOptions : CommonOptions {
  std::vector<std::string> files;
  int64_t order = 3, layers = 5, control = 0;
  bool exact = false;
  std::string pairs = "auto", form = "linear", mask = "cliques", reduce = "softmax";

  bool simplicial() const { return form == kSimplicial; }
  bool attention() const { return form != kLinear && form != kPpgn && !simplicial(); }
  bool refines() const { return exact || simplicial(); }
};

// A network holds a few tensors of nodes^3 numbers of 8 bytes per thread: 1 GiB each at this size.
constexpr int64_t kMostNodes = 512;
// Largest number of rows for attention: softmax visits all pairs of rows, kernels keep look-ups.
constexpr int64_t kMostSoftmaxRows = 8000, kMostKernelRows = 50'000;
// Tuples of neighbours that a round of refinement visits in a graph, 16 bytes each for one node.
constexpr double kMostTuples = 1 << 24;

int64_t most_nodes(const ExpressivityOptions& options) {
  if (!options.attention()) return kMostNodes;
  const int64_t rows =
      options.form == name_of(AttentionForm::softmax) ? kMostSoftmaxRows : kMostKernelRows;
  const double nodes = std::pow(static_cast<double>(rows), 1. / static_cast<double>(options.order));
  return static_cast<int64_t>(nodes + 1e-9);
}

// Graphs in groups of equal size: each graph is compared with the others of its group.
struct GraphSet {
  std::string name;
  std::vector<io::SimpleGraph> graphs;
  int64_t group_size = 2;

  int64_t groups() const { return std::ssize(graphs) / group_size; }
  std::span<const io::SimpleGraph> group(int64_t index) const {
    return std::span(graphs).subspan(index * group_size, group_size);
  }
};

GraphSet read(const std::string& path, const ExpressivityOptions& options) {
  GraphSet set{path, io::read_graphs(path)};
  const int64_t count = std::ssize(set.graphs);
  if (count < 2) {
    throw InputError(fmt::format("{}: expected two graphs or more, got {}", path, count));
  }
  const bool consecutive =
      options.pairs == "auto" ? path.ends_with(".npy") : options.pairs == "consecutive";
  if (consecutive && count % 2 != 0) {
    throw InputError(
        fmt::format("{}: expected pairs of consecutive graphs, got {} graphs", path, count));
  }
  for (int64_t g = 0; g < count; ++g) {
    if (const int64_t nodes = set.graphs[g].nodes; nodes > most_nodes(options)) {
      throw InputError(fmt::format("{}: expected graphs of {} nodes at most, got {} in graph {}",
                                   path, most_nodes(options), nodes, g));
    }
    if (!options.simplicial()) continue;
    const double tuples = equivariant::tuples_of_neighbours(set.graphs[g], options.order);
    if (tuples > kMostTuples) {
      throw InputError(fmt::format(
          "{}: expected graphs with {:.0f} tuples of neighbours at most, got {:.0f} in graph {}",
          path, kMostTuples, tuples, g));
    }
  }
  if (!consecutive) set.group_size = count;
  return set;
}

struct Kinds {
  // per graph; equal numbers in a group mean that the graphs are not distinguished
  std::vector<int64_t> numbers;
  int64_t layers = 0;  // of the deepest network that was needed
};

using Progress = std::function<void(int64_t)>;  // gets the number of finished graphs

std::vector<int64_t> refine(std::span<const io::SimpleGraph> graphs,
                            const ExpressivityOptions& options) {
  if (options.exact) return equivariant::refine_colours(graphs, options.order, interrupt::check);
  return equivariant::refine_simplicial_colours(
      graphs,
      {.order = options.order,
       .mask = parse_name<equivariant::SimplicialMask>("--mask", options.mask),
       .reduce = parse_name<equivariant::SimplicialReduce>("--reduce", options.reduce)},
      interrupt::check);
}

Kinds kinds_by_refinement(const GraphSet& set, const ExpressivityOptions& options,
                          const Progress& progress) {
  Kinds kinds{std::vector<int64_t>(set.graphs.size())};
  std::mutex mutex;
  int64_t done = 0;
  parallel_tasks(set.groups(), [&](int64_t group, int) {
    const auto own = refine(set.group(group), options);
    std::copy(own.begin(), own.end(), kinds.numbers.begin() + group * set.group_size);
    const std::lock_guard lock(mutex);
    progress(done += set.group_size);
  });
  return kinds;
}

Kinds kinds_by_network(const GraphSet& set, const ExpressivityOptions& options,
                       const Progress& progress) {
  const equivariant::FieldNetwork network({.order = options.order,
                                           .min_layers = options.layers,
                                           .seed = options.seed,
                                           .products = options.form == kPpgn});
  std::vector<equivariant::Fingerprint> fingerprints(set.graphs.size());
  std::mutex mutex;
  int64_t done = 0;
  parallel_tasks(std::ssize(set.graphs), [&](int64_t g, int) {
    fingerprints[g] = network(set.graphs[g], interrupt::check);
    const std::lock_guard lock(mutex);
    progress(++done);
  });
  std::map<equivariant::Fingerprint, int64_t> numbers;
  Kinds kinds;
  for (const equivariant::Fingerprint& fingerprint : fingerprints) {
    kinds.layers = std::max(kinds.layers, fingerprint.layers);
    kinds.numbers.push_back(numbers.try_emplace(fingerprint, std::ssize(numbers)).first->second);
  }
  return kinds;
}

struct PairsTold {
  int64_t pairs = 0, distinguished = 0, layers = 0;
};

// differ(i, j): whether graphs i and j are distinguished.
template <class Differ>
PairsTold count_pairs(const GraphSet& set, int64_t layers, const Differ& differ) {
  PairsTold outcome{.layers = layers};
  for (int64_t i = 0; i < std::ssize(set.graphs); ++i) {
    const int64_t end = (i / set.group_size + 1) * set.group_size;
    for (int64_t j = i + 1; j < end; ++j) {
      ++outcome.pairs;
      outcome.distinguished += differ(i, j);
    }
  }
  return outcome;
}

// One graph after the other, since the operators use all threads.
PairsTold compare_by_attention(const GraphSet& set, const ExpressivityOptions& options,
                               const Progress& progress) {
  const auto form = parse_name<AttentionForm>("--form", options.form);
  at::manual_seed(options.seed);  // the same network for every file
  analysis::GraphNetwork network(
      {.order = options.order, .form = form, .layers = options.layers, .seed = options.seed});
  std::vector<analysis::GraphReadout> readouts;
  for (const io::SimpleGraph& graph : set.graphs) {
    readouts.push_back(network(graph, interrupt::check));
    progress(std::ssize(readouts));
  }
  return count_pairs(set, options.layers, [&](int64_t i, int64_t j) {
    return set.graphs[i].nodes != set.graphs[j].nodes ||
           analysis::told_apart(readouts[i], readouts[j]);
  });
}

PairsTold compare(const GraphSet& set, const ExpressivityOptions& options) {
  ProgressBar bar(set.name, std::ssize(set.graphs), options.json);
  const Progress progress = [&](int64_t done) { bar.update(done); };
  if (options.attention()) return compare_by_attention(set, options, progress);
  const Kinds kinds = options.refines() ? kinds_by_refinement(set, options, progress)
                                        : kinds_by_network(set, options, progress);
  return count_pairs(set, kinds.layers,
                     [&](int64_t i, int64_t j) { return kinds.numbers[i] != kinds.numbers[j]; });
}

std::vector<GraphSet> sets_of(const ExpressivityOptions& options) {
  std::vector<GraphSet> sets;
  for (const std::string& path : options.files) sets.push_back(read(path, options));
  if (options.control > 0) {
    sets.push_back({"control", equivariant::control_pairs(options.control, options.seed)});
  }
  if (sets.empty()) throw InputError("FILE: expected a file of graphs, or --control");
  return sets;
}

int run_expressivity(const ExpressivityOptions& options) {
  // CLI11's excludes() would count a default in config.toml as given.
  if (options.exact && options.form != kLinear) {
    throw InputError("--exact: expected no --form with it, got " + options.form);
  }
  if (options.exact && options.control > 0) {
    throw InputError(
        "--exact: expected no --control with it, since 1-WL distinguishes those pairs by design");
  }
  if (options.order == 1 && !options.simplicial()) {
    throw InputError(fmt::format("--order: expected 2 or 3 with --form {}, got 1", options.form));
  }
  if (options.form == kPpgn && options.order != 2) {
    throw InputError(fmt::format("--form ppgn: expected --order 2 with it, got {}", options.order));
  }
  if (options.refines() && options.layers != ExpressivityOptions().layers) {
    throw InputError(fmt::format("--layers: expected no colour refinement, which has none, got {}",
                                 options.exact ? "--exact" : "--form simplicial"));
  }
  if (!options.simplicial() && (options.mask != "cliques" || options.reduce != "softmax")) {
    throw InputError("--mask, --reduce: expected --form simplicial with them, got " + options.form);
  }
  const std::vector<GraphSet> sets = sets_of(options);
  RunLog log(options);
  Table table({"file", "pairs", "distinguished", "layers", "seconds"});
  bool interrupted = false;
  for (const GraphSet& set : sets) {
    const Stopwatch watch;
    PairsTold outcome;
    try {
      outcome = compare(set, options);
    } catch (const Interrupted&) {
      interrupted = true;  // the files before are complete
      break;
    }
    const double seconds = watch.seconds();
    Json line{{"file", set.name},
              {"pairs", outcome.pairs},
              {"distinguished", outcome.distinguished},
              {"order", options.order},
              {"form", options.exact ? Json() : Json(options.form)},
              {"layers", options.refines() ? Json() : Json(outcome.layers)},
              {"seconds", seconds}};
    if (options.simplicial()) {
      line["mask"] = options.mask;
      line["reduce"] = options.reduce;
    }
    log.write("expressivity", line);
    table.add({set.name, fmt::format("{}", outcome.pairs), fmt::format("{}", outcome.distinguished),
               options.refines() ? "" : fmt::format("{}", outcome.layers),
               fmt::format("{:.1f}", seconds)});
  }
  if (!options.json) print(table.text());
  if (interrupted) throw Interrupted();
  return 0;
}

}  // namespace

void add_graph_expressivity(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ExpressivityOptions>();
  const auto positive = within(int64_t{1}, int64_t{1} << 20);
  CLI::App& command = add_command(
      parent, session,
      {.name = "expressivity",
       .summary = "Count the pairs of graphs that equivariant layers of an order distinguish",
       .examples = "nsimplex graph expressivity brec/basic.npy brec/str.npy --order 3\n"
                   "nsimplex graph expressivity sr251256.g6 --order 3 --exact --json\n"
                   "nsimplex graph expressivity --order 2 --control 100\n"
                   "nsimplex graph expressivity brec/*.npy --form simplicial --order 3"},
      options, run_expressivity);
  command
      .add_option("FILE", options->files, "Graphs in graph6: one per line, or strings in an npy")
      ->type_name("");
  command
      .add_option("--order", options->order,
                  "Order of the layers: 2 (all pairs of nodes) or 3 (all triples); N, 1 to 3, of "
                  "form simplicial")
      ->check(within(1, 3))
      ->capture_default_str();
  command
      .add_option("--layers", options->layers,
                  "Smallest number of layers; more are added until the number of distinct rows "
                  "stops growing")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--form", options->form,
                  "Form: linear (layers in exact integers, until nothing changes), softmax or "
                  "kernel (transformers in double with exactly --layers layers), ppgn (products of "
                  "matrices of pairs, in exact integers), simplicial (N-simplicial attention "
                  "between neighbours, by colour refinement)")
      ->check(one_of({kLinear, "softmax", "kernel", kPpgn, kSimplicial}))
      ->capture_default_str();
  command
      .add_option(
          "--mask", options->mask,
          "Tuples that a node attends to in form simplicial: cliques, neighbours (any of "
          "its neighbours), patterns (with a head and its mask per pattern of neighbours in the "
          "tuple)")
      ->check(one_of(names_of<equivariant::SimplicialMask>()))
      ->capture_default_str();
  command
      .add_option("--reduce", options->reduce,
                  "What form simplicial does with them: softmax (a mean per head) or sum")
      ->check(one_of(names_of<equivariant::SimplicialReduce>()))
      ->capture_default_str();
  command.add_flag("--exact", options->exact,
                   "Use colour refinement instead of layers: 1-WL for order 2, 3-WL for order 3");
  command
      .add_option("--control", options->control,
                  "Number of generated control pairs, which 1-WL distinguishes and degrees do not")
      ->check(positive);
  command
      .add_option("--pairs", options->pairs,
                  "Which graphs of a file are compared: consecutive, all (each with each) or auto "
                  "(consecutive in an npy, all otherwise)")
      ->check(one_of({"auto", "consecutive", "all"}))
      ->capture_default_str();
}

}  // namespace nsimplex::cli
