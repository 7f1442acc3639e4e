// What a case's options add to its data.
#include <cmath>
#include <limits>
#include <random>

#include "kernels/dense_case.h"

namespace nsimplex::kernels::testing {

void DenseData::make_options(unsigned seed) {
  std::mt19937 generator(seed + 1000);
  std::normal_distribution<float> normal;
  std::bernoulli_distribution often(0.7), seldom(0.1);
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
  if (shape.mask == MaskKind::none) return;
  std::vector<int64_t> sizes{shape.batch, shape.heads, shape.queries};
  sizes.insert(sizes.end(), shape.lengths.begin(), shape.lengths.end());
  for (const int dimension : shape.mask_broadcast) sizes[dimension] = 1;
  mask_strides_.assign(sizes.size(), 0);
  int64_t count = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] > 1) mask_strides_[d] = count;
    count *= sizes[d];
  }
  for (int64_t i = 0; i < count; ++i) {
    mask_bits_.push_back(often(generator));
    mask_logits_.push_back(seldom(generator) ? -std::numeric_limits<float>::infinity()
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
  if (shape.mask == MaskKind::none) return;
  TupleMask<float>& mask = problem.mask;
  if (shape.mask == MaskKind::boolean) {
    mask.admissible = reinterpret_cast<const bool*>(mask_bits_.data());
  } else {
    mask.logits = mask_logits_.data();
  }
  mask.batch_stride = mask_strides_[0];
  mask.head_stride = mask_strides_[1];
  mask.query_stride = mask_strides_[2];
  for (int m = 0; m < problem.order; ++m) mask.axis_stride[m] = mask_strides_[3 + m];
}

}  // namespace nsimplex::kernels::testing
