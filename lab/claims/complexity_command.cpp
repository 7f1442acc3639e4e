// The command `lab complexity`: the time of structure learning and embedding against table size.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nsimplex/causal.h>
#include <nsimplex/causal_embedding.h>

#include <array>
#include <cmath>
#include <functional>

#include "causal/structure/cape_structure.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "lab/experiments.h"
#include "support/stopwatch.h"
#include "train/scores.h"

// The duration of the steps of causal encodings (section G.4 of Xu et al., arXiv 2509.16629) in
// seconds of processor time, which does not grow on a busy machine. With one thread on a quiet
// machine this equals the time on the clock.
namespace nsimplex::cli {
namespace {

struct Enough {};  // thrown from a checkpoint to end a fit

// Seconds of an epoch of Step I as in the paper (StructureEstimator::paper). It times the batches
// that begin within `budget` seconds, at least one, and scales their time to the whole epoch.
struct EpochSeconds {
  double seconds;
  int64_t batches, timed;  ///< batches of the epoch, and how many of them were timed
};

EpochSeconds time_structure_epoch(const at::Tensor& table, double budget,
                                  const std::function<void()>& checkpoint) {
  const int64_t batches = causal::paper_batches(table.size(0));
  ProcessorStopwatch watch;
  int64_t begun = 0;
  double seconds = 0;
  CausalFitOptions options;
  options.estimator = StructureEstimator::paper;
  options.checkpoint = [&] {  // before each batch
    if (checkpoint) checkpoint();
    seconds = watch.seconds();
    if (begun == 0) {
      watch = ProcessorStopwatch();  // excludes the time before the first epoch
      seconds = 0;
    }
    if (begun == batches || (begun > 0 && seconds > budget)) throw Enough();
    ++begun;
  };
  try {
    causal_fit(table, options);
  } catch (const Enough&) {
  }
  const double share = static_cast<double>(begun) / static_cast<double>(batches);
  return {seconds / share, batches, begun};
}

// Seconds of one step over all nodes of Step II with the tangent optimiser, mean of `steps`.
double time_embedding_step(const at::Tensor& graph, int64_t dimension, int64_t steps,
                           const std::function<void()>& checkpoint) {
  CausalEmbeddingOptions options;
  options.dimension = dimension;
  options.steps = steps;
  options.negatives = 0;  // all of them, as in the paper
  ProcessorStopwatch watch;
  options.checkpoint = [&](int64_t step) {
    if (checkpoint) checkpoint();
    if (step == 0) watch = ProcessorStopwatch();
  };
  causal_embed(graph, options);
  return watch.seconds() / static_cast<double>(steps);
}

// Seconds of a whole fit with the estimator `order`.
double time_order(const at::Tensor& table, const std::function<void()>& checkpoint) {
  CausalFitOptions options;
  options.estimator = StructureEstimator::order;
  options.checkpoint = checkpoint;
  const ProcessorStopwatch watch;
  causal_fit(table, options);
  return watch.seconds();
}

struct ComplexityOptions : CommonOptions {
  std::vector<int64_t> rows{1000, 3000, 5000, 7000, 9000}, columns{100, 200, 300, 400, 500};
  int64_t fixed_columns = 100, fixed_rows = 1000, dimension = 100, runs = 3, steps = 20;
  double budget = 30;
  bool full = false;
};

constexpr std::array kFigures{"step_one", "step_two", "order"};

// Seconds of one size, run by run.
struct Size {
  std::string over;  // the varying dimension: rows or columns
  int64_t rows, columns, batches = 0, timed = 0;
  std::array<std::vector<double>, kFigures.size()> seconds = {};

  double mean(size_t figure) const { return training::spread(seconds[figure]).mean; }
};

class Complexity {
 public:
  explicit Complexity(const ComplexityOptions& options) : options_(options), log_(options) {
    for (const int64_t rows : options.rows) sizes_.push_back({"rows", rows, options.fixed_columns});
    for (const int64_t columns : options.columns) {
      sizes_.push_back({"columns", options.fixed_rows, columns});
    }
  }

  int run() {
    ProgressBar bar("complexity", std::ssize(sizes_) * options_.runs, options_.json);
    int64_t done = 0;
    for (Size& size : sizes_) {
      for (int64_t run = 0; run < options_.runs; ++run) {
        measure(size, options_.seed + static_cast<uint64_t>(run));
        bar.update(++done);
      }
      write(size);
    }
    bar.finish();
    finish();
    return 0;
  }

 private:
  void measure(Size& size, uint64_t seed) {
    const CausalSimulation made = simulate_causal(
        {.nodes = size.columns, .observations = size.rows, .seed = static_cast<int64_t>(seed)});
    const auto epoch = time_structure_epoch(made.table, options_.budget, interrupt::check);
    size.batches = epoch.batches;
    size.timed = epoch.timed;
    size.seconds[0].push_back(epoch.seconds);
    size.seconds[1].push_back(
        time_embedding_step(made.weights, options_.dimension, options_.steps, interrupt::check));
    size.seconds[2].push_back(time_order(made.table, interrupt::check));
  }

