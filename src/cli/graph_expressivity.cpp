#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "equivariant/expressivity/colour_refinement.h"
#include "equivariant/expressivity/control_pairs.h"
#include "equivariant/expressivity/field_network.h"
#include "support/error.h"
#include "support/parallel.h"
#include "training/stopwatch.h"

namespace nsimplex::cli {
namespace {

struct ExpressivityOptions : CommonOptions {
  std::vector<std::string> files;
  int64_t order = 3, layers = 5, control = 0;
  bool exact = false;
  std::string pairs = "auto";
};

// A network holds a few tensors of nodes^3 numbers of 8 bytes for each thread: 1 GiB each here.
constexpr int64_t kMostNodes = 512;

// Graphs in groups of as many: each is compared with the others of its group.
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
    if (const int64_t nodes = set.graphs[g].nodes; nodes > kMostNodes) {
      throw InputError(fmt::format("{}: expected graphs of {} nodes at most, got {} in graph {}",
                                   path, kMostNodes, nodes, g));
    }
  }
  if (!consecutive) set.group_size = count;
  return set;
}

struct Kinds {
  std::vector<int64_t> numbers;  // of each graph; those of a group and a kind are not told apart
  int64_t layers = 0;            // of the deepest network that was needed
};

using Progress = std::function<void(int64_t)>;  // gets the number of graphs that are done

Kinds kinds_by_refinement(const GraphSet& set, int64_t order, const Progress& progress) {
  Kinds kinds{std::vector<int64_t>(set.graphs.size())};
  std::mutex mutex;
  int64_t done = 0;
  parallel_tasks(set.groups(), [&](int64_t group, int) {
    const auto own = equivariant::refine_colours(set.group(group), order, interrupt::check);
    std::copy(own.begin(), own.end(), kinds.numbers.begin() + group * set.group_size);
    const std::lock_guard lock(mutex);
    progress(done += set.group_size);
  });
  return kinds;
}

Kinds kinds_by_network(const GraphSet& set, const ExpressivityOptions& options,
                       const Progress& progress) {
  const equivariant::FieldNetwork network(
      {.order = options.order, .min_layers = options.layers, .seed = options.seed});
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

Kinds kinds_of(const GraphSet& set, const ExpressivityOptions& options) {
  ProgressBar bar(set.name, std::ssize(set.graphs), options.json);
  const Progress progress = [&](int64_t done) { bar.update(done); };
  return options.exact ? kinds_by_refinement(set, options.order, progress)
                       : kinds_by_network(set, options, progress);
}

struct Outcome {
  int64_t pairs = 0, distinguished = 0;
};

Outcome count_pairs(const GraphSet& set, const std::vector<int64_t>& kinds) {
  Outcome outcome;
  for (int64_t i = 0; i < std::ssize(kinds); ++i) {
    const int64_t end = (i / set.group_size + 1) * set.group_size;
    for (int64_t j = i + 1; j < end; ++j) {
      ++outcome.pairs;
      outcome.distinguished += kinds[i] != kinds[j];
    }
  }
  return outcome;
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
  if (!options.torch_device().is_cpu()) {
    throw InputError("--device: graph expressivity runs on the CPU");
  }
  const std::vector<GraphSet> sets = sets_of(options);
  RunLog log(options);
  Table table({"file", "pairs", "distinguished", "layers", "seconds"});
  bool interrupted = false;
  for (const GraphSet& set : sets) {
    const training::Stopwatch watch;
    Kinds kinds;
    try {
      kinds = kinds_of(set, options);
    } catch (const Interrupted&) {
      interrupted = true;  // the files before are whole
      break;
    }
    const double seconds = watch.seconds();
    const Outcome outcome = count_pairs(set, kinds.numbers);
    log.write({{"file", set.name},
               {"pairs", outcome.pairs},
               {"distinguished", outcome.distinguished},
               {"order", options.order},
               {"layers", options.exact ? Json() : Json(kinds.layers)},
               {"seconds", seconds}});
    table.add({set.name, fmt::format("{}", outcome.pairs), fmt::format("{}", outcome.distinguished),
               options.exact ? "" : fmt::format("{}", kinds.layers),
               fmt::format("{:.1f}", seconds)});
  }
  if (!options.json) print(table.text());
  if (interrupted) throw Interrupted();
  return 0;
}

}  // namespace

void add_graph_expressivity(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ExpressivityOptions>();
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 20);
  CLI::App& command = add_command(
      parent, session,
      {.name = "expressivity",
       .summary =
           "How many pairs of graphs equivariant layers on all tuples of an order tell apart",
       .examples = "nsimplex graph expressivity brec/basic.npy brec/str.npy --order 3\n"
                   "nsimplex graph expressivity sr251256.g6 --order 3 --exact --json\n"
                   "nsimplex graph expressivity --order 2 --control 100"},
      options, run_expressivity);
  command.add_option("FILE", options->files, "Graphs in graph6: one a line, or strings of an npy")
      ->type_name("");
  command.add_option("--order", options->order, "2: all pairs of nodes; 3: all triples")
      ->check(CLI::Range(2, 3))
      ->capture_default_str();
  command
      .add_option("--layers", options->layers,
                  "Layers at least; more follow until the number of distinct rows stops growing")
      ->check(positive)
      ->capture_default_str();
  CLI::Option* exact =
      command.add_flag("--exact", options->exact,
                       "By colour refinement, without layers: order 2 as 1-WL, order 3 as 3-WL");
  command
      .add_option("--control", options->control,
                  "Also as many generated pairs that 1-WL tells apart and degrees do not")
      ->check(positive)
      ->excludes(exact);
  command
      .add_option("--pairs", options->pairs,
                  "Which graphs of a file are compared: consecutive, all (each with each), or "
                  "auto: consecutive in an npy, all otherwise")
      ->check(CLI::IsMember({"auto", "consecutive", "all"}))
      ->capture_default_str();
}

}  // namespace nsimplex::cli
