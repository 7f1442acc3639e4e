// The ladder of the dense kernel on one thread: plain loops, then the tiled kernel on every SIMD
// level of this machine, best last. Counters: gflops (flop of the definition, 2 (D + Dv) a tuple,
// backward three times that), of_peak (share of the level's multiply-add peak), workspace_bytes.
//
//   kernels_bench [--benchmark_filter=window_32x512] [--benchmark_format=json]

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/dense/dense.h"
#include "kernels/cpu/simd.h"
#include "kernels/dense_scalar.h"

namespace nsimplex::kernels {
namespace {

struct Shape {
  std::string name;
  int64_t batch, heads, queries, dim;
  std::vector<int64_t> window;  // one causal window an axis; -1: all keys so far
};

const std::vector<Shape> kShapes{
    {"window_32x512", 1, 1, 2048, 64, {32, 512}},
    {"window_8x16x64", 1, 1, 2048, 64, {8, 16, 64}},
    {"causal_4096", 1, 1, 4096, 64, {-1}},
    {"causal_small_heads", 12, 4, 64, 32, {-1}},
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

void register_shape(const Shape& shape) {
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
  add("forward/loops", [get](benchmark::State& state) {
    const Instance& problem = get();
    for (auto _ : state) scalar_dense_forward(problem.forward());
    report(state, problem.forward_flop(), peak_of(simd_level()));
  });
  std::vector<std::string> levels = simd_levels();
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
  for (const auto& shape : nsimplex::kernels::kShapes) nsimplex::kernels::register_shape(shape);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
