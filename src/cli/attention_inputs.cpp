#include "cli/attention_inputs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <limits>

namespace nsimplex::cli {
namespace {

constexpr double kKeptKeys = 2.0 / 3.0;     // of --key-masks
constexpr double kKeptTuples = 3.0 / 4.0;   // of --mask boolean, and what is finite of additive
constexpr int64_t kDropoutSeed = 20250711;  // which tuples are dropped is part of the case

// Options whose names come from flags that complete() has checked.
void set_names(const AttentionCase& shape, AttentionOptions& options) {
  options.form = shape.form == "product" ? Form::product : Form::determinant;
  options.reduce = shape.reduce == "product" ? Reduce::product
                   : shape.reduce == "sum"   ? Reduce::sum
                                             : Reduce::mean;
  options.normalizer = shape.normalizer == "softmax"        ? Normalizer::softmax
                       : shape.normalizer == "softmax_sink" ? Normalizer::softmax_sink
                       : shape.normalizer == "sigmoid"      ? Normalizer::sigmoid
                                                            : Normalizer::relu;
  options.distinct = shape.distinct == "none"   ? Distinct::none
                     : shape.distinct == "axes" ? Distinct::axes
                                                : Distinct::with_query;
}

// A mask over all tuples; the additive one is shared by the heads.
at::Tensor make_mask(const AttentionCase& shape, at::Generator& generator) {
  std::vector<int64_t> sizes{shape.batch, shape.mask == "additive" ? 1 : shape.heads, shape.seq};
  sizes.insert(sizes.end(), shape.keys.begin(), shape.keys.end());
  const at::Tensor kept = at::rand(sizes, generator, at::kDouble).lt(kKeptTuples);
  if (shape.mask == "boolean") return kept;
  return at::randn(sizes, generator, at::kDouble)
      .masked_fill(kept.logical_not(), -std::numeric_limits<double>::infinity())
      .to(scalar_type(shape.dtype));
}

at::Tensor boundaries(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> ends{0};
  for (const int64_t length : lengths) ends.push_back(ends.back() + length);
  return at::tensor(ends, at::kLong);
}

}  // namespace

AttentionInputs make_inputs(const AttentionCase& shape, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto tensor = [&](int64_t heads, int64_t length, int64_t dim) {
    const at::Tensor drawn = at::randn({shape.batch, length, heads, dim}, generator, at::kDouble)
                                 .mul_(shape.amplitude)
                                 .to(scalar_type(shape.dtype))
                                 .transpose(1, 2);
    return shape.heads_inside ? drawn : drawn.contiguous();
  };
  AttentionInputs inputs;
  inputs.query = tensor(shape.heads, shape.seq, shape.dim);
  for (const int64_t length : shape.keys) {
    inputs.keys.push_back(tensor(shape.kv_heads, length, shape.dim));
    inputs.values.push_back(tensor(shape.kv_heads, length, shape.value_dim));
  }
  inputs.grad_out = tensor(shape.heads, shape.seq, shape.value_dim);
  AttentionOptions& options = inputs.options;
  options.causal = shape.causal;
  for (const int64_t left : shape.window) {
    options.window.push_back(left < 0 ? Window{} : Window::last(left));
  }
  set_names(shape, options);
  options.scale = shape.scale == "standard"
                      ? Scale::standard(shape.dim)
                      : Scale::unit(shape.order, shape.dim, shape.value_dim, options.reduce);
  if (!shape.key_lengths.empty()) options.key_lengths = at::tensor(shape.key_lengths, at::kLong);
  if (!shape.documents.empty()) options.cu_seqlens = boundaries(shape.documents);
  for (size_t m = 0; shape.key_masks && m < shape.keys.size(); ++m) {
    options.key_masks.push_back(
        at::rand({shape.batch, shape.keys[m]}, generator, at::kDouble).lt(kKeptKeys));
  }
  if (shape.mask != "none") options.mask = make_mask(shape, generator);
  if (options.normalizer == Normalizer::softmax_sink) {
    options.sink = at::randn({shape.heads}, generator, at::kDouble).to(scalar_type(shape.dtype));
  }
  options.dropout_p = shape.dropout;
  if (shape.dropout > 0) options.seed = kDropoutSeed;
  return inputs;
}

}  // namespace nsimplex::cli
