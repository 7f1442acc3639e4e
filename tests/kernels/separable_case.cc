#include "kernels/separable_case.h"

#include <hwy/aligned_allocator.h>

#include <atomic>
#include <random>
#include <thread>
#include <utility>

namespace nsimplex::kernels::testing {
namespace {

template <class T>
Rows<const T> rows_of(const std::vector<T>& data, int64_t heads, int64_t rows, int64_t channels) {
  return {data.data(), heads * rows * channels, rows * channels, channels};
}
template <class T>
Rows<T> rows_of(std::vector<T>& data, int64_t heads, int64_t rows, int64_t channels) {
  return {data.data(), heads * rows * channels, rows * channels, channels};
}

// Runs tasks on threads of its own: run(task, scratch).
template <class Run>
void run_tasks(int64_t tasks, size_t scratch_bytes, int threads, Run&& run) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    const auto scratch = hwy::AllocateAligned<char>(scratch_bytes);
    std::fill_n(scratch.get(), scratch_bytes, '\xff');  // NaN where nothing was written
    for (int64_t task; (task = next.fetch_add(1)) < tasks;) run(task, scratch.get());
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const SeparableCase& value) {
  return stream << value.name;
}

template <class T>
SeparableData<T>::SeparableData(const SeparableCase& given) : shape(given) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> feature(0.0, 1.0);
  std::normal_distribution<double> number;
  const auto draw = [&](auto& distribution, int64_t count) {
    std::vector<T> numbers(static_cast<size_t>(count));
    for (T& each : numbers) each = static_cast<T>(distribution(random));
    return numbers;
  };
  const SeparableCase& s = shape;
  const int64_t queries = s.batch * s.heads * s.queries;
  query = draw(feature, queries * s.features);
  grad_out = draw(number, queries * s.value_dim);
  grad_den = draw(number, queries);
  if (!s.grad_normalizer) std::fill(grad_den.begin(), grad_den.end(), T{0});
  for (const int64_t length : s.lengths) {
    keys.push_back(draw(feature, s.batch * s.kv_heads * length * s.features));
    values.push_back(draw(number, s.batch * s.kv_heads * length * s.value_dim));
  }
  if (s.silent_query) std::fill_n(query.begin() + s.features, s.features, T{0});
}

template <class T>
SeparableProblem<T> SeparableData<T>::problem() const {
  SeparableProblem<T> p;
  p.order = static_cast<int>(shape.lengths.size());
  p.batch = shape.batch;
  p.heads = shape.heads;
  p.kv_heads = shape.kv_heads;
  p.queries = shape.queries;
  p.features = shape.features;
  p.value_dim = shape.value_dim;
  p.query = rows_of(query, shape.heads, shape.queries, shape.features);
  for (int m = 0; m < p.order; ++m) {
    const int64_t length = shape.lengths[m];
    Visibility visible{length, length - shape.queries, -1, -1, shape.causal};
    if (!shape.left.empty()) {
      visible.left = shape.left[m];
      visible.right = shape.right[m];
    }
    p.axes[m] = {rows_of(keys[m], shape.kv_heads, length, shape.features),
                 rows_of(values[m], shape.kv_heads, length, shape.value_dim), visible};
  }
  return p;
}

// out = num / den: d num = grad_out / den, d den = grad_den - (grad_out . out) / den.
template <class T>
std::vector<T> SeparableData<T>::grad_sums() const {
  const int64_t width = shape.value_dim;
  std::vector<T> sums;
  for (size_t row = 0; row < normalizer.size(); ++row) {
    double dot = 0;
    for (int64_t c = 0; c < width; ++c) {
      const size_t at = row * width + c;
      sums.push_back(normalizer[row] == 0 ? T{0} : grad_out[at] / normalizer[row]);
      dot += static_cast<double>(grad_out[at]) * out[at];
    }
    sums.push_back(normalizer[row] == 0 ? T{0}
                                        : grad_den[row] - static_cast<T>(dot / normalizer[row]));
  }
  return sums;
}

template <class T>
void SeparableData<T>::run(int threads) {
  SeparableForward<T> forward{problem()};
  out.assign(grad_out.size(), T{-1});
  normalizer.assign(grad_den.size(), T{-1});
  forward.out = rows_of(out, shape.heads, shape.queries, shape.value_dim);
  forward.normalizer = normalizer.data();
  const SeparablePlan plan = plan_separable_forward(forward);
  const auto workspace = hwy::AllocateAligned<char>(plan.workspace_bytes + 1);
  for (int phase = 0; phase < plan.phases; ++phase) {
    run_tasks(plan.tasks[phase], plan.scratch_bytes, threads, [&](int64_t task, void* scratch) {
      run_separable_forward(forward, plan, phase, task, workspace.get(), scratch);
    });
  }
  run_backward(threads);
}

