#include "cli/graph_expressivity.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/run_log.h"
#include "equivariant/expressivity/colour_refinement.h"
#include "io/graph6.h"
#include "support/error.h"
#include "support/parallel.h"

namespace nsimplex::cli {
namespace {

// The graphs of a file in groups of as many: each is compared with the others of its group.
struct GraphFile {
  std::string path;
  std::vector<io::SimpleGraph> graphs;
  int64_t group_size = 2;

  int64_t groups() const { return static_cast<int64_t>(graphs.size()) / group_size; }
  std::span<const io::SimpleGraph> group(int64_t index) const {
    return std::span(graphs).subspan(index * group_size, group_size);
  }
};

GraphFile read(const std::string& path, const std::string& pairs) {
  GraphFile file{path, io::read_graphs(path)};
  const auto count = static_cast<int64_t>(file.graphs.size());
  if (count < 2)
    throw InputError(fmt::format("{}: expected two graphs or more, got {}", path, count));
  const bool consecutive = pairs == "auto" ? path.ends_with(".npy") : pairs == "consecutive";
  if (consecutive && count % 2 != 0) {
    throw InputError(
        fmt::format("{}: expected pairs of consecutive graphs, got {} graphs", path, count));
  }
  file.group_size = consecutive ? 2 : count;
  return file;
}

struct Outcome {
  int64_t pairs = 0, distinguished = 0;
};

// Of the graphs that the numbers of their kinds stand for.
Outcome count_pairs(const std::vector<int64_t>& kinds) {
  Outcome outcome;
  for (size_t i = 0; i < kinds.size(); ++i) {
    for (size_t j = i + 1; j < kinds.size(); ++j) {
      ++outcome.pairs;
      outcome.distinguished += kinds[i] != kinds[j];
    }
  }
  return outcome;
}

Outcome compare(const GraphFile& file, const ExpressivityOptions& options) {
  ProgressBar bar(file.path, file.groups(), options.json);
  std::mutex mutex;
  Outcome outcome;
  int64_t done = 0;
  parallel_tasks(file.groups(), [&](int64_t group, int) {
    const Outcome part = count_pairs(
        equivariant::refine_colours(file.group(group), options.order, interrupt::check));
    const std::lock_guard lock(mutex);
    outcome.pairs += part.pairs;
    outcome.distinguished += part.distinguished;
    bar.update(++done);
  });
  return outcome;
}

}  // namespace

int run_expressivity(const ExpressivityOptions& options) {
  if (!options.torch_device().is_cpu()) {
    throw InputError("--device: graph expressivity runs on the CPU");
  }
  std::vector<GraphFile> files;
  for (const std::string& path : options.files) files.push_back(read(path, options.pairs));
  RunLog log(options);
  Table table({"file", "pairs", "distinguished", "seconds"});
  bool interrupted = false;
  for (const GraphFile& file : files) {
    const auto begun = std::chrono::steady_clock::now();
    Outcome outcome;
    try {
      outcome = compare(file, options);
    } catch (const Interrupted&) {
      interrupted = true;  // the files before are whole
      break;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
    log.write({{"file", file.path},
               {"pairs", outcome.pairs},
               {"distinguished", outcome.distinguished},
               {"order", options.order},
               {"seconds", seconds.count()}});
    table.add({file.path, fmt::format("{}", outcome.pairs),
               fmt::format("{}", outcome.distinguished), fmt::format("{:.1f}", seconds.count())});
  }
  if (!options.json) print(table.text());
  if (interrupted) throw Interrupted();
  return 0;
}

}  // namespace nsimplex::cli
