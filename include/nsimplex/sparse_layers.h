#pragma once

#include <nsimplex/routing_layers.h>
#include <nsimplex/sparse.h>

namespace nsimplex {

/// How a layer chooses its tuples.
struct SelectionOptions {
  /// product: I_i x .. x I_i of the k keys chosen for query i; path: j1 in I_i, j2 in I_{j1}, ..
  TuplePattern pattern = TuplePattern::product;
  int64_t keys = 64;       ///< k
  IndexerOptions indexer;  ///< dim 0: that of the layer; heads of reuse: those of the source
  double loss_weight = 0;  ///< of the indexer's alignment loss; above 0 reuse learns a w
};

/// N-simplicial attention over the tuples that an indexer chooses, k^N a query.
///
/// Projections and their parameters are those of SimplicialAttention with the same options, without
/// contexts, windows and key lengths; the indexer's are `indexer.*` (see Indexer). The choice
/// passes no gradient: the indexer learns from auxiliary_loss() alone, which reaches nothing else.
///
/// An indexer of source `reuse` scores the pairs of the layer that set_source() names, which must
/// have run before in the same pass.
class NSIMPLEX_API SparseAttentionImpl : public SimplicialAttentionImpl {
 public:
  SparseAttentionImpl(const SimplicialAttentionOptions& options, const SelectionOptions& selection);

  at::Tensor forward(const at::Tensor& x, at::TensorList contexts = {},
                     const std::optional<at::Tensor>& key_lengths = std::nullopt) override;

  /// With an IndexedCache.
  at::Tensor forward(const at::Tensor& x, LayerCache& cache) override;

  /// One that holds all tokens, whatever `unbounded`: a chosen key may be any of them.
  std::shared_ptr<LayerCache> make_cache(int64_t unbounded = -1) const override;

  void reset_parameters(const Initialization& init = {}) override;

  /// The layer whose pairs are reused; it keeps them from now on. Not owned.
  void set_source(const std::shared_ptr<SimplicialAttentionImpl>& source);

  /// loss_weight times indexer_loss() of the last forward(x); undefined where gradients were not
  /// recorded or nothing learns.
  const at::Tensor& auxiliary_loss() const { return auxiliary_loss_; }

  /// While it warms up the layer attends to all admissible tuples, O(T^N) a query, and the indexer
  /// learns over all admissible keys; afterwards both keep to what is chosen.
  void set_warm_up(bool warms_up) { warms_up_ = warms_up; }

  /// From now on forward(x) leaves retained_mass(): the share of dense attention's weight that lies
  /// on the chosen tuples (nsimplex/routing.h), which costs dense attention besides.
  void measure_retained_mass(bool measures) { measures_mass_ = measures; }
  const at::Tensor& retained_mass() const { return retained_mass_; }

 private:
  IndexParts index_of(const at::Tensor& x, int64_t first_position);
  at::Tensor choose(const IndexParts& index) const;
  at::Tensor alignment_loss(const IndexParts& index, const at::Tensor& query, at::TensorList keys,
                            const std::optional<at::Tensor>& chosen) const;
  AttentionOutput attend(const at::Tensor& query, at::TensorList keys, at::TensorList values,
                         const at::Tensor& chosen) const;
  AttentionOutput attend_to_all(const at::Tensor& query, at::TensorList keys,
                                at::TensorList values) const;

  SelectionOptions selection_;
  Indexer indexer_{nullptr};
  std::weak_ptr<SimplicialAttentionImpl> source_;
  bool warms_up_ = false, measures_mass_ = false;
  at::Tensor auxiliary_loss_, retained_mass_;
};
TORCH_MODULE(SparseAttention);

}  // namespace nsimplex
