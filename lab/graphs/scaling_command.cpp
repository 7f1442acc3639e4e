// The command `lab graph-scaling`: time and memory of a pass against the number of edges.

#include "lab/graphs/scaled_layers.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/output.h"
#include "cli/run_folder.h"
#include "equivariant/classes/equivariant_classes.h"
#include "lab/experiments.h"
#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_experiment.h"
#include "support/error.h"
#include "support/names.h"
#include "train/scores.h"

namespace nsimplex::cli {
namespace {

using training::PassCost;

constexpr int64_t kScalingWidth = 32, kChannels = 16, kLayers = 4, kScalingHeads = 4;  // table 6a

struct ScalingOptions : CommonOptions {
  std::vector<std::string> models;
  std::vector<int64_t> edges;
  int64_t seeds = 3, links = 5;
  double most_seconds = 10.0, most_gigabytes = 4.0;
  std::string readout = "kernel";
  bool full = false, forward_only = false;
};

struct ScalingArm {
  std::string name;
  bool complete;  // of all pairs of nodes
  std::function<std::shared_ptr<training::GraphModel>()> make;
};

std::shared_ptr<training::GraphModel> make_linear(bool dense) {
  return std::make_shared<training::LinearNetwork>(
      training::LinearNetworkOptions{.input = {.order = 2},
                                     .output = {.order = 0},
                                     .in_channels = 2 * kChannels,
                                     .hidden = kScalingWidth,
                                     .layers = kLayers,
                                     .dense = dense});
}

std::shared_ptr<training::GraphModel> make_encoders(AttentionForm form, AttentionForm readout) {
  return std::make_shared<training::EncoderNetwork>(
      training::EncoderNetworkOptions{.input = {.order = 2},
                                      .output = {.order = 0},
                                      .in_channels = 2 * kChannels,
                                      .hidden = kScalingWidth,
                                      .layers = kLayers,
                                      .heads = kScalingHeads,
                                      .form = form,
                                      .readout = {.form = readout},
                                      .head = {.out_channels = kScalingWidth, .normalised = true}});
}

// `readout` is that of the kernel models.
std::vector<ScalingArm> scaling_arms(AttentionForm readout = AttentionForm::kernel) {
  const auto softmax = [] { return make_encoders(AttentionForm::softmax, AttentionForm::softmax); };
  const auto kernel = [readout] { return make_encoders(AttentionForm::kernel, readout); };
  return {{"mlp-dense", true, [] { return make_linear(true); }},
          {"mlp", false, [] { return make_linear(false); }},
          {"softmax-dense", true, softmax},
          {"softmax", false, softmax},
          {"kernel-dense", true, kernel},
          {"kernel", false, kernel}};
}

// Edges 2^5, 2^6, .. 2^14; with --full 2^5, 2^5.5, .. 2^20.
std::vector<int64_t> edges_of(const ScalingOptions& options) {
  if (!options.edges.empty()) return options.edges;
  std::vector<int64_t> edges;
  const double step = options.full ? 0.5 : 1.0, last = options.full ? 20.0 : 14.0;
  for (double power = 5.0; power <= last; power += step) {
    edges.push_back(static_cast<int64_t>(std::exp2(power)));
  }
  return edges;
}

// The costs of one model at one size, seed by seed.
struct Measured {
  double edges = 0.0;
  std::vector<double> plan, forward, backward, peak;
};

class Scaling {
 public:
  explicit Scaling(const ScalingOptions& options) : options_(options), log_(options) {}

