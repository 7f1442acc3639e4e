// Tests published propositions on the derivatives of N-simplicial attention on random draws.

#include "lab/lipschitz/propositions.h"

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>
#include <nsimplex/attention.h>

#include <cmath>

#include "analysis/ascent.h"
#include "analysis/attention_derivatives.h"

namespace nsimplex::analysis {

using at::Tensor;

Tensor ProjectedAttention::operator()(const Tensor& x) const {
  const auto project = [&](const Tensor& weight) { return x.matmul(weight).unsqueeze(1); };
  Tensors k, v;
  for (size_t m = 1; m < keys.size(); ++m) k.push_back(project(keys[m]));
  for (const Tensor& weight : values) v.push_back(project(weight));
  return attention(project(keys[0]), k, v).out.squeeze(1);
}

ProjectedAttention random_attention(int64_t order, int64_t problems, int64_t dim, double key_norm,
                                    double value_norm) {
  const auto draw = [&](double norm) {
    const Tensor weight = at::randn({problems, dim, dim}, at::kDouble);
    return weight * (norm / at::linalg_matrix_norm(weight, 2, {-2, -1}, /*keepdim=*/true));
  };
  ProjectedAttention attention;
  for (int64_t m = 0; m <= order; ++m) attention.keys.push_back(draw(key_norm));
  for (int64_t m = 1; m <= order; ++m) attention.values.push_back(draw(value_norm));
  return attention;
}

namespace {

using at::Tensor;

constexpr double kSame = 1e-9;  // relative difference of two formulas that are equal

Tensor rms(const Tensor& rows) {
  return rows.norm(2, -1) / std::sqrt(static_cast<double>(rows.size(-1)));
}

Tensor largest(const Tensor& of_rows) { return of_rows.flatten(1).amax(1); }

// Largest sum of absolute values over the tuples of a query: [B, T, J] -> [B].
Tensor op(const Tensor& weights) { return weights.abs().sum(-1).amax(1); }

Tensor ones_like_draws(const Tensor& x) { return at::ones({x.size(0)}, at::kDouble); }

class Propositions {
 public:
  explicit Propositions(const PropositionOptions& options)
      : options_(options),
        scale_(Scale::unit(options.order, options.dim, options.dim, Reduce::product)),
        attention_{options.order, scale_.logit} {}

  std::vector<Statement> test() {
    const Tensors q_and_k = unit_rows(options_.order + 1), a = rows(options_.order + 1),
                  b = rows(options_.order + 1);
    vectors();
    const Tensor weights = attention_.weights(q_and_k);
    brackets(weights);
    first_derivatives(q_and_k, a);
    second_derivatives(q_and_k, a, b);
    return statements_;
  }

 private:
  Tensors rows(int64_t count) const {
    Tensors drawn;
    for (int64_t i = 0; i < count; ++i) {
      drawn.push_back(at::randn({options_.draws, options_.tokens, options_.dim}, at::kDouble));
    }
    return drawn;
  }

  Tensors unit_rows(int64_t count) const {
    Tensors drawn = rows(count);
    const double length = std::sqrt(static_cast<double>(options_.dim));
    for (Tensor& x : drawn) x = project_rows(x, length, /*sphere=*/true);
    return drawn;
  }

  // Tests left <= right, with one number per draw each.
  void bound(const std::string& name, const Tensor& left, const Tensor& right) {
    Statement statement(c10::str(name, ", order ", options_.order));
    for (int64_t draw = 0; draw < options_.draws; ++draw) {
      statement.add_bound(left[draw].item<double>(), right[draw].item<double>());
    }
    statements_.push_back(statement);
  }

  // Tests two formulas: the slack is their relative difference, in the largest norm.
  void equal(const std::string& name, const Tensor& formula, const Tensor& exact) {
    Statement statement(c10::str(name, ", order ", options_.order));
    const Tensor size = largest(exact.abs()), off = largest((formula - exact).abs());
    for (int64_t draw = 0; draw < options_.draws; ++draw) {
      const double of = size[draw].item<double>();
      const double difference = of == 0 ? off[draw].item<double>() : off[draw].item<double>() / of;
      statement.add(difference <= kSame, difference);
    }
    statements_.push_back(statement);
  }

  void vectors() {
    const Tensor x = rows(1)[0], y = rows(1)[0];
    const double root = std::sqrt(static_cast<double>(options_.dim));
    bound("Proposition 5: |x o y| <= sqrt(D) |x| |y|", rms(x * y).select(1, 0),
          (root * rms(x) * rms(y)).select(1, 0));
    const Tensor all = WrittenOut::products(unit_rows(options_.order));
    bound("Lemma 6: |o x_t| <= D^((N-1)/2)", largest(rms(all)), ones_like_draws(all) * product());
  }