template <class T>
void SeparableData<T>::run_backward(int threads) {
  SeparableBackward<T> backward{problem()};
  backward.out = rows_of(std::as_const(out), shape.heads, shape.queries, shape.value_dim);
  backward.grad_out = rows_of(std::as_const(grad_out), shape.heads, shape.queries, shape.value_dim);
  backward.normalizer = normalizer.data();
  backward.grad_normalizer = shape.grad_normalizer ? grad_den.data() : nullptr;
  grad_query.assign(query.size(), T{-1});
  backward.grad_query = rows_of(grad_query, shape.heads, shape.queries, shape.features);
  const SeparablePlan plan = plan_separable_backward(backward);
  grad_keys.clear();
  std::vector<std::vector<T>> partial;
  for (size_t m = 0; m < keys.size(); ++m) {
    grad_keys.emplace_back(keys[m].size(), T{-1});
    partial.emplace_back(plan.slices * values[m].size(), T{-1});
  }
  for (size_t m = 0; m < keys.size(); ++m) {
    const int64_t length = shape.lengths[m];
    backward.grad_key[m] = rows_of(grad_keys[m], shape.kv_heads, length, shape.features);
    backward.grad_value[m] = rows_of(partial[m], shape.kv_heads, length, shape.value_dim);
    backward.slice_stride[m] = static_cast<int64_t>(values[m].size());
  }
  run_tasks(plan.tasks[0], plan.scratch_bytes, threads, [&](int64_t task, void* scratch) {
    run_separable_backward(backward, plan, task, scratch);
  });
  grad_values.clear();
  for (size_t m = 0; m < keys.size(); ++m) {
    std::vector<T>& sum = grad_values.emplace_back(values[m].size());
    for (size_t k = 0; k < partial[m].size(); ++k) sum[k % sum.size()] += partial[m][k];
  }
}

// Query by query: the state of every axis from all keys that the query sees, and its gradient back.
template <class T>
void SeparableData<T>::define() {
  using Long = long double;
  const SeparableProblem<T> p = problem();
  const int64_t width = p.value_dim + 1, size = p.features * width;
  const auto value = [&](int m, int64_t b, int64_t h, int64_t j, int64_t c) {
    return c == p.value_dim ? Long{1} : Long{p.axes[m].value.row(b, h, j)[c]};
  };
  out.clear();
  normalizer.clear();
  std::vector<std::vector<Long>> states(p.order, std::vector<Long>(size));
  const auto states_of = [&](int64_t b, int64_t h, int64_t i) {
    for (int m = 0; m < p.order; ++m) {
      std::fill(states[m].begin(), states[m].end(), Long{0});
      const Range range = p.axes[m].visible.of(b, i);
      for (int64_t j = range.begin; j < range.end; ++j) {
        for (int64_t k = 0; k < size; ++k) {
          states[m][k] += p.axes[m].key.row(b, h, j)[k / width] * value(m, b, h, j, k % width);
        }
      }
    }
  };
  const auto for_queries = [&](auto&& body) {
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t h = 0; h < p.heads; ++h) {
        for (int64_t i = 0; i < p.queries; ++i) {
          states_of(b, h / (p.heads / p.kv_heads), i);
          body(b, h, i);
        }
      }
    }
  };
  for_queries([&](int64_t b, int64_t h, int64_t i) {
    std::vector<Long> sums(width);
    for (int64_t k = 0; k < size; ++k) {
      Long product = p.query.row(b, h, i)[k / width];
      for (const auto& state : states) product *= state[k];
      sums[k % width] += product;
    }
    const Long den = sums.back();
    for (int64_t c = 0; c < p.value_dim; ++c) {
      out.push_back(static_cast<T>(den == 0 ? 0 : sums[c] / den));
    }
    normalizer.push_back(static_cast<T>(den));
  });

  const std::vector<T> h = grad_sums();
  std::vector<Long> grad_q(query.size());
  std::vector<std::vector<Long>> grad_k, grad_v;
  for (int m = 0; m < p.order; ++m) {
    grad_k.emplace_back(keys[m].size());
    grad_v.emplace_back(values[m].size());
  }
  for_queries([&](int64_t b, int64_t head, int64_t i) {
    const int64_t kv = head / (p.heads / p.kv_heads);
    const int64_t row = (b * p.heads + head) * p.queries + i;
    for (int64_t k = 0; k < size; ++k) {
      const int64_t r = k / width, c = k % width;
      const Long gradient = h[row * width + c];
      Long product = 1;
      for (const auto& state : states) product *= state[k];
      grad_q[row * p.features + r] += gradient * product;
      for (int m = 0; m < p.order; ++m) {
        Long others = gradient * p.query.row(b, head, i)[r];
        for (int other = 0; other < p.order; ++other) others *= other == m ? 1 : states[other][k];
        const Range range = p.axes[m].visible.of(b, i);
        for (int64_t j = range.begin; j < range.end; ++j) {
          const int64_t key = (b * p.kv_heads + kv) * shape.lengths[m] + j;
          grad_k[m][key * p.features + r] += others * value(m, b, kv, j, c);
          if (c < p.value_dim) {
            grad_v[m][key * p.value_dim + c] += others * p.axes[m].key.row(b, kv, j)[r];
          }
        }
      }
    }
  });
  grad_query.assign(grad_q.begin(), grad_q.end());
  grad_keys.clear();
  grad_values.clear();
  for (int m = 0; m < p.order; ++m) {
    grad_keys.emplace_back(grad_k[m].begin(), grad_k[m].end());
    grad_values.emplace_back(grad_v[m].begin(), grad_v[m].end());
  }
}

template struct SeparableData<float>;
template struct SeparableData<double>;

}  // namespace nsimplex::kernels::testing
