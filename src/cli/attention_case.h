#pragma once

#include <nsimplex/attention.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace nsimplex::cli {

/// One shape of the dense operator, as flags: those of `bench attention` and of every line of
/// bench/cases/attention.txt.
struct AttentionCase {
  int order = 2;
  int64_t batch = 1, heads = 4, kv_heads = 0;   ///< kv_heads 0: as heads
  int64_t seq = 2048, dim = 64, value_dim = 0;  ///< value_dim 0: as dim
  std::vector<int64_t> keys;                    ///< length of each key axis; empty: as seq
  std::vector<int64_t> window;                  ///< one for all axes or one an axis; -1: unbounded
  std::vector<int64_t> key_lengths;             ///< valid keys of each batch entry, on every axis
  bool causal = false;
  std::string reduce = "product";
  std::string scale = "standard";
  std::string dtype = "float32";
  double amplitude = 1.0;     ///< standard deviation of query, keys and values
  bool heads_inside = false;  ///< tensors lie as [batch, row, head, channel] in memory
};

struct AttentionInputs {
  at::Tensor query;                      ///< [batch, heads, seq, dim]
  std::vector<at::Tensor> keys, values;  ///< [batch, kv_heads, T_m, dim or value_dim]
  at::Tensor grad_out;                   ///< [batch, heads, seq, value_dim]
  AttentionOptions options;
};

/// Adds the flags of a case to a command; the defaults are those `shape` has.
void add_attention_flags(CLI::App& command, AttentionCase& shape);

/// Fills in what follows from other fields and refuses what cannot be run (InputError).
void complete(AttentionCase& shape);

/// Random inputs of a completed case; the same seed gives the same numbers in every dtype
/// (rounded).
AttentionInputs make_inputs(const AttentionCase& shape, uint64_t seed);

/// Floating-point operations of the six (forward: two) matrix products for all admissible tuples:
/// 2 (D + Dv) B Hq sum_i prod_m n_m(i) forward, three times that backward.
double attention_flops(const AttentionCase& shape, bool backward);

/// Bytes beside inputs and outputs that the CPU kernel takes: its workspace and one scratch a
/// thread. 0 where the kernel does not take the case and the reference runs.
int64_t attention_workspace_bytes(const AttentionCase& shape, bool backward, int threads);

/// Admissible tuples of all queries of all heads.
double attention_tuples(const AttentionCase& shape);

at::ScalarType scalar_type(const std::string& dtype);

}  // namespace nsimplex::cli
