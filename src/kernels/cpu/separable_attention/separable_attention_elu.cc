// Computes the features elu(scale x) + 1.

#include "kernels/cpu/separable_attention/separable_attention.h"

#include <algorithm>

#include "kernels/cpu/shared/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/separable_attention/separable_attention_elu.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::elu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V feature(D d, V z) {
  const V zero = hn::Zero(d);
  const V power = hn::Exp(d, hn::Min(z, zero));
  const V result = hn::IfThenElse(hn::Gt(z, zero), hn::Add(z, hn::Set(d, 1)), power);
  return hn::IfThenElse(hn::IsNaN(z), z, result);
}

template <class T>
void run(const T* from, T* to, int64_t count, T scale) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(feature(d, hn::Mul(hn::LoadU(d, from + i), factor)), d, to + i);
  }
  if (i == count) return;
  // With the same instructions as all others.
  HWY_ALIGN T last[hn::MaxLanes(hn::ScalableTag<T>())] = {};
  std::copy(from + i, from + count, last);
  hn::Store(feature(d, hn::Mul(hn::Load(d, last), factor)), d, last);
  std::copy_n(last, count - i, to + i);
}

void run_f32(const float* from, float* to, int64_t count, float scale) {
  run(from, to, count, scale);
}
void run_f64(const double* from, double* to, int64_t count, double scale) {
  run(from, to, count, scale);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::elu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nsimplex::kernels {
namespace elu {
HWY_EXPORT(run_f32);
HWY_EXPORT(run_f64);
}  // namespace elu

void elu_features(const float* from, float* to, int64_t count, float scale) {
  using namespace elu;
  read_simd_environment();
  HWY_DYNAMIC_DISPATCH(run_f32)(from, to, count, scale);
}

void elu_features(const double* from, double* to, int64_t count, double scale) {
  using namespace elu;
  read_simd_environment();
  HWY_DYNAMIC_DISPATCH(run_f64)(from, to, count, scale);
}

}  // namespace nsimplex::kernels
#endif
