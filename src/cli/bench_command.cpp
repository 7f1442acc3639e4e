// The command `bench attention`: the speed of dense attention against a matrix product.

#include "cli/bench_command.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nsimplex/attention.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "cli/attention_case.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "kernels/cpu/shared/processor.h"
#include "kernels/cpu/shared/simd.h"
#include "support/error.h"
#include "support/median.h"
#include "support/stopwatch.h"

namespace nsimplex::cli {
namespace {

double milliseconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return 1e3 * watch.seconds();
}

}  // namespace

void add_processor(Json& line) {
  line["processor"] = kernels::processor_name();
  line["family"] = kernels::processor_family();
  line["simd"] = kernels::simd_level();
}

std::string processor_line() {
  const std::string name = kernels::processor_name(), family = kernels::processor_family();
  return fmt::format("processor: {}{}, level {}\n", name.empty() ? "" : name + ", ", family,
                     kernels::simd_level());
}

std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& contestants,
                                        int rounds, const std::function<void(int)>& between) {
  interrupt::defer();
  for (const auto& contestant : contestants) {
    contestant();
    interrupt::check();
  }
  std::vector<std::vector<double>> times(contestants.size());
  for (int round = 1; round <= rounds && !interrupt::requested(); ++round) {
    std::vector<double> of_round;
    for (const auto& contestant : contestants) {
      of_round.push_back(milliseconds_of(contestant));
      if (interrupt::requested()) break;
    }
    if (of_round.size() < contestants.size()) break;  // only whole rounds are compared
    for (size_t i = 0; i < of_round.size(); ++i) times[i].push_back(of_round[i]);
    between(round);
  }
  std::vector<double> medians;
  for (const auto& of_contestant : times) {
    if (of_contestant.empty()) throw Interrupted();
    medians.push_back(median(of_contestant));
  }
  return medians;
}

