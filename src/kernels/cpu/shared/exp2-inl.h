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

// Both write x = n + f with n = round(x). Adding 1.5 * 2^(mantissa bits) leaves n in the low bits
// of the sum, together with the exponent's bias; shifted into the exponent field this is 2^n. Then
// 2^f = 1 + f (c1 + f (c2 + ..)), a minimax polynomial on [-1/2, 1/2] found by reweighted least
// squares. Multiplying by 2^n, instead of adding to the exponent field, keeps a NaN.

// (2^f - 1) / f for f in [-1/2, 1/2].
HWY_INLINE Vec<float> exp2_polynomial(Vec<float> f) {
  const Tag<float> d;
  auto p = hn::MulAdd(hn::Set(d, 1.32647e-3f), f, hn::Set(d, 9.67151e-3f));  // 9.2e-8 in all
  p = hn::MulAdd(p, f, hn::Set(d, 5.550734e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022242e-1f));
  return hn::MulAdd(p, f, hn::Set(d, 6.9314698e-1f));
}

/// 2^x for x <= 127, relative error below 2e-7; 0 below -126; NaN stays NaN with any payload.
HWY_INLINE Vec<float> exp2(Vec<float> x) {
  const Tag<float> d;
  const hn::RebindToSigned<Tag<float>> di;
  const auto magic = hn::Set(d, 0x1.8p23f + 127.0f);
  const auto shifted = hn::Add(x, magic);
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  const auto f = hn::Sub(x, hn::Sub(shifted, magic));
  const auto result = hn::MulAdd(hn::Mul(exp2_polynomial(f), f), power, power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), result);
}

/// 2^x for x <= 1023, relative error below 5e-16; 0 below -1022; NaN stays NaN.
HWY_INLINE Vec<double> exp2(Vec<double> x) {
  const Tag<double> d;
  const hn::RebindToSigned<Tag<double>> di;
  const auto magic = hn::Set(d, 0x1.8p52 + 1023.0);
  const auto shifted = hn::Add(x, magic);
  const auto power = hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(di, shifted)));
  const auto f = hn::Sub(x, hn::Sub(shifted, magic));
  // 3.4e-18 before rounding.
  constexpr double kCoefficients[] = {7.0737833276823879182e-9,  1.0178199578614084005e-7,
                                      1.321543528179418419e-6,   0.000015252733493109469505,
                                      0.00015403530457113266459, 0.001333355814677464191,
                                      0.009618129107594118994,   0.055504108664820083121,
                                      0.24022650695910131263,    0.69314718055994532581};
  auto p = hn::Set(d, 4.4347703603418822345e-10);
  NSIMPLEX_UNROLL
  for (const double coefficient : kCoefficients) p = hn::MulAdd(p, f, hn::Set(d, coefficient));
  const auto result = hn::MulAdd(hn::Mul(p, f), power, power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -1022.0)), result);
}

/// 2^x, as above, for weights that products of E take. AVX-512 has one instruction for the distance to
/// the nearest integer and one that scales by a power of two. Other levels keep their bits.
template <class E>
HWY_INLINE Vec<float> exp2_of_score(Vec<float> x) {
#ifdef NSIMPLEX_BF16_PAIRS
  if constexpr (kTiled<E>) {
    const Tag<float> d;
    const Vec<float> f{_mm512_reduce_ps(x.raw, _MM_FROUND_NO_EXC)};
    const auto seen = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
    const Vec<float> power = hn::MulAdd(exp2_polynomial(f), f, hn::Set(d, 1.0f));
    return Vec<float>{_mm512_maskz_scalef_ps(seen, power.raw, hn::Sub(x, f).raw)};
  }
#endif
  return exp2(x);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels::dense
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
