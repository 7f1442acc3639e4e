#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/common/attention_problem.h"
#include "kernels/cpu/shared/attention_kernel_plan.h"
#include "kernels/drive.h"

// Cases of the dense kernel's tests: a shape with masks, and its data.

namespace nsimplex::kernels::testing {

struct WindowPair {
  int64_t left = -1, right = -1;
};

/// A random mask over tuples, of booleans or of logits to add (some of them minus infinity).
enum class MaskKind { none, boolean, additive };

/// What one test problem looks like. Empty vectors stand for the default.
struct DenseCase {
  std::string name;
  int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, dim = 8, value_dim = 8;
  std::vector<int64_t> lengths;    ///< T_m; its size is the order
  std::vector<WindowPair> window;  ///< one an axis
  bool causal = false;
  ValueReduce reduce = ValueReduce::product;
  std::vector<std::vector<int64_t>> key_lengths;  ///< [order][batch]; an empty entry: all keys
  double logit_scale = 0.5, output_scale = 0.75, softcap = 0.0;
  bool slopes = false;      ///< one for each head
  float key_spread = 1.0f;  ///< standard deviation of keys and queries
  bool strided = false;     ///< [batch, row, head, channel] with odd row strides

  Form form = Form::product;
  Normalizer normalizer = Normalizer::softmax;  ///< softmax_sink comes with a sink for each head
  Distinct distinct = Distinct::none;
  double dropout = 0.0;
  std::vector<int64_t> documents;  ///< cu_seqlens
  bool key_masks = false;          ///< on every axis; masked keys and their values are NaN
  MaskKind mask = MaskKind::none;
  std::vector<int> mask_broadcast;   ///< dimensions of [batch, head, query, axes ..] of stride 0
  std::vector<MaskKind> pair_masks;  ///< per axis; empty: none

  int order() const { return static_cast<int>(lengths.size()); }
};

std::ostream& operator<<(std::ostream& stream, const DenseCase& value);

/// Owned [batch, head, row, channel] array. Everything between and around the rows holds `fill`, so
/// that reads and writes outside the view are noticed.
class Array {
 public:
  Array() = default;
  Array(int64_t batch, int64_t heads, int64_t rows, int64_t channels, bool strided, float fill);

  Rows<float> view();
  Rows<const float> view() const;
  float& at(int64_t batch, int64_t head, int64_t row, int64_t channel);
  float at(int64_t batch, int64_t head, int64_t row, int64_t channel) const;

  /// The elements of the view in order, without what lies between.
  std::vector<float> values() const;
  /// True when everything outside the view still holds the fill value.
  bool outside_untouched() const;

  int64_t batch = 0, heads = 0, rows = 0, channels = 0;

 private:
  int64_t offset(int64_t b, int64_t h, int64_t r, int64_t c) const;
  std::vector<bool> inside() const;

  int64_t batch_stride_ = 0, head_stride_ = 0, row_stride_ = 0, start_ = 0;
  float fill_ = 0.0f;
  std::vector<float> data_;
};

/// Inputs, outputs and gradients of one case.
struct DenseData {
  explicit DenseData(const DenseCase& shape, unsigned seed = 1);

  DenseForward<float> forward();
  DenseBackward<float> backward(bool with_grad_lse = true);

  DenseCase shape;
  Array query, out, grad_out, grad_query;
  std::vector<Array> keys, values, grad_keys, grad_values;
  std::vector<float> lse, grad_lse, sink, grad_sink, slopes;
  std::vector<std::vector<float>> grad_masks;  ///< of the additive masks, to which is added

 private:
  struct Mask {
    MaskKind kind;
    TuplePlaces places;
    std::vector<unsigned char> bits;
    std::vector<float> logits;
  };

  void make_options(unsigned seed);
  void make_mask(MaskKind kind, const std::vector<int>& broadcast, std::mt19937& generator);
  void fill(DenseProblem<float>& problem) const;
  void fill_options(DenseProblem<float>& problem) const;

  // Booleans as bytes, since a vector of bool has no pointer.
  std::vector<std::vector<unsigned char>> key_masks_;
  std::vector<Mask> masks_;
  std::vector<int64_t> document_begin_, document_end_;
};

/// Plans and runs; fails the running test when the kernel writes beyond its workspace or scratch.
template <class T>
void run_forward(const DenseForward<T>& problem, Drive drive = {});
template <class T>
void run_backward(const DenseBackward<T>& problem, Drive drive = {});

/// The SIMD levels, and AVX3 with the tiles of scores that this processor does not take
/// (wide_score_tiles()).
std::vector<std::string> kernel_ways();

/// Runs what follows so. An empty name returns to the default.
void take_way(const std::string& name);

/// ||value - expected|| / ||expected|| over everything; the plain norm where expected is 0.
double relative_error(const std::vector<float>& value, const std::vector<double>& expected);

/// The table of cases that most tests walk through.
std::vector<DenseCase> dense_cases();

/// More of them, with everything beyond windows.
std::vector<DenseCase> option_cases();

}  // namespace nsimplex::kernels::testing
