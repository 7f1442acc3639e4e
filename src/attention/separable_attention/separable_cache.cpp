// Decoding with separable attention, which stores states instead of keys, and the cache as a class
// for Python (torch.classes.nsimplex).

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <nsimplex/separable_attention.h>
#include <torch/library.h>

#include "attention/common/attention_arguments.h"
#include "attention/common/layer_cache.h"
#include "support/autocast.h"

namespace nsimplex {

namespace {

using at::Tensor;

constexpr char kAt[] = "[SeparableCache] ";

Tensor with_ones(const Tensor& values) {
  return at::cat({values, at::ones_like(values.narrow(-1, 0, 1))}, -1);
}

// sum_j k_j (v_j, 1): [.., R, Dv + 1].
Tensor state_of(const Tensor& keys, const Tensor& values) {
  return keys.transpose(-1, -2).matmul(with_ones(values));
}

// R keys that sum to a state. Key r has feature r only, with the sum of that feature over all keys,
// and the mean of their values weighted by it.
std::pair<Tensor, Tensor> keys_of(const Tensor& state) {
  const int64_t value_dim = state.size(-1) - 1;
  const Tensor sums = state.select(-1, value_dim);
  const Tensor divisor = sums.masked_fill(sums.eq(0), 1).unsqueeze(-1);
  return {at::diag_embed(sums), state.narrow(-1, 0, value_dim) / divisor};
}

SeparableOutput finish(const Tensor& query, const Tensor& sums) {
  const int64_t value_dim = sums.size(-1) - 1;
  const Tensor den = sums.select(-1, value_dim);
  const Tensor silent = den.eq(0).unsqueeze(-1);
  const Tensor out = sums.narrow(-1, 0, value_dim) / den.unsqueeze(-1);
  return {dense::in_order_of(query, out.masked_fill(silent, 0)), den.contiguous()};
}

void check_inputs(const Tensor& query, at::TensorList keys, at::TensorList values, size_t order) {
  TORCH_CHECK_VALUE(query.dim() == 4 && query.size(2) >= 1, kAt,
                    "query: expected [batch, heads, t, features] with t >= 1, got ", query.sizes());
  TORCH_CHECK_VALUE(keys.size() == order && values.size() == order, kAt,
                    "keys and values: expected one for each of ", order, " axes, got ", keys.size(),
                    " and ", values.size());
  for (size_t m = 0; m < order; ++m) {
    for (const Tensor* each : {&query, &keys[m], &values[m]}) {
      TORCH_CHECK_VALUE(each->dim() == 4 && each->size(2) == query.size(2), kAt,
                        "keys and values: expected ", query.size(2),
                        " tokens, as of the query, got ", each->sizes(), " on axis ", m);
      TORCH_CHECK_VALUE(!(at::GradMode::is_enabled() && each->requires_grad()), kAt,
                        "a tensor requires a gradient, but a cache is for inference only: call it "
                        "under no_grad, or detach");
    }
  }
}

std::string name_of(const char* kind, size_t axis) { return c10::str(kind, ".", axis); }

const Tensor& required(const CacheState& state, const std::string& name) {
  const auto found = state.find(name);
  TORCH_CHECK_VALUE(found != state.end(), kAt, "state: ", name, " is missing");
  return found->second;
}

}  // namespace

// The contents of the cache for one axis: the state of all keys, or the last keys.
struct SeparableCache::Axis {
  explicit Axis(int64_t window) : window(window), keys(window), values(window) {}

  void append(const Tensor& new_keys, const Tensor& new_values) {
    if (window > 0) {
      keys.append(new_keys);
      values.append(new_values);
      return;
    }
    // The tensors outlive this call and must be usable outside inference mode.
    const c10::InferenceMode ordinary_tensors(false);
    const Tensor added = state_of(new_keys, new_values);
    sums = sums.defined() ? sums + added : added;
  }

  /// The state over all keys that the last token sees.
  Tensor state() const { return window > 0 ? state_of(keys.in_slots(), values.in_slots()) : sums; }

  /// Once there are tokens.
  int64_t batch() const { return (window > 0 ? keys.storage() : sums).size(0); }

  /// Keys and values that represent the past for the next chunk.
  std::pair<Tensor, Tensor> past() const {
    if (window < 0) return keys_of(sums);
    const int64_t count = std::min(keys.held(), window - 1);
    return {keys.last(count), values.last(count)};
  }

