#include <ATen/ATen.h>
#include <nsimplex/routing.h>
#include <torch/library.h>

namespace nsimplex {
namespace {

using at::Tensor;

Tensor mass(const Tensor& sparse_lse, const Tensor& dense_lse) {
  for (const Tensor* lse : {&sparse_lse, &dense_lse}) {
    const char* const name = lse == &sparse_lse ? "sparse_lse" : "dense_lse";
    TORCH_CHECK_TYPE(at::isFloatingType(lse->scalar_type()), "[retained_mass] ", name,
                     ": expected floating numbers, got ", lse->scalar_type());
    TORCH_CHECK_VALUE(lse->sym_sizes().equals(dense_lse.sym_sizes()), "[retained_mass] ", name,
                      ": expected shape ", dense_lse.sym_sizes(), ", got ", lse->sym_sizes());
  }
  const Tensor attends = at::isneginf(dense_lse).logical_not();
  const Tensor each =
      (sparse_lse - dense_lse.masked_fill(attends.logical_not(), 0)).exp() * attends;
  return each.sum() / attends.sum();
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("retained_mass(Tensor sparse_lse, Tensor dense_lse) -> Tensor",
        {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("retained_mass", TORCH_FN(mass));
}

}  // namespace

at::Tensor retained_mass(const at::Tensor& sparse_lse, const at::Tensor& dense_lse) {
  return mass(sparse_lse, dense_lse);
}

}  // namespace nsimplex
