// Weights of tuples, for all tuples or summed to marginals.

#include <ATen/ATen.h>
#include <nsimplex/attention.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/attention_normalizer.h"
#include "support/autocast.h"

namespace nsimplex {
namespace dense {
namespace {

using at::Tensor;

// The shape [B, Hq, Tq, T_1, .., T_N] of the weights of a call.
std::vector<c10::SymInt> weight_sizes(const Call& call) {
  check(call);
  if (call.query.is_cpu()) check_values(call);
  require_handled("attention_weights", call.options, kWeights);
  std::vector<c10::SymInt> sizes = call.query.sym_sizes().slice(0, 3).vec();
  for (const Tensor& key : call.keys) sizes.push_back(key.sym_size(2));
  return sizes;
}

// The same as numbers. Rejects a call with too many weights.
std::vector<int64_t> numbers_of(const std::vector<c10::SymInt>& symbolic) {
  std::vector<int64_t> sizes = C10_AS_INTARRAYREF_SLOW(symbolic).vec();
  double elements = 1;  // an int64 could overflow
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  TORCH_CHECK_VALUE(elements <= static_cast<double>(kMaxAttentionWeights),
                    "[attention_weights] expected at most ", kMaxAttentionWeights,
                    " weights (B Hq Tq T_1 .. T_N), got ", elements,
                    "; attention_marginals and attention_received need no such tensor");
  return sizes;
}

// All tuples are one tile of the reference. The values of `call` are not read.
Tensor weights(const Call& call) {
  const NoAutocast below(call.query.device().type());
  const std::vector<int64_t> sizes = numbers_of(weight_sizes(call));
  const Problem problem(call);
  if (c10::multiply_integers(sizes) == 0) {
    return at::zeros(sizes, call.query.options().dtype(problem.accumulate));
  }
  Tile whole{0, sizes[2], {}};
  for (size_t m = 0; m < call.keys.size(); ++m) whole.keys[m] = {0, sizes[3 + m]};
  const TileTerms terms(problem, whole);
  RowSums sums(problem);
  sums.add(terms, /*values=*/false);
  return terms.with_dropout(weights_of(problem.settings.normalizer, terms.logits(), sums.norm()))
      .reshape(sizes);
}

// A call without values, which do not affect the weights. The keys take their place.
struct WeightsCall {
  Call call;

  static auto fields(auto& self) {
    return std::tuple_cat(std::tie(self.call.query, self.call.keys),
                          Options::option_fields(self.call.options));
  }

  Call whole() const { return {call.query, call.keys, call.keys, call.options}; }
};

Tensor operator_weights(const WeightsCall& call) { return weights(call.whole()); }

Tensor meta_weights(const WeightsCall& given) {
  const Call& call = given.call;
  return at::empty_symint(weight_sizes(given.whole()),
                          call.query.options().dtype(accumulate_type(call.query.scalar_type())));
}

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  m.def("attention_weights(Tensor query, Tensor[] keys, *" NSIMPLEX_OPTIONS_SCHEMA ") -> Tensor",
        {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(nsimplex, Meta, m) {
  m.impl("attention_weights", TORCH_FN(flat<&meta_weights>));
}

// Autograd and vmap use the ATen calls inside. Elsewhere a traced graph keeps the operator whole,
// and with it symbolic lengths.
TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("attention_weights", TORCH_FN(flat<&operator_weights>));
}

TORCH_LIBRARY_IMPL(nsimplex, FuncTorchBatched, m) {
  m.impl("attention_weights", TORCH_FN(flat<&operator_weights>));
}

void check_axis(const char* function, at::TensorList keys, int64_t axis) {
  TORCH_CHECK_VALUE(axis >= 0 && axis < static_cast<int64_t>(keys.size()), "[", function,
                    "] axis: expected 0 to ", static_cast<int64_t>(keys.size()) - 1, ", got ",
                    axis);
}

// The options for sums of one-hot or unit values, whose output consists of weights.
AttentionOptions summing(const Tensor& query, AttentionOptions options) {
  options.reduce = Reduce::sum;
  if (!options.scale) options.scale = Scale::standard(query.size(3));
  options.scale->output = 1.0;
  return options;
}

// The options of the same call on tensors in Layout::bhtd.
AttentionOptions heads_first(AttentionOptions options) {
  options.layout = Layout::bhtd;
  return options;
}

// Values [B, Hk, T_m, width] with the same row for all keys, as a view without memory.
Tensor same_rows(const Tensor& key, const Tensor& row) {
  return row.expand({key.size(0), key.size(1), key.size(2), row.size(-1)});
}

}  // namespace
}  // namespace dense

at::Tensor attention_weights(const at::Tensor& query, at::TensorList keys,
                             const AttentionOptions& options) {
  return dense::with_call(query, keys, keys, options, dense::weights);
}

at::Tensor attention_marginals(const at::Tensor& query, at::TensorList keys, int64_t axis,
                               const AttentionOptions& options) {
  dense::check_axis("attention_marginals", keys, axis);
  if (options.layout != Layout::bhtd) {
    const dense::HeadsFirst tensors(options.layout, query, keys, {});
    return attention_marginals(tensors.query, tensors.keys, axis, dense::heads_first(options));
  }
  const int64_t width = keys[axis].size(2);
  if (width == 0)
    return at::zeros({query.size(0), query.size(1), query.size(2), 0}, query.options());
  std::vector<at::Tensor> values;
  for (const at::Tensor& key : keys) {
    values.push_back(dense::same_rows(key, at::zeros({1, width}, query.options())));
  }
  values[axis] = dense::same_rows(keys[axis], at::eye(width, query.options()));
  return attention(query, keys, values, dense::summing(query, options)).out;
}

at::Tensor attention_received(const at::Tensor& query, at::TensorList keys, int64_t axis,
                              const AttentionOptions& options) {
  dense::check_axis("attention_received", keys, axis);
  if (options.layout != Layout::bhtd) {
    const dense::HeadsFirst tensors(options.layout, query, keys, {});
    return attention_received(tensors.query, tensors.keys, axis, dense::heads_first(options));
  }
  std::vector<at::Tensor> values;
  for (const at::Tensor& key : keys) {
    values.push_back(dense::same_rows(key, at::zeros({1, 1}, query.options())));
  }
  return dense::with_call(
      query, keys, values, dense::summing(query, options), [&](const dense::Call& call) {
        const auto [out, lse] = dense::dispatch(call);
        // In the dtype of the forward pass, which autocast may have narrowed.
        const at::ScalarType type = out.scalar_type();
        const at::Tensor own_query = call.query.to(type);
        std::vector<at::Tensor> own_keys, own_values;
        for (size_t m = 0; m < keys.size(); ++m) {
          own_keys.push_back(call.keys[m].to(type));
          own_values.push_back(call.values[m].to(type));
        }
        c10::List<bool> wanted;
        for (size_t i = 0; i < 3 + 2 * keys.size(); ++i) {
          wanted.push_back(i == 1 + keys.size() + static_cast<size_t>(axis));
        }
        const dense::Gradients gradients =
            dense::dispatch(dense::BackwardCall{{own_query, own_keys, own_values, call.options},
                                                out,
                                                lse,
                                                at::ones_like(out),
                                                std::nullopt,
                                                wanted});
        return std::get<2>(gradients)[axis].squeeze(-1);
      });
}

}  // namespace nsimplex