  int run() {
    const std::vector<int64_t> sizes = edges_of(options_);
    std::vector<ScalingArm> arms;
    const auto readout = parse_name<AttentionForm>("--readout", options_.readout);
    for (const ScalingArm& arm : scaling_arms(readout)) {
      const auto& names = options_.models;
      if (names.empty() || std::find(names.begin(), names.end(), arm.name) != names.end()) {
        arms.push_back(arm);
      }
    }
    ProgressBar bar("scaling", std::ssize(sizes) * std::ssize(arms) * options_.seeds,
                    options_.json);
    int64_t done = 0;
    for (const int64_t edges : sizes) {
      for (const ScalingArm& arm : arms) {
        for (int64_t seed = 0; seed < options_.seeds && !interrupt::requested(); ++seed) {
          if (!fits(arm.name, edges)) {
            done += options_.seeds - seed;
            break;
          }
          measure(arm, edges, options_.seed + static_cast<uint64_t>(seed));
          bar.update(++done, fmt::format("{} edges, {}", edges, arm.name));
        }
      }
    }
    bar.finish();
    show(arms);
    interrupt::check();
    return 0;
  }

 private:
  // Whether the next size should stay below the limits. It extrapolates from the last two sizes,
  // and at first assumes growth with the square of the edges.
  bool fits(const std::string& name, int64_t edges) const {
    const auto found = measured_.find(name);
    if (found == measured_.end()) return true;
    const std::vector<Measured>& known = found->second;
    if (known.back().edges >= static_cast<double>(edges)) return true;  // another seed
    const auto expected = [&](auto value) {
      const double last = value(known.back());
      double power = 2.0;
      if (known.size() > 1) {
        const Measured& before = known[known.size() - 2];
        power = std::log(last / value(before)) / std::log(known.back().edges / before.edges);
      }
      return last * std::pow(static_cast<double>(edges) / known.back().edges, std::max(power, 1.0));
    };
    const auto worst = [](const std::vector<double>& values) {
      return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
    };
    const double seconds = expected([&](const Measured& each) {
      return worst(each.plan) + worst(each.forward) + worst(each.backward);
    });
    const double bytes = expected([&](const Measured& each) { return worst(each.peak) + 1.0; });
    return seconds <= options_.most_seconds && bytes <= options_.most_gigabytes * 1e9;
  }

  void measure(const ScalingArm& arm, int64_t edges, uint64_t seed) {
    const training::ScalingGraphOptions graph{
        .nodes = std::max(edges / options_.links, options_.links + 1),
        .links = options_.links,
        .node_channels = kChannels,
        .edge_channels = kChannels,
        .complete = arm.complete};
    const training::GraphBatch batch = training::scaling_graph(graph, seed);
    at::manual_seed(seed);
    const auto model = arm.make();
    if (measured_.find(arm.name) == measured_.end()) {
      pass(*model, batch);  // work of the first call is not counted
    }
    const PassCost cost = pass(*model, batch);
    std::vector<Measured>& known = measured_[arm.name];
    const double links = static_cast<double>(options_.links * (graph.nodes - options_.links));
    if (known.empty() || known.back().edges != links) known.push_back({.edges = links});
    known.back().plan.push_back(cost.plan_seconds);
    known.back().forward.push_back(cost.forward_seconds);
    if (cost.backward_seconds) known.back().backward.push_back(*cost.backward_seconds);
    if (cost.peak_bytes) known.back().peak.push_back(static_cast<double>(*cost.peak_bytes));
    Json line{{"task", "scaling"},
              {"model", arm.name},
              {"seed", seed},
              {"nodes", graph.nodes},
              {"edges", static_cast<int64_t>(links)},
              {"rows", batch.input.size()},
              {"plan_seconds", cost.plan_seconds},
              {"forward_seconds", cost.forward_seconds},
              {"backward_seconds", cost.backward_seconds ? Json(*cost.backward_seconds) : Json()},
              {"peak_bytes", cost.peak_bytes ? Json(*cost.peak_bytes) : Json()}};
    log_.write("graph_cost", line);
  }

  PassCost pass(training::GraphModel& model, const training::GraphBatch& batch) const {
    return training::measure_pass(model, batch, options_.forward_only);
  }

  // Fits log cost = slope log edges + .. over the larger half of the sizes.
  template <class Value>
  double slope(const std::vector<Measured>& known, const Value& value) const {
    std::vector<double> x, y;
    for (size_t i = known.size() / 2; i < known.size(); ++i) {
      const double mean = training::spread(value(known[i])).mean;
      if (!(mean > 0)) continue;
      x.push_back(std::log(known[i].edges));
      y.push_back(std::log(mean));
    }
    return x.size() < 2 ? std::nan("") : training::fit_line(x, y).slope;
  }

