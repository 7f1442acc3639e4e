// Merges partial results by ATen calls, which PyTorch can differentiate, batch and trace. The work
// is a few passes over the outputs, which is little compared with the attention itself.

#include <ATen/ATen.h>
#include <nsimplex/attention.h>
#include <torch/library.h>

#include <limits>

namespace nsimplex {
namespace {

using at::Tensor;

void check(at::TensorList outs, at::TensorList lses) {
  TORCH_CHECK_VALUE(!outs.empty(), "[merge_attention] outs: expected at least one part, got none");
  TORCH_CHECK_VALUE(lses.size() == outs.size(), "[merge_attention] lses: expected ", outs.size(),
                    ", one for each of outs, got ", lses.size());
  const Tensor &first = outs[0], &first_lse = lses[0];
  TORCH_CHECK_VALUE(first.dim() >= 1,
                    "[merge_attention] outs[0]: expected [.., channels], got a scalar");
  TORCH_CHECK_TYPE(first_lse.scalar_type() == at::kFloat || first_lse.scalar_type() == at::kDouble,
                   "[merge_attention] lses[0]: expected float32 or float64, got ",
                   first_lse.scalar_type());
  for (size_t p = 0; p < outs.size(); ++p) {
    const auto expect = [&](const char* name, const Tensor& tensor, at::ScalarType type,
                            c10::SymIntArrayRef sizes) {
      TORCH_CHECK_TYPE(tensor.scalar_type() == type, "[merge_attention] ", name, "[", p,
                       "]: expected dtype ", type, ", got ", tensor.scalar_type());
      TORCH_CHECK_VALUE(tensor.sym_sizes().equals(sizes), "[merge_attention] ", name, "[", p,
                        "]: expected shape ", sizes, ", got ", tensor.sym_sizes());
    };
    expect("outs", outs[p], first.scalar_type(), first.sym_sizes());
    expect("lses", lses[p], first_lse.scalar_type(), first.sym_sizes().slice(0, first.dim() - 1));
  }
}

std::tuple<Tensor, Tensor> merge(at::TensorList outs, at::TensorList lses) {
  check(outs, lses);
  // The maximum only keeps the exponentials in range; the result does not depend on it.
  Tensor maximum = lses[0].detach();
  for (const Tensor& lse : lses.slice(1)) maximum = at::maximum(maximum, lse.detach());
  const Tensor empty = at::isneginf(maximum);
  maximum = maximum.masked_fill(empty, 0);

  Tensor sum, weighted;
  for (size_t p = 0; p < outs.size(); ++p) {
    const Tensor weight = (lses[p] - maximum).exp();
    const Tensor part = outs[p].to(weight.scalar_type()) * weight.unsqueeze(-1);
    sum = p == 0 ? weight : sum + weight;
    weighted = p == 0 ? part : weighted + part;
  }
  sum = sum.masked_fill(empty, 1);
  return {(weighted / sum.unsqueeze(-1)).to(outs[0].scalar_type()),
          (maximum + sum.log()).masked_fill(empty, -std::numeric_limits<double>::infinity())};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("merge_attention(Tensor[] outs, Tensor[] lses) -> (Tensor out, Tensor lse)",
        {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeImplicitAutograd, m) {
  m.impl("merge_attention", TORCH_FN(merge));
}

// vmap requires a registration of this operator, although it only decomposes it.
TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) { m.impl("merge_attention", TORCH_FN(merge)); }

}  // namespace

AttentionOutput merge_attention(at::TensorList outs, at::TensorList lses) {
  auto [out, lse] = merge(outs, lses);
  return {std::move(out), std::move(lse)};
}

}  // namespace nsimplex
