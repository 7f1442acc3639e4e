// Combines a query with leading keys into a row of U, and the reverse, for one SIMD target (toggled
// guard).
#if defined(NSIMPLEX_KERNELS_DENSE_COMBINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_COMBINE_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_COMBINE_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_COMBINE_INL_H_
#endif

#include <cstring>

#include "kernels/cpu/shared/leave_one_out-inl.h"
#include "kernels/cpu/shared/rows-inl.h"
#include "kernels/cpu/shared/wedge-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// The query combined with the leading keys: elementwise products, or wedge products, the last of
/// which is the dual. Level p combines the query with the keys of positions 0 .. p, so that a step
/// along the last leading axis costs one product.
template <class R>
class KeyPrefix {
 public:
  KeyPrefix(Arena<R>& arena, const Geometry& geometry, bool backward)
      : geometry_(geometry),
        leading_(geometry.inner()),
        determinant_(geometry.lead.planes > 1),
        table_(wedge_table(geometry.order)) {
    for (int p = 0; p + 1 < leading_; ++p) {
      level_[p] = arena.take(geometry.level_size(p));
      if (backward) grad_[p] = arena.take(geometry.level_size(p));
    }
  }

  /// Writes a row of U. `keys` are rows of the leading keys; those before `changed` are the same as
  /// in the previous call.
  void combine(const R* query, const R* const* keys, int changed, R* u) {
    if (leading_ == 0) {
      if (determinant_) {
        dual_of_two(query, plane(), R{1}, plane(), u, chunks());
      } else {
        std::memcpy(u, query, geometry_.depth * sizeof(R));
      }
    }
    for (int p = changed; p < leading_; ++p) {
      const R* const from = p == 0 ? query : level_[p - 1];
      const bool last = p + 1 == leading_;
      R* const to = last ? u : level_[p];
      if (determinant_) {
        wedge(table_.steps[p], from, keys[p], plane(), to, last ? chunks() : plane());
      } else {
        multiply_rows(to, from, keys[p], geometry_.lead_depth);
      }
    }
  }

  /// Adds the gradients of the query and of the leading keys (null: not wanted), given the gradient
  /// of a row of U.
  void add_gradients(const R* grad_u, const R* query, const R* const* keys, R* grad_query,
                     R* const* grad_keys) {
    if (!determinant_) {
      add_leave_one_out(grad_u, query, keys, leading_, grad_query, grad_keys, geometry_.lead_depth);
      return;
    }
    if (leading_ == 0) {
      // The transpose of (q0, q1) -> (-q1, q0). A query has one row, so nothing is added up.
      dual_of_two(grad_u, chunks(), R{-1}, plane(), grad_query, plane());
      return;
    }
    for (int p = 0; p + 1 < leading_; ++p) {
      wedge(table_.steps[p], p == 0 ? query : level_[p - 1], keys[p], plane(), level_[p], plane());
      std::memset(grad_[p], 0, geometry_.level_size(p) * sizeof(R));
    }
    for (int p = leading_ - 1; p >= 0; --p) {
      const bool last = p + 1 == leading_;
      add_wedge_gradients(table_.steps[p], last ? grad_u : grad_[p], last ? chunks() : plane(),
                          p == 0 ? query : level_[p - 1], keys[p], plane(),
                          p == 0 ? grad_query : grad_[p - 1], grad_keys[p]);
    }
  }

 private:
  int64_t chunks() const { return geometry_.lead.chunks; }
  int64_t plane() const { return geometry_.lead.stride; }

  const Geometry& geometry_;
  const int leading_;
  const bool determinant_;
  const WedgeTable& table_;
  R *level_[kMaxOrder], *grad_[kMaxOrder];  // of all positions except the last, which ends in U
};

/// Levels of partial products (or sums) of values over the leading axes, in the same way.
template <class R>
struct Prefix {
  R* level[kMaxOrder];

  Prefix(Arena<R>& arena, int levels, int64_t width) {
    for (int p = 0; p < levels; ++p) level[p] = arena.take(width);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
