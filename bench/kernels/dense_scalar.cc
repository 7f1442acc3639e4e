// The dense kernel as plain loops, to which the benchmark compares the tiled one.

#include "kernels/dense_scalar.h"

#include <cmath>
#include <limits>
#include <vector>

namespace nsimplex::kernels {
namespace {

// Walks the tuples of axes [axis, order) below the prefix products of query o keys and of values.
class ScalarQuery {
 public:
  ScalarQuery(const DenseForward<float>& problem, int64_t batch, int64_t head, int64_t query)
      : p_(problem),
        batch_(batch),
        head_(head),
        query_(query),
        scores_(problem.order + 1, std::vector<float>(problem.dim)),
        values_(problem.order + 1, std::vector<float>(problem.value_dim, 1.0f)),
        out_(problem.value_dim, 0.0f) {
    const float* const row = p_.query.row(batch, head, query);
    for (int64_t c = 0; c < p_.dim; ++c) {
      scores_[0][c] = row[c] * static_cast<float>(p_.logit_scale);
    }
  }

  void run() {
    walk(0);
    const bool empty = sum_ == 0.0f;
    float* const out = p_.out.row(batch_, head_, query_);
    for (int64_t c = 0; c < p_.value_dim; ++c) {
      out[c] = empty ? 0.0f : out_[c] * static_cast<float>(p_.output_scale) / sum_;
    }
    p_.lse[(batch_ * p_.heads + head_) * p_.queries + query_] = max_ + std::log(sum_);
  }

 private:
  void walk(int axis) {
    if (axis == p_.order || axis == kMaxOrder) return add_tuple();
    const DenseAxis<float>& keys = p_.axes[axis];
    const int64_t kv_head = head_ / (p_.heads / p_.kv_heads);
    const Range range = keys.visible.of(batch_, query_);
    for (int64_t j = range.begin; j < range.end; ++j) {
      const float* const key = keys.key.row(batch_, kv_head, j);
      const float* const value = keys.value.row(batch_, kv_head, j);
      for (int64_t c = 0; c < p_.dim; ++c) scores_[axis + 1][c] = scores_[axis][c] * key[c];
      for (int64_t c = 0; c < p_.value_dim; ++c) values_[axis + 1][c] = values_[axis][c] * value[c];
      walk(axis + 1);
    }
  }

  void add_tuple() {
    float logit = 0.0f;
    for (const float term : scores_[p_.order]) logit += term;
    if (logit > max_) {
      const float factor = std::exp(max_ - logit);
      sum_ *= factor;
      for (float& total : out_) total *= factor;
      max_ = logit;
    }
    const float weight = std::exp(logit - max_);
    sum_ += weight;
    for (int64_t c = 0; c < p_.value_dim; ++c) out_[c] += weight * values_[p_.order][c];
  }

  const DenseForward<float>& p_;
  const int64_t batch_, head_, query_;
  std::vector<std::vector<float>> scores_, values_;  // of each prefix of the tuple
  std::vector<float> out_;
  float max_ = -std::numeric_limits<float>::infinity(), sum_ = 0.0f;
};

}  // namespace

void scalar_dense_forward(const DenseForward<float>& problem) {
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t h = 0; h < problem.heads; ++h) {
      for (int64_t i = 0; i < problem.queries; ++i) ScalarQuery(problem, b, h, i).run();
    }
  }
}

}  // namespace nsimplex::kernels