  // Proposition 8, and the bound for a matrix with any signs.
  void brackets(const Tensor& weights) {
    const Tensor x = WrittenOut::products(rows(options_.order)),
                 y = WrittenOut::products(rows(options_.order));
    const auto bracket = [&](const Tensor& of) {
      return (of.unsqueeze(1) - weights.matmul(of).unsqueeze(2)).norm(2, -1);  // [B, T, J]
    };
    const Tensor by_x = bracket(x), by_y = bracket(y);
    const Tensor most_x = largest(x.norm(2, -1)), most_y = largest(y.norm(2, -1));
    const auto mean = [&](const Tensor& of) { return (weights * of).sum(-1).amax(1); };
    bound("Proposition 8: sum B |[B, x]| <= max |x|", mean(by_x), most_x);
    bound("Proposition 8: sum B |[B, x]|^2 <= max |x|^2", mean(by_x * by_x), most_x * most_x);
    bound("Proposition 8: sum B |[B, x]| |[B, y]| <= max |x| max |y|", mean(by_x * by_y),
          most_x * most_y);
    const Tensor matrix = at::randn_like(weights);
    bound("|B x| <= |B| |x|", largest(rms(matrix.matmul(x))), op(matrix) * largest(rms(x)));
  }

  void first_derivatives(const Tensors& inputs, const Tensors& a) {
    const Tensors v = unit_rows(options_.order), dv = rows(options_.order);
    const auto products = [](const Tensors& x) { return WrittenOut::products(x); };
    const Tensor first = directional(products, v, {dv});
    bound("|dV| <= sum |dv|", largest(rms(first)) * scale_.output, total(dv));
    bound("|dK| <= D^((N-1)/2) sum |dk|", largest(rms(first)), total(dv) * product());
    bound("|dA| <= |dq| + sum |dk|", op(directional(weights(), inputs, {a})), total(a));
  }

  void second_derivatives(const Tensors& inputs, const Tensors& a, const Tensors& b) {
    const Tensors v = unit_rows(options_.order), dv = rows(options_.order),
                  ev = rows(options_.order);
    const auto products = [](const Tensors& x) { return WrittenOut::products(x); };
    const Tensor second_v = directional(products, v, {dv, ev});
    bound("|d2V| <= sum |dv| sum |dv~|", largest(rms(second_v)) * scale_.output,
          total(dv) * total(ev));
    const Tensor second_a = directional(weights(), inputs, {a, b});
    bound("|d2A| <= 3 (|dq| + sum |dk|) (|dq~| + sum |dk~|)", op(second_a),
          3 * total(a) * total(b));
    const Tensor printed = attention_.printed_second(inputs, a, b);
    equal("d2A as printed", printed, second_a);
    equal("d2A with s1 A <q, [A, d2K]>", printed + attention_.missing_second(inputs, a, b),
          second_a);
    equal("d2V as printed, t < s only", half_of_second(v, dv, ev), second_v);
  }

  // Sum over t < s of dv_t o dv~_s and the other values.
  static Tensor half_of_second(const Tensors& v, const Tensors& dv, const Tensors& ev) {
    Tensor sum = at::zeros_like(WrittenOut::products(v));
    for (size_t t = 0; t < v.size(); ++t) {
      for (size_t s = t + 1; s < v.size(); ++s) {
        Tensors rows = v;
        rows[t] = dv[t];
        rows[s] = ev[s];
        sum = sum + WrittenOut::products(rows);
      }
    }
    return sum;
  }

  TensorFunction weights() const {
    return [this](const Tensors& x) { return attention_.weights(x); };
  }

  // Sum of the inf-RMS norms, for each draw.
  static Tensor total(const Tensors& direction) {
    Tensor sum = norms(direction[0], Norm::inf_rms);
    for (size_t i = 1; i < direction.size(); ++i) {
      sum = sum + norms(direction[i], Norm::inf_rms);
    }
    return sum;
  }

  double product() const {
    return std::pow(static_cast<double>(options_.dim),
                    0.5 * static_cast<double>(options_.order - 1));
  }

  PropositionOptions options_;
  Scale scale_;
  WrittenOut attention_;
  std::vector<Statement> statements_;
};

}  // namespace

std::vector<Statement> test_propositions(const PropositionOptions& options) {
  return Propositions(options).test();
}

}  // namespace nsimplex::analysis
