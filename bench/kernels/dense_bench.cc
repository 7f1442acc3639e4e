// The ladder of the dense kernel on one thread: plain loops, then the tiled kernel on every SIMD
// level of this machine, best last. Then its options, at the best level only. Counters: gflops
// (flop of the definition, 2 (D + Dv) a tuple, backward three times that), of_peak (share of the
// level's multiply-add peak), workspace_bytes.
//
//   kernels_bench [--benchmark_filter=window_32x512] [--benchmark_format=json]

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/shared/attention_kernel_plan.h"
#include "kernels/cpu/shared/simd.h"
#include "kernels/dense_scalar.h"

namespace nsimplex::kernels {
namespace {

using Change = void (*)(DenseProblem<float>&);

struct Shape {
  std::string name;
  int64_t batch, heads, queries, dim;
  std::vector<int64_t> window;  // one causal window an axis; -1: all keys so far
  Change change = nullptr;      // options
};

const std::vector<Shape> kShapes{
    {"window_32x512", 1, 1, 2048, 64, {32, 512}},
    {"window_8x16x64", 1, 1, 2048, 64, {8, 16, 64}},
    {"causal_4096", 1, 1, 4096, 64, {-1}},
    {"causal_small_heads", 12, 4, 64, 32, {-1}},
};

// What the options of one axis or of pairs point to: every fourth key masked, logits of 0.
constexpr int64_t kQueries = 2048;
const bool* key_mask() {
  static const auto mask = [] {
    auto all = std::make_unique<bool[]>(kQueries);
    for (int64_t j = 0; j < kQueries; ++j) all[j] = j % 4 != 0;
    return all;
  }();
  return mask.get();
}
const float* mask_logits() {
  static const std::vector<float> logits(kQueries);
  return logits.data();
}

Shape option(const std::string& name, int64_t dim, Change change) {
  return {"option_" + name, 1, 1, kQueries, dim, {32, 512}, change};
}

// All on windows of 32 x 512. Masked keys are computed, so that their rate is that of all tuples.
const std::vector<Shape> kOptions{
    option("none_48", 48, nullptr),
    option("determinant_48", 48, [](auto& problem) { problem.form = Form::determinant; }),
    option("none_96", 96, nullptr),
    option("determinant_96", 96, [](auto& problem) { problem.form = Form::determinant; }),
    option("none", 64, nullptr),
    option("sum", 64, [](auto& problem) { problem.reduce = ValueReduce::sum; }),
    option("key_mask_of_inner", 64, [](auto& problem) { problem.axes[1].mask = key_mask(); }),
    option("additive_mask_of_keys", 64,
           [](auto& problem) {
             problem.masks = 1;
             problem.mask[0].logits = mask_logits();
             problem.mask[0].axis_stride[1] = 1;
           }),
    option("distinct", 64, [](auto& problem) { problem.distinct = Distinct::axes; }),
    option("dropout", 64, [](auto& problem) { problem.dropout = {.p = 0.1, .seed = 1}; }),
    option("softcap", 64, [](auto& problem) { problem.softcap = 2.0; }),
    option("sigmoid", 64, [](auto& problem) { problem.normalizer = Normalizer::sigmoid; }),
    option("relu", 64, [](auto& problem) { problem.normalizer = Normalizer::relu; }),
};

// One problem with all its arrays, contiguous.
class Instance {
 public:
  explicit Instance(const Shape& shape) {
    std::mt19937 generator(1);
    fill(forward_, shape, generator);
    fill(backward_, shape, generator);
    const size_t size = shape.batch * shape.heads * shape.queries;
    forward_.out = rows<float>(shape, array(shape, generator));
    forward_.lse = lse_.emplace_back(size).data();
    backward_.out = rows<const float>(shape, forward_.out.data);
    backward_.grad_out = rows<const float>(shape, array(shape, generator));
    backward_.lse = forward_.lse;
    backward_.grad_query = rows<float>(shape, array(shape, generator));
    for (int m = 0; m < forward_.order; ++m) {
      backward_.grad_key[m] = rows<float>(shape, array(shape, generator));
      backward_.grad_value[m] = rows<float>(shape, array(shape, generator));
    }
    for (int64_t i = 0; i < shape.queries; ++i) {
      double tuples = 1.0;
      for (int m = 0; m < forward_.order; ++m) {
        tuples *= static_cast<double>(forward_.axes[m].visible.of(0, i).size());
      }
      flop_ += 4.0 * static_cast<double>(shape.dim * shape.batch * shape.heads) * tuples;
    }
  }

  const DenseForward<float>& forward() const { return forward_; }
  const DenseBackward<float>& backward() const { return backward_; }
  double forward_flop() const { return flop_; }

