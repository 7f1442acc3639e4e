// Converts rows between the storage type and the computing type, for one SIMD target (toggled
// guard).
#if defined(NSIMPLEX_KERNELS_DENSE_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_CONVERT_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_CONVERT_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_CONVERT_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "kernels/common/half.h"
#include "kernels/cpu/shared/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

/// Whether this target converts fp16 in hardware. Otherwise numbers are converted one by one.
inline constexpr bool kHasFp16 = HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON;

/// One vector of numbers of type T as the type of `d`.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_as(D d, const T* from) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return hn::LoadU(d, from);
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
  } else if constexpr (kHasFp16) {
    const hn::Rebind<hwy::float16_t, D> d16;
    const hn::Rebind<uint16_t, D> du16;
    const auto bits = hn::LoadU(du16, reinterpret_cast<const uint16_t*>(from));
    return hn::PromoteTo(d, hn::BitCast(d16, bits));
  } else {
    HWY_ALIGN hn::TFromD<D> numbers[hn::MaxLanes(D())];
    for (size_t i = 0; i < hn::Lanes(d); ++i) numbers[i] = to_accum(from[i]);
    return hn::Load(d, numbers);
  }
}

/// One vector to numbers of type T, rounded to nearest even.
template <class D, class T>
HWY_INLINE void store_as(hn::Vec<D> vector, D d, T* to) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    hn::StoreU(vector, d, to);
  } else if constexpr (std::is_same_v<T, Fp16> && kHasFp16) {
    const hn::Rebind<hwy::float16_t, D> d16;
    const hn::Rebind<uint16_t, D> du16;
    hn::StoreU(hn::BitCast(du16, hn::DemoteTo(d16, vector)), du16, reinterpret_cast<uint16_t*>(to));
  } else {
    HWY_ALIGN hn::TFromD<D> numbers[hn::MaxLanes(D())];
    hn::Store(vector, d, numbers);
    for (size_t i = 0; i < hn::Lanes(d); ++i) to[i] = from_accum<T>(numbers[i]);
  }
}

/// to[0, count) = from[0, count), converted; `to` is aligned and of the computing type.
template <class R, class T>
HWY_INLINE void load_row(R* to, const T* from, int64_t count) {
  const Tag<R> d;
  int64_t c = 0;
  for (; c + kLanes<R> <= count; c += kLanes<R>) hn::Store(load_as(d, from + c), d, to + c);
  for (; c < count; ++c) to[c] = to_accum(from[c]);
}

/// to[0, count) = factor * from[0, count), rounded once; `from` is aligned.
template <class T, class R>
HWY_INLINE void store_row(T* to, R factor, const R* from, int64_t count) {
  const Tag<R> d;
  const Vec<R> f = hn::Set(d, factor);
  int64_t c = 0;
  for (; c + kLanes<R> <= count; c += kLanes<R>) {
    store_as(hn::Mul(f, hn::Load(d, from + c)), d, to + c);
  }
  for (; c < count; ++c) to[c] = from_accum<T>(factor * from[c]);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