  void show(const std::vector<ScalingArm>& arms) {
    Table table({"model", "largest edges", "plan s", "forward s", "backward s", "peak MB",
                 "slope forward", "slope backward", "slope memory"});
    for (const ScalingArm& arm : arms) {
      const auto found = measured_.find(arm.name);
      if (found == measured_.end()) continue;
      const std::vector<Measured>& known = found->second;
      const double forward = slope(known, [](const Measured& m) { return m.forward; });
      const double backward = slope(known, [](const Measured& m) { return m.backward; });
      const double peak = slope(known, [](const Measured& m) { return m.peak; });
      const auto mean = [&](const std::vector<double>& of) { return training::spread(of).mean; };
      const auto cell = [](double number, int digits) {
        return std::isnan(number) ? "-" : fmt::format("{:.{}f}", number, digits);
      };
      const Measured& last = known.back();
      table.add({arm.name, fmt::format("{}", last.edges), cell(mean(last.plan), 4),
                 cell(mean(last.forward), 4), cell(mean(last.backward), 4),
                 cell(mean(last.peak) / 1e6, 1), cell(forward, 2), cell(backward, 2),
                 cell(peak, 2)});
      log_.write("graph_cost_fit", {{"task", "scaling"},
                                    {"model", arm.name},
                                    {"largest_edges", static_cast<int64_t>(last.edges)},
                                    {"slope_forward", forward},
                                    {"slope_backward", backward},
                                    {"slope_memory", peak}});
    }
    if (!options_.json) print(table.text());
  }

  const ScalingOptions& options_;
  RunLog log_;
  std::map<std::string, std::vector<Measured>> measured_;
};

int run_scaling(const ScalingOptions& options) {
  if (!std::is_sorted(options.edges.begin(), options.edges.end())) {
    throw InputError("--edges: expected ascending numbers");
  }
  return Scaling(options).run();
}

}  // namespace

void add_graph_scaling(CLI::App& parent, Session& session) {
  const auto options = std::make_shared<ScalingOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "graph-scaling",
       .summary = "Measure time and memory of a pass for random graphs of growing size",
       .examples =
           "nsimplex lab graph-scaling --threads 1 --out runs/scaling\n"
           "nsimplex lab graph-scaling --models kernel --edges 16384,131072 --seeds 1 --json"},
      options, run_scaling);
  const std::vector<std::string> names = model_names(scaling_arms());
  const auto positive = within(int64_t{1}, int64_t{1} << 30);
  command
      .add_option("--models", options->models,
                  fmt::format("Models to measure; default: all of {}", fmt::join(names, ", ")))
      ->delimiter(',')
      ->check(one_of(names));
  command
      .add_option("--edges", options->edges,
                  "Approximate edges of the graphs, ascending; default: powers of 2 from 5 to 14")
      ->delimiter(',')
      ->check(positive);
  command.add_option("--links", options->links, "Links per new node of a graph")
      ->check(within(int64_t{1}, int64_t{1} << 16))
      ->capture_default_str();
  command.add_option("--seeds", options->seeds, "Graphs per size; seeds count up from --seed")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option(
          "--max-seconds", options->most_seconds,
          "Stop a model when the next size is expected to take longer than this, in seconds")
      ->check(above_zero())
      ->capture_default_str();
  command
      .add_option(
          "--max-memory", options->most_gigabytes,
          "Stop a model when the next size is expected to take more memory than this, in GB")
      ->check(above_zero())
      ->capture_default_str();
  add_kernel_readout(command, options->readout);
  command.add_flag("--full", options->full, "Go up to 2^20 edges, in steps of a factor 2^0.5");
  command.add_flag("--forward-only", options->forward_only,
                   "Run passes without gradients, which take a fraction of the memory");
}

}  // namespace nsimplex::cli
