// Attention over lists of tuples on the CPU, in the kernels' types.

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include <algorithm>

#include "equivariant/attention/attention_layer.h"
#include "support/parallel.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// Low precision is computed in float32.
at::ScalarType kernel_type(const Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

template <class Run>
auto in_kernel_type(const AttentionCall& call, Run&& run) {
  const at::ScalarType type = kernel_type(call.x);
  const auto cast = [&](const Tensor& tensor) { return tensor.to(type); };
  const Tensor x = cast(call.x), query = cast(call.query), query_bias = cast(call.query_bias),
               key = cast(call.key), key_bias = cast(call.key_bias), value = cast(call.value),
               output = cast(call.output);
  std::optional<Tensor> directions;
  if (call.directions) directions = cast(*call.directions);
  return run({x, query, query_bias, key, key_bias, value, output, directions, call.plan, call.parts,
              call.heads, call.form, call.normalise, call.features});
}

Tensor cpu_attention(const AttentionCall& call) {
  check_attention(call);
  return in_kernel_type(
             call, [](const AttentionCall& own) { return AttentionLayer<CpuClass>(own).forward(); })
      .to(call.x.scalar_type());
}

AttentionGradients cpu_attention_backward(const AttentionBackwardCall& call) {
  check_attention_backward(call);
  const at::ScalarType type = call.forward.x.scalar_type();
  return in_kernel_type(call.forward, [&](const AttentionCall& own) {
    AttentionGradients gradients =
        AttentionLayer<CpuClass>(own).backward(call.grad_out.to(kernel_type(own.x)));
    return std::apply([type](const auto&... each) { return AttentionGradients{each.to(type)...}; },
                      gradients);
  });
}

// Numbers of a block of rows of a product, 512 KB in float32: they stay in a core's second cache
// until they are where they belong.
constexpr int64_t kBlockOfProduct = 1 << 17;

}  // namespace

// Block by block of rows. Classes read the rows of one part at a time, and rows of a part with
// those of all others between them miss the caches. Of two blocks or more each is made by one
// thread, so that its bits do not depend on how many there are.
Tensor CpuClass::products(const std::optional<Tensor>& bias, const Tensor& rows,
                          const Tensor& matrix, int64_t parts) {
  const int64_t count = rows.size(0), columns = matrix.size(1), width = columns / parts;
  const int64_t each = std::clamp<int64_t>(kBlockOfProduct / std::max<int64_t>(columns, 1), 1,
                                           std::max<int64_t>((count + 1) / 2, 1));
  const Tensor result = at::empty({parts, count, width}, rows.options());
  const Tensor scratch = at::empty({thread_count(), each, columns}, rows.options());
  parallel_tasks((count + each - 1) / each, [&](int64_t block, int worker) {
    const c10::InferenceMode nothing_is_recorded;
    const int64_t begin = block * each, size = std::min(each, count - begin);
    const Tensor own = rows.narrow(0, begin, size);
    Tensor product = scratch.select(0, worker).narrow(0, 0, size);
    bias ? at::addmm_out(product, *bias, own, matrix) : at::mm_out(product, own, matrix);
    result.narrow(1, begin, size).copy_(product.view({size, parts, width}).transpose(0, 1));
  });
  return result;
}

namespace {

TORCH_LIBRARY_IMPL(nsimplex, CPU, m) {
  m.impl("equivariant_attention", TORCH_FN(flat_attention<&cpu_attention>));
  m.impl("equivariant_attention_backward",
         TORCH_FN(flat_attention_backward<&cpu_attention_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