namespace {

struct BenchOptions : CommonOptions {
  AttentionCase shape{.causal = true};
  std::string pass = "forward", named_case, product;  // product empty: the dtype of the case
  int repeats = 9;
  bool scaling = false, peers = false, levels = false;
  CLI::App* command = nullptr;  // whose flags --case sets
};

using Attention = AttentionOutput(const at::Tensor&, at::TensorList, at::TensorList,
                                  const AttentionOptions&);

// One call of the pass, ready to be repeated. The backward pass is timed separately, on a graph
// that is kept.
std::function<void()> prepare(Attention* attention, const AttentionInputs& inputs, bool backward) {
  if (!backward) {
    return [=] {
      const c10::NoGradGuard no_grad;
      attention(inputs.query, inputs.keys, inputs.values, inputs.options);
    };
  }
  const auto leaf = [](const at::Tensor& tensor) { return tensor.detach().requires_grad_(true); };
  const at::Tensor query = leaf(inputs.query);
  std::vector<at::Tensor> keys, values, leaves{query};
  for (const at::Tensor& key : inputs.keys) leaves.push_back(keys.emplace_back(leaf(key)));
  for (const at::Tensor& value : inputs.values) leaves.push_back(values.emplace_back(leaf(value)));
  const at::Tensor out = attention(query, keys, values, inputs.options).out;
  return [out, leaves, grad_out = inputs.grad_out] {
    torch::autograd::grad({out}, leaves, {grad_out}, /*retain_graph=*/true);
  };
}

// The measurements with one number of threads.
struct Row {
  int threads;
  double milliseconds, gflops, sgemm_gflops, reference_milliseconds;
  int64_t workspace;
  double ratio() const { return gflops / sgemm_gflops; }
};

std::vector<Row> measure(const BenchOptions& options, const std::vector<int>& thread_counts) {
  const bool backward = options.pass == "backward";
  const AttentionInputs inputs = make_inputs(options.shape, options.seed);
  const double flops = (backward ? 3 : 1) *
                       attention_flops(inputs.query, inputs.keys, inputs.values, inputs.options);
  if (flops == 0) throw InputError("cannot time this shape: it has no admissible tuple");
  const at::ScalarType dtype =
      scalar_type(options.product.empty() ? options.shape.dtype : options.product);
  const at::Tensor left = at::randn({kGemmSize, kGemmSize}).to(dtype);
  const at::Tensor right = at::randn({kGemmSize, kGemmSize}).to(dtype);
  at::Tensor product = at::empty({kGemmSize, kGemmSize}, dtype);

  std::vector<std::function<void()>> work{prepare(attention, inputs, backward),
                                          [&] { at::mm_out(product, left, right); }};
  if (options.peers) work.push_back(prepare(attention_reference, inputs, backward));
  std::vector<std::function<void()>> contestants;
  for (const int threads : thread_counts) {
    for (const auto& call : work) {
      contestants.push_back([call, threads] {
        at::set_num_threads(threads);
        call();
      });
    }
  }

  ProgressBar bar("round", options.repeats, options.json);
  bar.update(0);
  const auto medians =
      interleaved_medians(contestants, options.repeats, [&](int round) { bar.update(round); });
  bar.finish();

  const double gemm_flops = 2.0 * kGemmSize * kGemmSize * kGemmSize;
  std::vector<Row> rows;
  for (size_t i = 0; i < thread_counts.size(); ++i) {
    const double* of_count = medians.data() + i * work.size();
    at::set_num_threads(thread_counts[i]);
    const AttentionWorkspace workspace =
        attention_workspace(inputs.query, inputs.keys, inputs.values, inputs.options);
    rows.push_back({thread_counts[i], of_count[0], flops / of_count[0] * 1e-6,
                    gemm_flops / of_count[1] * 1e-6, options.peers ? of_count[2] : 0,
                    backward ? workspace.backward_bytes : workspace.forward_bytes});
  }
  return rows;
}

Json json_line(const BenchOptions& options, const Row& row, double peak) {
  Json line{{"operator", "attention"},        {"order", options.shape.order},
            {"pass", options.pass},           {"dtype", options.shape.dtype},
            {"threads", row.threads},         {"milliseconds", row.milliseconds},
            {"gflops", row.gflops},           {"sgemm_gflops", row.sgemm_gflops},
            {"ratio", row.ratio()},           {"workspace_bytes", row.workspace},
            {"fma_peak_gflops", peak},        {"batch", options.shape.batch},
            {"heads", options.shape.heads},   {"kv_heads", options.shape.kv_heads},
            {"seq", options.shape.seq},       {"dim", options.shape.dim},
            {"window", options.shape.window}, {"causal", options.shape.causal}};
  if (options.peers) line["reference_milliseconds"] = row.reference_milliseconds;
  add_processor(line);
  return line;
}

std::string title(const AttentionCase& shape, const std::string& pass) {
  std::string text = fmt::format(
      "attention {}, order {}, {}: batch {}, heads {}/{}, seq {}, dim {}", pass, shape.order,
      shape.dtype, shape.batch, shape.heads, shape.kv_heads, shape.seq, shape.dim);
  if (!shape.window.empty()) text += fmt::format(", window {}", fmt::join(shape.window, " x "));
  return text + (shape.causal ? ", causal\n" : "\n");
}

// Default windows that make an order affordable for long sequences.
std::vector<int64_t> usual_window(int order) {
  if (order == 2) return {32, 512};
  if (order == 3) return {8, 16, 64};
  return {-1};
}

// Measures the SIMD levels, whose cases are fixed but for the length.
int run_levels(const BenchOptions& given) {
  LevelsOptions levels{.seed = given.seed, .json = given.json};
  for (const CLI::Option* option : given.command->get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    if (name == "--seq") levels.seq = given.shape.seq;
    if (name == "--repeats") levels.repeats = given.repeats;
    constexpr std::array kTaken{"--levels", "--seq", "--repeats", "--threads", "--seed", "--json"};
    if (std::ranges::find(kTaken, name) == kTaken.end()) {
      throw InputError(fmt::format("--levels: expected no other options than {}, got {}",
                                   fmt::join(kTaken.begin() + 1, kTaken.end(), ", "), name));
    }
  }
  return bench_levels(levels);
}

int run_bench_attention(const BenchOptions& given) {
  if (given.levels) return run_levels(given);
  if (!given.named_case.empty()) set_flags(*given.command, find_case(given.named_case));
  BenchOptions options = given;  // its shape has the flags of the case, and so has config.toml
  options.config_toml = config_text(*given.command);
  if (options.shape.window.empty()) options.shape.window = usual_window(options.shape.order);
  complete(options.shape);
  const AttentionCase& shape = options.shape;
  RunLog log(options);

  std::vector<int> thread_counts;
  const int threads = at::get_num_threads();
  if (options.scaling && threads > 1) thread_counts.push_back(1);
  thread_counts.push_back(threads);
  const std::vector<Row> rows = measure(options, thread_counts);
  at::set_num_threads(threads);
  const double peak = kernels::measure_fma_peak();

  if (!options.json) print(title(shape, options.pass) + processor_line());
  const std::string product = options.product.empty() ? shape.dtype : options.product;
  const std::string gemm = product == "float32" ? "sgemm" : product + " mm";
  Table table({"threads", "ms", "GFLOP/s", gemm, "ratio", "FMA peak", "workspace"});
  if (options.peers)
    table = Table({"threads", "ms", "GFLOP/s", gemm, "ratio", "FMA peak", "workspace",
                   "reference ms", "speed-up"});
  for (const Row& row : rows) {
    log.write("bench", json_line(options, row, peak * row.threads));
    table.add({fmt::format("{}", row.threads), fmt::format("{:.2f}", row.milliseconds),
               fmt::format("{:.1f}", row.gflops), fmt::format("{:.1f}", row.sgemm_gflops),
               fmt::format("{:.3f}", row.ratio()), fmt::format("{:.1f}", peak * row.threads),
               fmt::format("{:.2f} MB", static_cast<double>(row.workspace) * 1e-6),
               fmt::format("{:.1f}", row.reference_milliseconds),
               fmt::format("{:.1f}x", row.reference_milliseconds / row.milliseconds)});
  }
  if (options.json) return 0;
  print(table.text());
  if (rows.size() == 2) {
    const Row &one = rows.front(), &all = rows.back();
    print(fmt::format(
        "{} threads: the kernel is {:.3f} times as fast and sgemm {:.3f} times, ratio {:.3f}\n",
        all.threads, all.gflops / one.gflops, all.sgemm_gflops / one.sgemm_gflops,
        all.ratio() / one.ratio()));
  }
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Session& session) {
  CLI::App& parent =
      add_group(app, "bench", "Measure the rates of the operators relative to sgemm");
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command = add_command(
      parent, session,
      {.name = "attention",
       .summary =
           "Measure the rate of the dense operator relative to this machine's matrix product",
       .examples = "nsimplex bench attention --threads 1\n"
                   "nsimplex bench attention --order 2 --seq 2048 --window 32,512 --causal --pass "
                   "backward\n"
                   "nsimplex bench attention --order 1 --seq 4096 --window -1 --threads 2 "
                   "--scaling --json\n"
                   "nsimplex bench attention --levels --threads 1 --repeats 15"},
      options, run_bench_attention);
  add_attention_flags(command, options->shape);
  command.add_option("--pass", options->pass, "Pass: forward or backward")
      ->check(one_of({"forward", "backward"}))
      ->capture_default_str();
  options->command = &command;
  command
      .add_option("--case", options->named_case,
                  "Name of a shape in bench/cases; options that are given replace its own")
      ->type_name("NAME");
  command
      .add_option("--product", options->product,
                  "Type of numbers of the matrix product; if not given, that of --dtype")
      ->type_name("NAME");
  command.add_option("--repeats", options->repeats, "Number of rounds; the median counts")
      ->check(within(1, 100000))
      ->capture_default_str();
  command.add_flag("--scaling", options->scaling, "Also measure with one thread, in the same run");
  command.add_flag("--peers", options->peers, "Also time the plain version of the operator");
  command.add_flag("--levels", options->levels,
                   "Measure every SIMD level of this machine in fp32 and bf16 instead, and say why "
                   "the one in use was chosen");
  add_bench_sparse(parent, session);
}

}  // namespace nsimplex::cli
