// What a case's options add to its data.
#include <cmath>
#include <limits>
#include <random>

#include "kernels/dense_case.h"

namespace nsimplex::kernels::testing {

void DenseData::make_options(unsigned seed) {
  std::mt19937 generator(seed + 1000);
  std::normal_distribution<float> normal;
  std::bernoulli_distribution often(0.7);
  if (shape.normalizer == Normalizer::softmax_sink) {
    for (int64_t h = 0; h < shape.heads; ++h) sink.push_back(1.0f + normal(generator));
    grad_sink.assign(shape.heads, std::numeric_limits<float>::quiet_NaN());
  }
  for (int64_t h = 0; shape.slopes && h < shape.heads; ++h) {
    slopes.push_back(0.05f * static_cast<float>(3 - h));
  }
  for (size_t d = 0; d + 1 < shape.documents.size(); ++d) {
    const int64_t begin = shape.documents[d], end = shape.documents[d + 1];
    document_begin_.insert(document_begin_.end(), end - begin, begin);
    document_end_.insert(document_end_.end(), end - begin, end);
  }
  for (int m = 0; m < shape.order() && shape.key_masks; ++m) {
    key_masks_.emplace_back();
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t row = 0; row < shape.lengths[m]; ++row) {
        key_masks_[m].push_back(often(generator));
        if (key_masks_[m].back()) continue;
        for (int64_t h = 0; h < shape.kv_heads; ++h) {
          for (int64_t c = 0; c < shape.dim; ++c) keys[m].at(b, h, row, c) = std::nanf("");
          for (int64_t c = 0; c < shape.value_dim; ++c) values[m].at(b, h, row, c) = std::nanf("");
        }
      }
    }
  }
  make_mask(shape.mask, shape.mask_broadcast, generator);
  for (int m = 0; m < static_cast<int>(shape.pair_masks.size()); ++m) {
    std::vector<int> others;
    for (int n = 0; n < shape.order(); ++n) {
      if (n != m) others.push_back(3 + n);
    }
    make_mask(shape.pair_masks[m], others, generator);
  }
}

void DenseData::make_mask(MaskKind kind, const std::vector<int>& broadcast,
                          std::mt19937& generator) {
  if (kind == MaskKind::none) return;
  std::normal_distribution<float> normal;
  std::bernoulli_distribution often(0.7), seldom(0.1);
  std::vector<int64_t> sizes{shape.batch, shape.heads, shape.queries};
  sizes.insert(sizes.end(), shape.lengths.begin(), shape.lengths.end());
  for (const int dimension : broadcast) sizes[dimension] = 1;
  std::vector<int64_t> strides(sizes.size(), 0);
  int64_t count = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] > 1) strides[d] = count;
    count *= sizes[d];
  }
  Mask& mask = masks_.emplace_back(kind, TuplePlaces{strides[0], strides[1], strides[2]});
  for (size_t d = 3; d < strides.size(); ++d) mask.places.axis_stride[d - 3] = strides[d];
  for (int64_t i = 0; i < count; ++i) {
    mask.bits.push_back(often(generator));
    mask.logits.push_back(seldom(generator) ? -std::numeric_limits<float>::infinity()
                                            : normal(generator));
  }
}

void DenseData::fill_options(DenseProblem<float>& problem) const {
  problem.form = shape.form;
  problem.normalizer = shape.normalizer;
  problem.distinct = shape.distinct;
  problem.dropout = {.p = shape.dropout, .seed = 42};
  if (!sink.empty()) problem.sink = sink.data();
  if (!slopes.empty()) problem.slopes = slopes.data();
  for (int m = 0; m < problem.order; ++m) {
    DenseAxis<float>& axis = problem.axes[m];
    if (!document_begin_.empty()) {
      axis.visible.document_begin = document_begin_.data();
      axis.visible.document_end = document_end_.data();
    }
    if (shape.key_masks) axis.mask = reinterpret_cast<const bool*>(key_masks_[m].data());
  }
  for (const Mask& each : masks_) {
    TupleMask<float>& mask = problem.mask[problem.masks++];
    static_cast<TuplePlaces&>(mask) = each.places;
    if (each.kind == MaskKind::boolean) {
      mask.admissible = reinterpret_cast<const bool*>(each.bits.data());
    } else {
      mask.logits = each.logits.data();
    }
  }
}

}  // namespace nsimplex::kernels::testing
