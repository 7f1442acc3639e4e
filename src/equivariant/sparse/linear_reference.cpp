// The sparse linear layer from the sums of all classes, kept in full, and ATen calls; its gradients
// likewise, to be differentiated again.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <iterator>

#include "equivariant/sparse/linear_call.h"

namespace nsimplex::equivariant {
namespace {

using at::Tensor;

// visit(part, rows, sums and classes before it) for the parts, each of output tuples of a pattern.
template <class Visit>
void for_each_pattern(const LinearCall& call, Visit&& visit) {
  int64_t row = 0, sum = 0, first_class = 0;
  for (const PatternPart& part : unflatten_parts(call.parts)) {
    visit(part, row, sum, first_class);
    row += part.rows;
    sum += part.rows * std::ssize(part.classes);
    first_class += std::ssize(part.classes);
  }
}

// Rows of the output, part by part.
Tensor in_parts(const Tensor& rows, const Tensor& places) {
  const Tensor order = at::empty_like(places).scatter(0, places, at::arange(places.size(0)));
  return rows.index_select(0, order.to(rows.device()));
}

}  // namespace

Tensor reference_linear(const LinearCall& call) {
  check_linear(call);
  const auto& [x, weight, bias, plan, parts, mean] = call;
  const Tensor sums = dispatch_sums(call.sums());
  std::vector<Tensor> out;
  for_each_pattern(call, [&](const PatternPart& part, int64_t, int64_t sum, int64_t first_class) {
    const int64_t classes = std::ssize(part.classes);
    const Tensor own =
        sums.narrow(0, sum, part.rows * classes).view_symint({part.rows, classes * x.sym_size(1)});
    const Tensor matrix = part_matrix(call, first_class, classes);
    out.push_back(bias ? at::addmm(bias->select(0, part.bias_class), own, matrix)
                       : at::mm(own, matrix));
  });
  if (out.empty()) return x.new_zeros_symint({0, weight.sym_size(2)});
  return at::cat(out).index_select(0, plan[kOutputPlaces]);
}

LinearGradients reference_linear_backward(const LinearBackwardCall& call) {
  check_linear(call);
  const auto& [x, weight, bias, plan, parts, mean] = call.forward;
  const c10::SymInt channels = x.sym_size(1);
  const Tensor grad = in_parts(call.grad_out, plan[kOutputPlaces]);
  const Tensor sums = call.wanted[1] ? dispatch_sums(call.forward.sums()) : Tensor();
  std::vector<Tensor> grad_sums{x.new_zeros_symint({0, channels})};
  Tensor grad_weight = call.wanted[1] ? at::zeros_like(weight) : Tensor();
  Tensor grad_bias = call.wanted[2] ? at::zeros_like(*bias) : Tensor();
  for_each_pattern(
      call.forward, [&](const PatternPart& part, int64_t row, int64_t sum, int64_t first_class) {
        const int64_t classes = std::ssize(part.classes);
        const Tensor own = grad.narrow(0, row, part.rows);
        if (call.wanted[0]) {
          const Tensor matrix = part_matrix(call.forward, first_class, classes);
          grad_sums.push_back(at::mm(own, matrix.t()).view_symint({part.rows * classes, channels}));
        }
        if (call.wanted[1]) {
          const Tensor own_sums =
              sums.narrow(0, sum, part.rows * classes).view_symint({part.rows, classes * channels});
          const Tensor product = at::mm(own_sums.t(), own);
          grad_weight =
              grad_weight.index_add(0, plan[kWeightClasses].narrow(0, first_class, classes),
                                    product.view_symint({classes, channels, weight.sym_size(2)}));
        }
        if (call.wanted[2]) {
          const Tensor at_class = at::full({1}, part.bias_class, plan[kOutputPlaces].options());
          grad_bias = grad_bias.index_add(0, at_class, own.sum(0, /*keepdim=*/true));
        }
      });
  const Tensor all_sums = call.wanted[0] ? at::cat(grad_sums) : Tensor();
  return {call.wanted[0] ? dispatch_transposed({all_sums, plan, parts, mean}) : Tensor(),
          grad_weight, grad_bias};
}

namespace {

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&reference_linear>));
  m.impl("equivariant_linear_sparse_backward",
         TORCH_FN(flat_linear_backward<&reference_linear_backward>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("equivariant_linear_sparse", TORCH_FN(flat_linear<&reference_linear>));
  m.impl("equivariant_linear_sparse_backward",
         TORCH_FN(flat_linear_backward<&reference_linear_backward>));
}

}  // namespace
}  // namespace nsimplex::equivariant
