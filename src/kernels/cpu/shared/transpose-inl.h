// Transposes four rows of floats to columns, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_TURNED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_TURNED_INL_H_
#undef NSIMPLEX_KERNELS_TURNED_INL_H_
#else
#define NSIMPLEX_KERNELS_TURNED_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// Vectors of four floats as columns: entry j of row i goes to to[j][i].
template <class V>
HWY_INLINE void store_turned(V row0, V row1, V row2, V row3, float* const (&to)[4]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::DFromV<V> d;
  const auto low02 = hn::InterleaveLower(d, row0, row2), low13 = hn::InterleaveLower(d, row1, row3);
  const auto high02 = hn::InterleaveUpper(d, row0, row2);
  const auto high13 = hn::InterleaveUpper(d, row1, row3);
  hn::StoreU(hn::InterleaveLower(d, low02, low13), d, to[0]);
  hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, to[1]);
  hn::StoreU(hn::InterleaveLower(d, high02, high13), d, to[2]);
  hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, to[3]);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