 private:
  float* array(const Shape& shape, std::mt19937& generator) {
    std::normal_distribution<float> normal;
    auto& data = data_.emplace_back(shape.batch * shape.heads * shape.queries * shape.dim);
    for (float& x : data) x = normal(generator);
    return data.data();
  }

  template <class T>
  static Rows<T> rows(const Shape& shape, T* data) {
    const int64_t head = shape.queries * shape.dim;
    return {data, shape.heads * head, head, shape.dim};
  }

  void fill(DenseProblem<float>& problem, const Shape& shape, std::mt19937& generator) {
    problem.order = static_cast<int>(shape.window.size());
    problem.batch = shape.batch;
    problem.heads = problem.kv_heads = shape.heads;
    problem.queries = shape.queries;
    problem.dim = problem.value_dim = shape.dim;
    problem.logit_scale = 0.125;
    problem.query = rows<const float>(shape, array(shape, generator));
    for (int m = 0; m < problem.order; ++m) {
      problem.axes[m].key = rows<const float>(shape, array(shape, generator));
      problem.axes[m].value = rows<const float>(shape, array(shape, generator));
      problem.axes[m].visible = {.length = shape.queries, .left = shape.window[m], .causal = true};
    }
    if (shape.change) shape.change(problem);
  }

  std::vector<std::vector<float>> data_, lse_;
  DenseForward<float> forward_;
  DenseBackward<float> backward_;
  double flop_ = 0.0;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory aligned(size_t bytes) { return Memory(std::aligned_alloc(64, (bytes + 64) / 64 * 64)); }

double peak_of(const std::string& level) {
  static std::map<std::string, double> peaks;
  auto [entry, added] = peaks.try_emplace(level, 0.0);
  if (added) entry->second = measure_fma_peak();
  return entry->second;
}

void report(benchmark::State& state, double flop, double peak) {
  using benchmark::Counter;
  const double giga = 1e-9 * flop;
  state.counters["gflops"] = Counter(giga, Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = Counter(giga / peak, Counter::kIsIterationInvariantRate);
}

template <class Plan, class Run>
void run_plan(benchmark::State& state, const std::string& level, double flop, Plan make_plan,
              Run run) {
  set_simd_level(level);
  const double peak = peak_of(level);
  const DensePlan plan = make_plan();
  const Memory workspace = aligned(plan.workspace_bytes), scratch = aligned(plan.scratch_bytes);
  for (auto _ : state) {
    for (int phase = 0; phase < plan.phases; ++phase) {
      for (int64_t task = 0; task < plan.tasks[phase]; ++task) {
        run(plan, phase, task, workspace.get(), scratch.get());
      }
    }
  }
  report(state, flop, peak);
  state.counters["workspace_bytes"] =
      static_cast<double>(plan.workspace_bytes + plan.scratch_bytes);
  set_simd_level("");
}

void register_shape(const Shape& shape, bool ladder) {
  // Shared by the shape's benchmarks, made by the first that runs.
  auto instance = std::make_shared<std::unique_ptr<Instance>>();
  const auto get = [shape, instance]() -> const Instance& {
    if (!*instance) *instance = std::make_unique<Instance>(shape);
    return **instance;
  };
  const auto add = [&](const std::string& name, auto body) {
    benchmark::RegisterBenchmark((shape.name + "/" + name).c_str(), body)
        ->Unit(benchmark::kMillisecond);
  };
  if (ladder)
    add("forward/loops", [get](benchmark::State& state) {
      const Instance& problem = get();
      for (auto _ : state) scalar_dense_forward(problem.forward());
      report(state, problem.forward_flop(), peak_of(simd_level()));
    });
  std::vector<std::string> levels = simd_levels();
  if (!ladder) levels.resize(1);
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    add("forward/" + *level, [get, level = *level](benchmark::State& state) {
      const auto& problem = get().forward();
      run_plan(
          state, level, get().forward_flop(), [&] { return plan_dense_forward(problem); },
          [&](const DensePlan& plan, int phase, int64_t task, void* workspace, void* scratch) {
            run_dense_forward(problem, plan, phase, task, workspace, scratch);
          });
    });
  }
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    add("backward/" + *level, [get, level = *level](benchmark::State& state) {
      const auto& problem = get().backward();
      run_plan(
          state, level, 3.0 * get().forward_flop(), [&] { return plan_dense_backward(problem); },
          [&](const DensePlan& plan, int phase, int64_t task, void* workspace, void* scratch) {
            run_dense_backward(problem, plan, phase, task, workspace, scratch);
          });
    });
  }
}

}  // namespace
}  // namespace nsimplex::kernels

int main(int argc, char** argv) {
  using namespace nsimplex::kernels;
  for (const Shape& shape : kShapes) register_shape(shape, /*ladder=*/true);
  for (const Shape& shape : kOptions) register_shape(shape, /*ladder=*/false);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
