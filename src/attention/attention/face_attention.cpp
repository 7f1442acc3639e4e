// Attention that is normalised over the last axis only, on the tiles of the reference. A tile
// contains whole rows of the last axis, and therefore whole faces.

#include <ATen/ATen.h>
#include <nsimplex/attention.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_terms.h"
#include "support/autocast.h"
#include "support/infinity.h"

namespace nsimplex {
namespace dense {
namespace {

using at::Tensor;

void check_faces(const Call& call) {
  check(call);
  if (call.query.is_cpu()) check_values(call);
  require_handled("face_attention", call.options, kFaces);
}

// For a block of queries: the sum over faces of their means, the number of faces, and their lse.
class FaceSums {
 public:
  FaceSums(const Problem& problem, const Call& call, int64_t queries)
      : problem_(problem), sizes_(problem.query.sizes().slice(0, 3).vec()) {
    const at::TensorOptions options = call.query.options().dtype(problem.accumulate);
    sizes_.push_back(queries);
    faces_ = at::zeros(sizes_, options);
    sizes_.push_back(call.values[0].size(3));
    weighted_ = at::zeros(sizes_, options);
    sizes_.pop_back();
    for (size_t m = 0; m + 1 < call.keys.size(); ++m) sizes_.push_back(call.keys[m].size(2));
    lse_ = at::full(sizes_, -kInfinity, options);
  }

  void add(const Tile& tile) {
    const TileTerms terms(problem_, tile);
    const Tensor logits = terms.logits();
    const Tensor empty = at::isneginf(logits).all(-1);
    const Tensor finite = logits.masked_fill(empty.unsqueeze(-1), 0);
    const Tensor lse = accumulated(finite.logsumexp(-1), problem_.accumulate);
    // exp(logits - lse) would be inaccurate: a large lse has no digits left for the logarithm.
    const Tensor weights =
        finite.softmax(-1).to(problem_.accumulate).masked_fill(empty.unsqueeze(-1), 0);
    weighted_ = weighted_ + terms.combine_values(terms.with_dropout(weights));
    faces_ = faces_ + empty.logical_not().sum(-1);

    // The tile's box of faces at its place among all faces.
    at::DimVector counts, padding;
    for (int m = 0; m + 1 < problem_.settings.order; ++m) {
      const kernels::Range box = tile.keys[m];
      counts.push_back(box.size());
      padding.insert(padding.begin(), {box.begin, sizes_[4 + m] - box.end});
    }
    const Tensor box = lse.masked_fill(empty, -kInfinity);
    lse_ = counts.empty() ? box.squeeze(-1)
                          : at::maximum(lse_, at::constant_pad_nd(box.unflatten(-1, counts),
                                                                  padding, -kInfinity));
  }

  Tensor out() const {
    return weighted_ * (problem_.output_scale() / faces_.clamp_min(1)).unsqueeze(-1);
  }
  const Tensor& lse() const { return lse_; }

 private:
  const Problem& problem_;
  std::vector<int64_t> sizes_;  ///< [B, H, G, Q, T_1, .., T_{N-1}]
  Tensor weighted_, faces_, lse_;
};

Output faces(const Call& call) {
  const NoAutocast below(call.query.device().type());
  check_faces(call);
  const Problem problem(call);
  std::vector<Tensor> outs, lses;
  const Tiling tiling(call, problem.settings);
  tiling.for_each_block([&](int64_t, int64_t queries, const std::vector<Tile>& tiles) {
    FaceSums sums(problem, call, queries);
    for (const Tile& tile : tiles) sums.add(tile);
    outs.push_back(sums.out());
    lses.push_back(sums.lse());
  });
  return {in_order_of(call.query, at::cat(outs, 3).flatten(1, 2)), at::cat(lses, 3).flatten(1, 2)};
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("face_attention(Tensor query, Tensor[] keys, Tensor[] values, *" NSIMPLEX_OPTIONS_SCHEMA
        ") -> (Tensor out, Tensor lse)",
        {at::Tag::pt2_compliant_tag});
}

// lse has an entry per face.
Output meta_faces(const Call& call) {
  check_faces(call);
  const std::array<c10::SymInt, 4> sizes = output_sizes(call);
  std::vector<c10::SymInt> faces(sizes.begin(), sizes.begin() + 3);
  for (const Tensor& key : call.keys.slice(0, call.keys.size() - 1)) {
    faces.push_back(key.sym_size(2));
  }
  const at::TensorOptions options = call.query.options();
  return {empty_in_order(call.query, sizes, options),
          at::empty_symint(faces, options.dtype(accumulate_type(call.query.scalar_type())))};
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) { m.impl("face_attention", TORCH_FN(flat<&meta_faces>)); }

// Autograd and vmap use the ATen calls inside. Elsewhere a traced graph keeps the operator whole,
// and with it symbolic lengths.
TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("face_attention", TORCH_FN(flat<&faces>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("face_attention", TORCH_FN(flat<&faces>));
}

}  // namespace
}  // namespace dense

AttentionOutput face_attention(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                               const AttentionOptions& options) {
  auto [out, lse] = dense::with_call(query, keys, values, options, dense::faces);
  return {dense::swap_heads(options.layout, out), std::move(lse)};
}

}  // namespace nsimplex