  void check(const Tensor& key, const Tensor& value, size_t axis) const {
    const Tensor& held = window > 0 ? keys.storage() : sums;
    const int64_t features = window > 0 ? held.size(3) : held.size(2);
    const int64_t value_dim = window > 0 ? values.storage().size(3) : held.size(3) - 1;
    TORCH_CHECK_VALUE(key.size(0) == held.size(0) && key.size(1) == held.size(1) &&
                          key.size(3) == features && value.size(3) == value_dim,
                      kAt, "axis ", axis, ": expected ", held.size(0), " batch entries, ",
                      held.size(1), " heads, ", features, " features and value dim ", value_dim,
                      ", got keys ", key.sizes(), " and values ", value.sizes());
  }

  int64_t window;
  Tensor sums;  // [B, Hk, R, Dv + 1] of an axis without a window
  cache::Ring keys, values;
};

struct SeparableCache::Storage {
  std::vector<int64_t> window;
  std::vector<Axis> axes;
  int64_t position = 0;
};

SeparableCache::SeparableCache(std::vector<int64_t> window)
    : storage_(std::make_shared<Storage>()) {
  TORCH_CHECK_VALUE(!window.empty(), kAt, "window: expected one entry an axis, got none");
  for (size_t m = 0; m < window.size(); ++m) {
    TORCH_CHECK_VALUE(window[m] == -1 || window[m] >= 1, kAt, "window[", m,
                      "]: expected at least 1, or -1 (all keys), got ", window[m]);
    storage_->axes.emplace_back(window[m]);
  }
  storage_->window = std::move(window);
}

SeparableOutput SeparableCache::attend(const Tensor& query, at::TensorList keys,
                                       at::TensorList values) {
  const NoAutocast below(query.device().type());
  std::vector<Axis>& axes = storage_->axes;
  check_inputs(query, keys, values, axes.size());
  const auto wide = [&](const Tensor& tensor) {
    return tensor.to(dense::accumulate_type(query.scalar_type()));
  };
  std::vector<Tensor> own_keys, own_values;
  for (size_t m = 0; m < axes.size(); ++m) {
    if (storage_->position > 0) axes[m].check(keys[m], values[m], m);
    own_keys.push_back(wide(keys[m]));
    own_values.push_back(wide(values[m]));
  }
  SeparableOutput result;
  if (query.size(2) > 1) result = attend_chunk(wide(query), own_keys, own_values);
  for (size_t m = 0; m < axes.size(); ++m) axes[m].append(own_keys[m], own_values[m]);
  storage_->position += query.size(2);
  if (query.size(2) == 1) return attend_token(query, wide(query));
  result.out = dense::in_order_of(query, result.out);
  return result;
}

SeparableOutput SeparableCache::attend_chunk(const Tensor& query, std::vector<Tensor> keys,
                                             std::vector<Tensor> values) const {
  SeparableOptions options{.causal = true, .window = {}};
  for (size_t m = 0; m < keys.size(); ++m) {
    const int64_t window = storage_->window[m];
    options.window.push_back(window < 0 ? Window{} : Window::last(window));
    if (storage_->position == 0) continue;
    const auto [past_keys, past_values] = storage_->axes[m].past();
    keys[m] = at::cat({past_keys, keys[m]}, 2);
    values[m] = at::cat({past_values, values[m]}, 2);
  }
  return separable_attention(query, keys, values, options);
}

SeparableOutput SeparableCache::attend_token(const Tensor& like, const Tensor& query) const {
  Tensor product;
  for (const Axis& axis : storage_->axes) {
    product = product.defined() ? product * axis.state() : axis.state();
  }
  TORCH_CHECK_VALUE(query.size(1) % product.size(1) == 0 && query.size(3) == product.size(2), kAt,
                    "query: expected a multiple of ", product.size(1), " heads and ",
                    product.size(2), " features, got ", query.sizes());
  const Tensor groups = query.unflatten(1, {product.size(1), -1}).squeeze(3);  // [B, Hk, G, R]
  return finish(like, groups.matmul(product).flatten(1, 2).unsqueeze(2));
}

const std::vector<int64_t>& SeparableCache::window() const { return storage_->window; }
int64_t SeparableCache::position() const { return storage_->position; }

int64_t SeparableCache::bytes() const {
  int64_t sum = 0;
  for (const Axis& axis : storage_->axes) {
    for (const Tensor& each : {axis.sums, axis.keys.storage(), axis.values.storage()}) {
      if (each.defined()) sum += static_cast<int64_t>(each.nbytes());
    }
  }
  return sum;
}

void SeparableCache::reset() { *storage_ = std::move(*SeparableCache(storage_->window).storage_); }

std::shared_ptr<LayerCache> SeparableCache::fresh() const {
  return std::make_shared<SeparableCache>(storage_->window);
}

void SeparableCache::take(LayerCache& other) {
  *storage_ = std::move(*dynamic_cast<SeparableCache&>(other).storage_);
}

void SeparableCache::select(const Tensor& entries) {
  cache::check_entries(kAt, entries, storage_->position > 0 ? storage_->axes.front().batch() : 0);
  for (Axis& axis : storage_->axes) {
    if (axis.window > 0) {
      axis.keys.select(entries);
      axis.values.select(entries);
    } else {
      const c10::InferenceMode ordinary_tensors(false);
      axis.sums = axis.sums.index_select(0, entries);
    }
  }
}

CacheState SeparableCache::state() const {
  const c10::InferenceMode ordinary_tensors(false);
  CacheState state{{"position", at::scalar_tensor(position(), at::kLong)}};
  for (size_t m = 0; position() > 0 && m < storage_->axes.size(); ++m) {
    const Axis& axis = storage_->axes[m];
    if (axis.window > 0) {
      state.emplace(name_of("keys", m), axis.keys.last(axis.keys.held()).clone());
      state.emplace(name_of("values", m), axis.values.last(axis.values.held()).clone());
    } else {
      state.emplace(name_of("states", m), axis.sums.clone());
    }
  }
  return state;
}

void SeparableCache::load_state(const CacheState& state) {
  const Tensor& count = required(state, "position");
  TORCH_CHECK_VALUE(count.numel() == 1 && count.scalar_type() == at::kLong, kAt,
                    "state: expected position as one int64, got ", count.scalar_type(), " ",
                    count.sizes());
  SeparableCache loaded(storage_->window);
  const int64_t position = loaded.storage_->position = count.item<int64_t>();
  size_t used = 1;
  for (size_t m = 0; position > 0 && m < loaded.storage_->axes.size(); ++m) {
    Axis& axis = loaded.storage_->axes[m];
    const auto take = [&](const char* kind, int64_t rows) {
      const Tensor& tensor = required(state, name_of(kind, m));
      TORCH_CHECK_VALUE(tensor.dim() == 4 && (rows < 0 || tensor.size(2) == rows), kAt,
                        "state: expected ", name_of(kind, m), " of 4 dimensions",
                        rows < 0 ? std::string() : c10::str(" and ", rows, " rows"), ", got ",
                        tensor.sizes());
      ++used;
      return tensor.detach();
    };
    if (axis.window > 0) {
      const int64_t held = std::min(position, axis.window);
      axis.keys.restore(take("keys", held), position);
      axis.values.restore(take("values", held), position);
    } else {
      axis.sums = take("states", -1).clone();
    }
  }
  TORCH_CHECK_VALUE(used == state.size(), kAt, "state: expected ", used, " tensors for windows ",
                    c10::Join(", ", window()), " at position ", position, ", got ", state.size());
  *storage_ = std::move(*loaded.storage_);
}

}  // namespace nsimplex

namespace nsimplex::separable {
namespace {

using at::Tensor;

struct SeparableCacheClass : cache::LayerCacheHolder {
  explicit SeparableCacheClass(std::vector<int64_t> window) : cache(std::move(window)) {}
  std::shared_ptr<LayerCache> layer() const override {
    return std::make_shared<SeparableCache>(cache);
  }
  SeparableCache cache;
};

TORCH_LIBRARY_FRAGMENT(nsimplex, m) {
  using Handle = c10::intrusive_ptr<SeparableCacheClass>;
  using Tensors = std::vector<Tensor>;
  auto type = m.class_<SeparableCacheClass>("SeparableCache");
  type.def(torch::init<std::vector<int64_t>>())
      .def("attend",
           [](const Handle& self, const Tensor& query, const Tensors& keys, const Tensors& values) {
             SeparableOutput result = self->cache.attend(query, keys, values);
             return std::make_tuple(std::move(result.out), std::move(result.normalizer));
           });
  cache::define_layer_cache(type);
}

}  // namespace
}  // namespace nsimplex::separable
