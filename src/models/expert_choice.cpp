#include <ATen/ATen.h>
#include <nsimplex/routing_layers.h>

#include <algorithm>
#include <limits>

#include "models/initialize.h"
#include "models/options_check.h"

namespace nsimplex {
namespace {

using at::Tensor;
using detail::require;

ExpertChoiceOptions checked(const ExpertChoiceOptions& o) {
  const char* at = "[ExpertChoice] ";
  if (const auto* count = std::get_if<int64_t>(&o.tokens)) {
    require(*count >= 1, at, "tokens: expected at least 1, got ", *count);
  } else {
    const double share = std::get<double>(o.tokens);
    require(share > 0 && share <= 1, at, "tokens: expected a share in (0, 1], got ", share);
  }
  require(o.attention.context_dims.empty(), at, "attention: expected a layer without contexts");
  require(o.allow_leak || !o.attention.causal, at,
          "attention: choosing among all tokens leaks the future into a causal layer; set "
          "allow_leak to use it all the same");
  return o;
}

void check_lengths(const Tensor& lengths, const Tensor& x) {
  TORCH_CHECK_VALUE(at::isIntegralType(lengths.scalar_type(), /*includeBool=*/false) &&
                        lengths.sizes().equals({x.size(0)}),
                    "[ExpertChoice] lengths: expected integers of shape [", x.size(0), "], got ",
                    lengths.scalar_type(), " of shape ", lengths.sizes());
  if (lengths.numel() == 0) return;
  const int64_t low = lengths.min().item<int64_t>(), high = lengths.max().item<int64_t>();
  TORCH_CHECK_VALUE(low >= 0 && high <= x.size(1), "[ExpertChoice] lengths: expected 0 to ",
                    x.size(1), ", the tokens of x, got ", low, " to ", high);
}

void check_adjacency(const Tensor& adjacency, const Tensor& x) {
  const int64_t batch = x.size(0), length = x.size(1);
  TORCH_CHECK_VALUE(
      adjacency.scalar_type() == at::kBool && (adjacency.sizes().equals({length, length}) ||
                                               adjacency.sizes().equals({batch, length, length})),
      "[ExpertChoice] adjacency: expected bool of shape [", length, ", ", length, "] or [", batch,
      ", ", length, ", ", length, "], got ", adjacency.scalar_type(), " of shape ",
      adjacency.sizes());
}

// ceil(share * real): a product that is a whole number but for its rounding is that number. 0.07 of
// 100 tokens are 7, and not 8.
Tensor rounded_up(double share, const Tensor& real) {
  return (real.to(at::kDouble) * share * (1 - 1e-12)).ceil().to(at::kLong);
}

// bool [B, length]: places at and beyond each entry's count.
Tensor beyond(const Tensor& counts, int64_t length) {
  return at::arange(length, counts.options()) >= counts.unsqueeze(1);
}

}  // namespace

struct ExpertChoiceImpl::Chosen {
  Tensor positions;  // int64 [B, K], rising; 0 behind the last
  Tensor counts;     // int64 [B]
};

ExpertChoiceImpl::ExpertChoiceImpl(const ExpertChoiceOptions& options)
    : options_(checked(options)) {
  router_ = register_module(
      "router", torch::nn::Linear(torch::nn::LinearOptions(options_.attention.dim, 1).bias(false)));
  attention_ = register_module("attention", SimplicialAttention(options_.attention));
  detail::initialize(router_->weight, std::nullopt);
}

void ExpertChoiceImpl::reset_parameters(const Initialization& init) {
  detail::initialize(router_->weight, init.generator);
  attention_->reset_parameters(init);
}

ExpertChoiceImpl::Chosen ExpertChoiceImpl::choose(const Tensor& scores,
                                                  const std::optional<Tensor>& lengths) const {
  const int64_t batch = scores.size(0), length = scores.size(1);
  const Tensor real =
      lengths ? *lengths : at::full({batch}, length, scores.options().dtype(at::kLong));
  int64_t most;
  Chosen chosen;
  if (const auto* count = std::get_if<int64_t>(&options_.tokens)) {
    most = std::min(*count, length);
    chosen.counts = real.clamp_max(*count);
  } else {
    const double share = std::get<double>(options_.tokens);
    most = rounded_up(share, at::scalar_tensor(length, at::kDouble)).item<int64_t>();
    chosen.counts = rounded_up(share, real);
  }
  const Tensor masked =
      scores.masked_fill(beyond(real, length), -std::numeric_limits<double>::infinity());
  const Tensor best =
      std::get<1>(masked.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true)).narrow(1, 0, most);
  const Tensor missing = beyond(chosen.counts, most);
  // By place, the missing ones last.
  chosen.positions =
      std::get<0>(best.masked_fill(missing, length).sort(-1)).masked_fill(missing, 0);
  return chosen;
}

Tensor ExpertChoiceImpl::forward(const Tensor& x, const std::optional<Tensor>& lengths,
                                 const std::optional<Tensor>& adjacency) {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options_.attention.dim,
              "[ExpertChoice] x: expected shape [B, T, ", options_.attention.dim, "], got ",
              x.sizes());
  if (lengths) check_lengths(*lengths, x);
  if (adjacency) check_adjacency(*adjacency, x);
  const int64_t batch = x.size(0), length = x.size(1), channels = x.size(2);
  // Padding may hold anything: it is read nowhere but where it passes.
  const Tensor real = lengths ? x.masked_fill(beyond(*lengths, length).unsqueeze(-1), 0) : x;
  const Tensor scores = router_->forward(real).squeeze(-1);
  const Chosen chosen = choose(scores.detach(), lengths);
  const int64_t most = chosen.positions.size(1);
  const Tensor missing = beyond(chosen.counts, most);
  const Tensor rows = chosen.positions.unsqueeze(-1).expand({-1, -1, channels});

  SelectedTokens tokens{chosen.positions, chosen.counts, std::nullopt};
  if (adjacency) {
    tokens.adjacency = adjacency->expand({batch, -1, -1})
                           .gather(1, chosen.positions.unsqueeze(-1).expand({-1, -1, length}))
                           .gather(2, chosen.positions.unsqueeze(1).expand({-1, most, -1}));
  }
  const Tensor input = real.gather(1, rows).masked_fill(missing.unsqueeze(-1), 0);
  const Tensor out = attention_->forward_selected(input, tokens);
  const Tensor score = scores.gather(1, chosen.positions);
  const Tensor weight = (options_.sigmoid ? score.sigmoid() : score).masked_fill(missing, 0);
  const Tensor update = out * weight.unsqueeze(-1);
  // A sum as any residual: of two dtypes under autocast it has the wider one.
  return x + at::zeros(x.sizes(), update.options()).scatter_add(1, rows, update);
}

}  // namespace nsimplex
