// The sparse linear layer on the CPU, by chunks of output rows. It computes the sums of a chunk,
// multiplies them by the weights and continues with the next chunk. The backward pass recomputes
// the sums for the gradient of the weights. For that of x it adds the look-ups of every source
// block by block. No sums are stored.

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>

#include "equivariant/linear/class_parts.h"
#include "equivariant/linear/equivariant_linear_sparse_call.h"
#include "equivariant/linear/equivariant_plan.h"
#include "kernels/common/rounding.h"
#include "support/rows_product.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;
using kernels::ClassPart;

// Numbers in the sums of a chunk, 512 KB in float32. They stay in a core's second-level cache until
// the product has read them.
constexpr int64_t kChunkNumbers = 1 << 17;
// Numbers in the gradients of look-ups that are collected before they are added, 16 MB in float32.
constexpr int64_t kBlockNumbers = 1 << 22;
// The gradient of the weights is summed in this number of parts.
constexpr int64_t kWeightParts = 16;

// Divides rows into equal chunks; the last may be smaller. There are at least two chunks if there
// are two rows, so that two threads have work.
struct Chunks {
  int64_t rows, each;

  Chunks(int64_t all_rows, int64_t numbers_a_row)
      : rows(all_rows),
        each(std::min(product_rows(kChunkNumbers / std::max<int64_t>(numbers_a_row, 1)),
                      std::max<int64_t>(ceil_div(all_rows, 2), 1))) {}

  int64_t count() const { return ceil_div(rows, each); }
  int64_t begin(int64_t chunk) const { return chunk * each; }
  int64_t size(int64_t chunk) const { return std::min(each, rows - begin(chunk)); }
};

template <class Problem, class Run>
void run_all(const Problem& problem, Run&& run) {
  const int64_t tasks = kernels::plan_class_sums(problem).tasks[0];
  for (int64_t task = 0; task < tasks; ++task) run(problem, task);
}

// One call in the kernels' type.
template <class T>
class Layer {
 public:
  explicit Layer(const LinearCall& call)
      : call_(call),
        x_(own(call.x)),
        weight_(own(call.weight)),
        rows_(call.plan[kOutputPlaces].size(0)),
        channels_(call.x.size(1)),
        columns_(call.weight.size(2)) {}

  Tensor forward() const {
    const Tensor tables = group_sums<T>(call_.sums(), x_), out = empty({rows_, columns_});
    const Tensor bias = call_.bias ? own(*call_.bias) : Tensor();
    for_each_part(call_.sums(), by_class, [&](const ClassPart& part, const PartPlace& place) {
      const Tensor matrix = matrix_of(part, place), own_out = out.narrow(0, place.row, part.rows);
      std::optional<Tensor> own_bias;
      if (bias.defined()) own_bias = bias.select(0, place.bias_class);
      const Chunks chunks(part.rows, matrix.size(0));
      const Tensor scratch = empty({thread_count(), chunks.each, matrix.size(0)});
      parallel_tasks(chunks.count(), [&](int64_t chunk, int worker) {
        const c10::InferenceMode nothing_is_recorded;
        const Tensor sums = sums_of(part, chunks, chunk, tables, scratch.select(0, worker));
        Tensor to = own_out.narrow(0, chunks.begin(chunk), chunks.size(chunk));
        rows_product(sums, matrix, own_bias, to);
      });
    });
    // The rows of a single pattern are already in order.
    return one_pattern() ? out : out.index_select(0, call_.plan[kOutputPlaces]);
  }

  LinearGradients backward(const Tensor& grad_out, const std::array<bool, 3>& wanted) const {
    Tensor grad = own(grad_out);
    if (!one_pattern()) {
      grad = empty({rows_, columns_}).index_copy_(0, call_.plan[kOutputPlaces], grad);
    }
    return {wanted[0] ? grad_x(grad) : Tensor(), wanted[1] ? grad_weight(grad) : Tensor(),
            wanted[2] ? grad_bias(grad) : Tensor()};
  }

 private:
  static Tensor own(const Tensor& tensor) {
    return tensor.to(c10::CppTypeToScalarType<T>::value).contiguous();
  }
  Tensor empty(at::IntArrayRef sizes) const { return at::empty(sizes, x_.options()); }
  bool one_pattern() const { return unflatten_parts(call_.parts).size() == 1; }

  // [classes of the part C, D]
  Tensor matrix_of(const ClassPart& part, const PartPlace& place) const {
    const LinearCall own{x_, weight_, call_.bias, call_.plan, call_.parts, call_.mean};
    return part_matrix(own, place.weight_class, part.classes);
  }

  // The sums [rows of the chunk, classes of the part C], in scratch.
  Tensor sums_of(const ClassPart& part, const Chunks& chunks, int64_t chunk, const Tensor& tables,
                 const Tensor& scratch) const {
    const int64_t rows = chunks.size(chunk);
    kernels::ClassSums<T> problem{slice(part, chunks.begin(chunk), rows), channels_, x_.size(0)};
    problem.features = x_.template const_data_ptr<T>();
    problem.tables = tables.const_data_ptr<double>();
    problem.sums = static_cast<T*>(scratch.mutable_data_ptr());
    run_all(problem, [](const auto& own, int64_t task) { kernels::run_class_sums(own, task); });
    return scratch.narrow(0, 0, rows);
  }

