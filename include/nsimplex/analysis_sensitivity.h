#pragma once

#include <nsimplex/analysis_lipschitz.h>
#include <nsimplex/attention.h>

/// Sensitivity and sharpness of attention under inf-RMS norms, after Cesista, "Sensitivity and
/// Sharpness of n-Simplicial Attention" (2025), [L] below.
namespace nsimplex {

/// The largest root mean square of a row: x [.., C] -> a number. Rows are along the last axis.
NSIMPLEX_API at::Tensor inf_rms(const at::Tensor& x);

/// The largest sum of absolute values over everything but the query: weights of `order` key axes,
/// [.., Tq, T_1, .., T_N] -> a number.
NSIMPLEX_API at::Tensor inf_op(const at::Tensor& weights, int64_t order);

struct SensitivityOptions {
  AscentOptions ascent;

  /// Largest root mean square of a row, one an input. Given, the inputs are optimised together with
  /// the perturbations, each row projected onto that root mean square; empty, they stay: the
  /// sensitivity at a point, of a checkpoint for example.
  std::vector<double> input_rms;

  int64_t starts = 1;  ///< random directions from which each block (pair of blocks) is climbed
};

struct SensitivityEstimate {
  at::Tensor value;   ///< [B], the largest over blocks and starts
  at::Tensor blocks;  ///< [blocks, B]: of each input, or of each pair (i <= j, in that order)
  std::vector<at::Tensor> inputs;                   ///< where the value is attained, [B, ..] each
  std::vector<std::vector<at::Tensor>> directions;  ///< a; or a and b; one tensor an input
};

/// max |DF[a]| / |a| with |a| the sum over the inputs of their inf-RMS norms and |.| inf-RMS ([L],
/// Definition 2). The sum norm is extremal where a single input is perturbed, so each is climbed by
/// itself: a lower bound of the sensitivity, attained at `inputs` and `directions`.
///
/// Inputs [B, .., C_i]; B counts problems, whatever else there is (heads, positions) is part of
/// one. Cost: two forward, two backward and two double backward passes a step, of a batch that is
/// (inputs x starts) times as large.
NSIMPLEX_API SensitivityEstimate sensitivity(const TensorFunction& function,
                                             const std::vector<at::Tensor>& inputs,
                                             const SensitivityOptions& options = {});

/// max |D2F[a, b]| / (|a| |b|) over two directions, each for itself ([L], Definition 3): the mixed
/// derivative, by climbing a and b in turns for every pair of inputs, the equal ones included. As
/// sensitivity() otherwise; one derivative more a pass.
NSIMPLEX_API SensitivityEstimate sharpness(const TensorFunction& function,
                                           const std::vector<at::Tensor>& inputs,
                                           const SensitivityOptions& options = {});

/// inf-RMS norms of the inputs of attention; no keys or values: all one.
struct InputNorms {
  double query = 1;
  std::vector<double> keys, values;
};

/// What bounds the sensitivity of attention(q, k_1.., v_1..) with product form and softmax, one
/// number an input in the order q, k_1.., v_1... With c1 = s1 D^((N+1)/2), c2 = s2 Dv^((N-1)/2),
/// norms Q, K_t, V_t:
///
///     q:    c1 c2 prod K prod V
///     k_t:  c1 c2 Q prod_{s != t} K_s prod V
///     v_t:  c2 prod_{s != t} V_s
///
/// The sensitivity is at most their largest: 1 with Scale::unit and norms of 1 ([L], Claim 9).
NSIMPLEX_API std::vector<double> sensitivity_bounds(int64_t order, int64_t head_dim,
                                                    int64_t value_dim, const Scale& scale,
                                                    const InputNorms& norms = {});

/// What bounds the sharpness, one number a pair of inputs (i <= j, in that order). With the inputs
/// divided by their norms, c1 and c2 multiplied by Q prod K and prod V, and x, y the two norms:
///
///     q or k with another of them:  c2 (c1 + 2 c1^2) / (x y)      with itself:  2 c1^2 c2 / x^2
///     q or k with v:                c1 c2 / (x y)
///     v_t with v_s:                 c2 / (x y)                    with itself:  0
///
/// The sharpness is at most their largest: 3 with Scale::unit and norms of 1 ([L], Claim 10).
NSIMPLEX_API std::vector<double> sharpness_bounds(int64_t order, int64_t head_dim,
                                                  int64_t value_dim, const Scale& scale,
                                                  const InputNorms& norms = {});

}  // namespace nsimplex
