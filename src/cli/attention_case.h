// Declares the dense attention cases of `bench` and `verify`.

#pragma once

#include <c10/core/ScalarType.h>
#include <nsimplex/attention.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli11.h"
#include "support/names.h"

namespace nsimplex {

template <>
inline constexpr Names<at::ScalarType, 8> kNames<at::ScalarType>{{{"float32", at::kFloat},
                                                                  {"float64", at::kDouble},
                                                                  {"bfloat16", at::kBFloat16},
                                                                  {"float16", at::kHalf},
                                                                  {"fp32", at::kFloat},
                                                                  {"fp64", at::kDouble},
                                                                  {"bf16", at::kBFloat16},
                                                                  {"fp16", at::kHalf}}};

}  // namespace nsimplex

namespace nsimplex::cli {

/// One shape of the dense operator, as flags: of `bench attention` and of every line of
/// bench/cases/attention.txt.
struct AttentionCase {
  int order = 2;
  int64_t batch = 1, heads = 4, kv_heads = 0;   ///< kv_heads 0: as many as heads
  int64_t seq = 2048, dim = 64, value_dim = 0;  ///< value_dim 0: as dim
  std::vector<int64_t> keys;                    ///< length of each key axis; empty: as seq
  std::vector<int64_t> window;       ///< one for all axes, or one per axis; -1: unbounded
  std::vector<int64_t> key_lengths;  ///< valid keys per batch entry, on every axis
  bool causal = false;
  std::string form = "product", reduce = "product", normalizer = "softmax";
  std::string scale = "standard";
  std::string distinct = "none";
  std::vector<int64_t> documents;  ///< lengths of packed documents; empty: one
  bool key_masks = false;          ///< every axis masks some keys
  std::string mask = "none";       ///< none, boolean or additive
  double softcap = 0.0;            ///< 0: none
  double dropout = 0.0;
  std::string dtype = "float32";
  double amplitude = 1.0;     ///< standard deviation of query, keys and values
  bool heads_inside = false;  ///< tensors are [batch, row, head, channel] in memory
};

/// --dtype, whose value scalar_type() checks.
CLI::Option* add_dtype_flag(CLI::App& command, std::string& dtype);

/// Adds the flags of a case to a command, with the values of `shape` as defaults.
void add_attention_flags(CLI::App& command, AttentionCase& shape);

/// Fills in derived fields and refuses impossible cases (InputError).
void complete(AttentionCase& shape);

/// The dtype for a short ("bf16") or long ("bfloat16") name. InputError for other names. name_of() is
/// the long name.
at::ScalarType scalar_type(const std::string& dtype);

struct AttentionInputs {
  at::Tensor query;                      ///< [batch, heads, seq, dim]
  std::vector<at::Tensor> keys, values;  ///< [batch, kv_heads, T_m, dim or value_dim]
  at::Tensor grad_out;                   ///< [batch, heads, seq, value_dim]
  AttentionOptions options;
};

/// Random inputs of a completed case. The same seed gives the same numbers in every dtype
/// (rounded).
AttentionInputs make_inputs(const AttentionCase& shape, uint64_t seed);

struct NamedCase {
  std::string name;
  std::string flags;    ///< as the line of the table has them
  AttentionCase shape;  ///< completed
};

/// The tables of bench/cases, which the build embeds in the executable.
std::vector<NamedCase> verification_cases();
std::vector<NamedCase> speed_cases();

/// Looks a name up in both tables; InputError if there is none.
NamedCase find_case(const std::string& name);

/// Sets the flags of a case in a command that has add_attention_flags(). Flags that were given keep
/// their values.
void set_flags(CLI::App& command, const NamedCase& named);

}  // namespace nsimplex::cli
