// The exponential of the dense kernel, for one SIMD target (toggled guard).
#if defined(NSIMPLEX_KERNELS_DENSE_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NSIMPLEX_KERNELS_DENSE_EXP2_INL_H_
#undef NSIMPLEX_KERNELS_DENSE_EXP2_INL_H_
#else
#define NSIMPLEX_KERNELS_DENSE_EXP2_INL_H_
#endif

#include "kernels/cpu/shared/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels::dense {
namespace HWY_NAMESPACE {

// Both write x = n + f with n = round(x), and 2^f = 1 + f (c1 + f (c2 + ..)), a minimax polynomial
// on [-1/2, 1/2] found by reweighted least squares.

// (2^f - 1) / f for f in [-1/2, 1/2].
HWY_INLINE Vec<float> exp2_polynomial(Vec<float> f) {
  const Tag<float> d;
  auto p = hn::MulAdd(hn::Set(d, 1.32647e-3f), f, hn::Set(d, 9.67151e-3f));  // 9.2e-8 in all
  p = hn::MulAdd(p, f, hn::Set(d, 5.550734e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022242e-1f));
  return hn::MulAdd(p, f, hn::Set(d, 6.9314698e-1f));
}
HWY_INLINE Vec<double> exp2_polynomial(Vec<double> f) {
  const Tag<double> d;
  // 3.4e-18 before rounding.
  constexpr double kCoefficients[] = {7.0737833276823879182e-9,  1.0178199578614084005e-7,
                                      1.321543528179418419e-6,   0.000015252733493109469505,
                                      0.00015403530457113266459, 0.001333355814677464191,
                                      0.009618129107594118994,   0.055504108664820083121,
                                      0.24022650695910131263,    0.69314718055994532581};
  auto p = hn::Set(d, 4.4347703603418822345e-10);
  NSIMPLEX_UNROLL
  for (const double coefficient : kCoefficients) p = hn::MulAdd(p, f, hn::Set(d, coefficient));
  return p;
}

/// 2^x, with a relative error below 2e-7 (float, x <= 127) and 5e-16 (double, x <= 1023); 0 below
/// -126 and -1022; NaN stays NaN with any payload.
#if HWY_TARGET == HWY_AVX3
// AVX-512 has one instruction for f and one that multiplies by 2^n. Nothing is multiplied by 2^n
// where the result would not be normal.
HWY_INLINE Vec<float> exp2(Vec<float> x) {
  const Vec<float> f{_mm512_reduce_ps(x.raw, _MM_FROUND_NO_EXC)};
  const auto power = hn::MulAdd(exp2_polynomial(f), f, hn::Set(Tag<float>(), 1.0f));
  const auto seen = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return Vec<float>{_mm512_maskz_scalef_ps(seen, power.raw, hn::Sub(x, f).raw)};
}
HWY_INLINE Vec<double> exp2(Vec<double> x) {
  const Vec<double> f{_mm512_reduce_pd(x.raw, _MM_FROUND_NO_EXC)};
  const auto power = hn::MulAdd(exp2_polynomial(f), f, hn::Set(Tag<double>(), 1.0));
  const auto seen = _mm512_cmp_pd_mask(x.raw, _mm512_set1_pd(-1022.0), _CMP_NLT_UQ);
  return Vec<double>{_mm512_maskz_scalef_pd(seen, power.raw, hn::Sub(x, f).raw)};
}
#else
// Adding 1.5 * 2^(mantissa bits) leaves n in the low bits of the sum, together with the exponent's
// bias; shifted into the exponent field this is 2^n. Multiplying by 2^n, instead of adding to the
// exponent field, keeps a NaN.
template <class R>
HWY_INLINE Vec<R> exp2_shifted(Vec<R> x, R magic_number, R least) {
  constexpr int kMantissa = sizeof(R) == 4 ? 23 : 52;
  const Tag<R> d;
  const hn::RebindToSigned<Tag<R>> di;
  const auto magic = hn::Set(d, magic_number);
  const auto shifted = hn::Add(x, magic);
  const auto power = hn::BitCast(d, hn::ShiftLeft<kMantissa>(hn::BitCast(di, shifted)));
  const auto f = hn::Sub(x, hn::Sub(shifted, magic));
  const auto result = hn::MulAdd(hn::Mul(exp2_polynomial(f), f), power, power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, least)), result);
}
HWY_INLINE Vec<float> exp2(Vec<float> x) {
  return exp2_shifted<float>(x, 0x1.8p23f + 127.0f, -126.0f);
}
HWY_INLINE Vec<double> exp2(Vec<double> x) {
  return exp2_shifted<double>(x, 0x1.8p52 + 1023.0, -1022.0);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