  void write(const Size& size) {
    Json line{{"task", "complexity"},    {"over", size.over},       {"rows", size.rows},
              {"columns", size.columns}, {"batches", size.batches}, {"timed", size.timed},
              {"runs", options_.runs}};
    for (size_t figure = 0; figure < kFigures.size(); ++figure) {
      const training::Spread spread = training::spread(size.seconds[figure]);
      line[kFigures[figure]] = spread.mean;
      line[std::string(kFigures[figure]).append("_deviation")] = spread.deviation;
    }
    log_.write("complexity", line);
  }

  // The exponent of growth that the paper states; -1: none.
  static double published(const std::string& over, size_t figure) {
    if (figure == 2) return -1;
    if (over == "rows") return figure == 0 ? 1 : -1;
    return 2;
  }

  // The slope of log seconds over log size.
  training::Line fitted(const std::string& over, size_t figure) const {
    std::vector<double> sizes, seconds;
    for (const Size& size : sizes_) {
      if (size.over != over) continue;
      sizes.push_back(std::log(static_cast<double>(over == "rows" ? size.rows : size.columns)));
      seconds.push_back(std::log(size.mean(figure)));
    }
    return training::fit_line(sizes, seconds);
  }

  void finish() {
    Table times({"rows", "columns", "step I epoch", "step II step", "order, whole fit"});
    for (const Size& size : sizes_) {
      times.add({fmt::format("{}", size.rows), fmt::format("{}", size.columns),
                 fmt::format("{:.4f} s", size.mean(0)), fmt::format("{:.5f} s", size.mean(1)),
                 fmt::format("{:.4f} s", size.mean(2))});
    }
    Table exponents({"grows with", "of", "exponent", "R^2", "paper"});
    for (const char* over : {"rows", "columns"}) {
      for (size_t figure = 0; figure < kFigures.size(); ++figure) {
        const training::Line line = fitted(over, figure);
        const double paper = published(over, figure);
        Json row{{"task", "complexity"},
                 {"over", over},
                 {"figure", kFigures[figure]},
                 {"exponent", line.slope},
                 {"r_squared", line.r_squared}};
        if (paper >= 0) row["paper"] = paper;
        log_.write("complexity_fit", row);
        exponents.add({over, kFigures[figure], fmt::format("{:.2f}", line.slope),
                       fmt::format("{:.3f}", line.r_squared),
                       paper < 0 ? "" : fmt::format("{}", paper)});
      }
    }
    if (!options_.json) print(times.text() + "\n" + exponents.text());
  }

  const ComplexityOptions& options_;
  RunLog log_;
  std::vector<Size> sizes_;
};

int run_complexity(const ComplexityOptions& given) {
  ComplexityOptions options = given;
  if (options.full) {  // Fig. S5
    options.rows = {10000, 30000, 50000, 70000, 90000};
    options.columns = {100, 300, 500, 700, 900};
    options.fixed_columns = 100;
    options.fixed_rows = 10000;
  }
  return Complexity(options).run();
}

}  // namespace

void add_causal_complexity(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ComplexityOptions>();
  CLI::App& command =
      add_command(parent, session,
                  {.name = "complexity",
                   .summary = "Time structure learning and embedding for growing tables (Fig. S5)",
                   .examples = "nsimplex lab complexity --threads 1 --out runs/complexity\n"
                               "nsimplex lab complexity --threads 1 --full --out runs/complexity"},
                  options, run_complexity);
  const auto add = option_adder(command, "Sizes");
  const auto several = within(int64_t{2}, int64_t{1} << 30);
  add("--rows", options->rows, "Numbers of rows to time")->delimiter(',')->check(several);
  add("--fixed-columns", options->fixed_columns, "Columns while the rows vary")->check(several);
  add("--columns", options->columns, "Numbers of columns to time")->delimiter(',')->check(several);
  add("--fixed-rows", options->fixed_rows, "Rows while the columns vary")->check(several);
  command
      .add_flag("--full", options->full,
                "Use the paper's sizes: 10,000 to 90,000 rows of 100 columns, and 100 to 900 "
                "columns of 10,000 rows")
      ->group("Sizes");
  const auto time = option_adder(command, "Timing");
  time("--repeats", options->runs, "Tables per size, whose times are averaged")
      ->check(within(int64_t{1}, int64_t{1} << 20));
  time("--seconds", options->budget,
       "Seconds per epoch; a longer epoch is cut off and its time scaled up")
      ->check(above_zero());
  time("--steps", options->steps, "Steps of the embedding, whose times are averaged")
      ->check(within(int64_t{1}, int64_t{1} << 20));
  time("--dimension", options->dimension, "Number of coordinates of a point")
      ->check(within(int64_t{2}, int64_t{1} << 16));
}

}  // namespace nsimplex::cli