  Tensor grad_x(const Tensor& grad) const {
    SourceSums<T> sources(call_.sums(), channels_);
    for_each_part(call_.sums(), by_lookup, [&](const ClassPart& part, const PartPlace& place) {
      const Tensor transposed = matrix_of(part, place).t();
      const int64_t width = transposed.size(1), numbers = part.lookups * channels_;
      const int64_t block_rows =
          std::min(part.rows, std::max<int64_t>(kBlockNumbers / std::max<int64_t>(numbers, 1), 1));
      const Tensor lookups = empty({block_rows * part.lookups, channels_});
      const Tensor scratch = empty({thread_count(), Chunks(block_rows, width).each, width});
      for (int64_t begin = 0; begin < part.rows; begin += block_rows) {
        const int64_t rows = std::min(block_rows, part.rows - begin);
        const Chunks chunks(rows, width);
        const Tensor own_grad = grad.narrow(0, place.row + begin, rows);
        parallel_tasks(chunks.count(), [&](int64_t chunk, int worker) {
          const c10::InferenceMode nothing_is_recorded;
          const int64_t first = chunks.begin(chunk), count = chunks.size(chunk);
          Tensor grad_sums = scratch.select(0, worker).narrow(0, 0, count);
          rows_product(own_grad.narrow(0, first, count), transposed, std::nullopt, grad_sums);
          kernels::ClassSumsTransposed<T> problem{slice(part, begin + first, count), channels_};
          problem.grad_sums = static_cast<const T*>(grad_sums.const_data_ptr());
          problem.grad_lookups =
              static_cast<T*>(lookups.mutable_data_ptr()) + first * part.lookups * channels_;
          run_all(problem, [](const auto& own, int64_t task) {
            kernels::run_class_sums_transposed(own, task);
          });
        });
        sources.add(lookups, place.lookup + begin * part.lookups, rows * part.lookups);
      }
    });
    return sources.to_rows();
  }

  Tensor grad_weight(const Tensor& grad) const {
    const Tensor tables = group_sums<T>(call_.sums(), x_), result = at::zeros_like(weight_);
    for_each_part(call_.sums(), by_class, [&](const ClassPart& part, const PartPlace& place) {
      const int64_t width = part.classes * channels_;
      const Chunks chunks(part.rows, width);
      const int64_t parts = std::min(kWeightParts, chunks.count());
      const Tensor sums_of_parts = at::zeros({parts, width, columns_}, x_.options());
      const Tensor scratch = empty({thread_count(), chunks.each, width});
      parallel_tasks(parts, [&](int64_t index, int worker) {
        const c10::InferenceMode nothing_is_recorded;
        Tensor total = sums_of_parts.select(0, index);
        const int64_t end = (index + 1) * chunks.count() / parts;
        for (int64_t chunk = index * chunks.count() / parts; chunk < end; ++chunk) {
          const Tensor sums = sums_of(part, chunks, chunk, tables, scratch.select(0, worker));
          const int64_t first = place.row + chunks.begin(chunk);
          total.addmm_(sums.t(), grad.narrow(0, first, chunks.size(chunk)));
        }
      });
      for (int64_t index = 1; index < parts; ++index) sums_of_parts[0].add_(sums_of_parts[index]);
      result.index_add_(0, call_.plan[kWeightClasses].narrow(0, place.weight_class, part.classes),
                        sums_of_parts[0].view({part.classes, channels_, columns_}));
    });
    return result;
  }

  Tensor grad_bias(const Tensor& grad) const {
    std::vector<int32_t> offsets{0}, rows(rows_);
    std::vector<int64_t> classes;
    std::iota(rows.begin(), rows.end(), 0);
    for (const PatternPart& part : unflatten_parts(call_.parts)) {
      offsets.push_back(offsets.back() + static_cast<int32_t>(part.rows));
      classes.push_back(part.bias_class);
    }
    const auto wide = x_.options().dtype(at::kDouble);
    const Tensor totals = at::empty({std::ssize(classes), columns_}, wide);
    segment_sums<T, double>({offsets.data(), rows.data(), rows_}, grad, totals);
    return at::zeros(call_.bias->sizes(), wide)
        .index_add_(0, at::tensor(classes, at::kLong), totals);
  }

  const LinearCall& call_;
  Tensor x_, weight_;
  int64_t rows_, channels_, columns_;
};

Tensor cpu_linear(const LinearCall& call) {
  check_linear(call);
  check_plan_values(call.sums(), "equivariant_linear_sparse");
  return in_kernel_type(call.x.scalar_type(), [&](auto number) {
    return Layer<decltype(number)>(call).forward().to(call.x.scalar_type());
  });
}

LinearGradients cpu_linear_backward(const LinearBackwardCall& call) {
  check_linear(call);
  check_plan_values(call.forward.sums(), "equivariant_linear_sparse_backward");
  return in_kernel_type(call.forward.x.scalar_type(), [&](auto number) {
    auto gradients = Layer<decltype(number)>(call.forward).backward(call.grad_out, call.wanted);
    const auto restore = [&](Tensor& gradient) {
      if (gradient.defined()) gradient = gradient.to(call.forward.x.scalar_type());
    };
    std::apply([&](auto&... each) { (restore(each), ...); }, gradients);
    return gradients;
  });
}

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&cpu_linear>));
  m.impl("equivariant_linear_sparse_backward",
         TORCH_FN(flat_linear_backward<&cpu_linear_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
