#include <ATen/Functions.h>
#include <nsimplex/attention.h>

int main() {
  const at::Tensor query = at::randn({1, 2, 8, 16});
  const at::Tensor keys = at::randn({1, 2, 8, 16});
  nsimplex::AttentionOptions options;
  options.causal = true;
  const auto [out, lse] = nsimplex::attention(query, {keys, keys}, {keys, keys}, options);
  return out.sizes() == query.sizes() && out.isfinite().all().item<bool>() ? 0 : 1;
}
