// Caches as named tensors and as safetensors files.

#include <ATen/ops/scalar_tensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/StringUtil.h>
#include <nsimplex/cache.h>

#include "attention/common/layer_cache.h"
#include "io/safetensors.h"
#include "support/error.h"

namespace nsimplex {
namespace {

using at::Tensor;

constexpr const char* kKind = "nsimplex key/value caches";

std::string layer_prefix(size_t layer) { return c10::str("layers.", layer, "."); }

const Tensor& required(const CacheState& state, const std::string& name) {
  const auto found = state.find(name);
  TORCH_CHECK_VALUE(found != state.end(), "[KeyValueCache] state: ", name, " is missing");
  return found->second;
}

// The rows of an axis at this position, as state() wrote them.
const Tensor& held_rows(const CacheState& state, const char* kind, size_t axis, int64_t window,
                        int64_t position) {
  const std::string name = c10::str(kind, ".", axis);
  const Tensor& rows = required(state, name);
  const int64_t held = window < 0 ? position : std::min(position, window);
  TORCH_CHECK_VALUE(rows.dim() == 4 && rows.size(2) == held, "[KeyValueCache] state: expected ",
                    name, " [B, Hk, ", held, ", channels] for window ", window, " at position ",
                    position, ", got ", rows.sizes());
  return rows;
}

}  // namespace

CacheState KeyValueCache::state() const {
  const c10::InferenceMode ordinary_tensors(false);
  CacheState state{{"position", at::scalar_tensor(position(), at::kLong)}};
  if (position() == 0) return state;
  const auto copy = [](const cache::Ring& ring) { return ring.last(ring.held()).clone(); };
  for (size_t m = 0; m < storage_->keys.size(); ++m) {
    state.emplace(c10::str("keys.", m), copy(storage_->keys[m]));
    state.emplace(c10::str("values.", m), copy(storage_->values[m]));
  }
  return state;
}

void KeyValueCache::load_state(const CacheState& state) {
  const Tensor& count = required(state, "position");
  TORCH_CHECK_VALUE(count.numel() == 1 && count.scalar_type() == at::kLong,
                    "[KeyValueCache] state: expected position as one int64, got ",
                    count.scalar_type(), " ", count.sizes());
  const int64_t position = count.item<int64_t>();
  const size_t order = storage_->keys.size(), tensors = position == 0 ? 0 : 2 * order;
  TORCH_CHECK_VALUE(position >= 0 && state.size() == 1 + tensors,
                    "[KeyValueCache] state: expected ", 1 + tensors, " tensors for ", order,
                    " axes at position ", position, ", got ", state.size());
  // All checks precede any change.
  KeyValueCache loaded(storage_->window);
  if (position > 0) {
    const Tensor& first = held_rows(state, "keys", 0, storage_->window[0], position);
    for (const char* kind : {"keys", "values"}) {
      auto& rings = kind[0] == 'k' ? loaded.storage_->keys : loaded.storage_->values;
      const int64_t channels = held_rows(state, kind, 0, storage_->window[0], position).size(3);
      for (size_t m = 0; m < order; ++m) {
        const Tensor& rows = held_rows(state, kind, m, storage_->window[m], position);
        TORCH_CHECK_VALUE(rows.size(0) == first.size(0) && rows.size(1) == first.size(1) &&
                              rows.size(3) == channels &&
                              rows.scalar_type() == first.scalar_type() &&
                              rows.device() == first.device(),
                          "[KeyValueCache] state: ", kind, ".", m,
                          " does not go with keys.0: ", rows.scalar_type(), " ", rows.sizes(),
                          " and ", first.scalar_type(), " ", first.sizes());
        rings[m].restore(rows.detach(), position);
      }
    }
  }
  *storage_ = std::move(*loaded.storage_);
}

std::shared_ptr<LayerCache> KeyValueCache::fresh() const {
  return std::make_shared<KeyValueCache>(window());
}

void KeyValueCache::take(LayerCache& other) {
  *storage_ = std::move(*dynamic_cast<KeyValueCache&>(other).storage_);
}

LayerCaches::LayerCaches(std::vector<std::shared_ptr<LayerCache>> layers)
    : layers_(std::move(layers)) {
  TORCH_CHECK_VALUE(!layers_.empty(), "[LayerCaches] layers: expected at least one cache");
}

LayerCaches::LayerCaches(const std::vector<KeyValueCache>& layers) {
  TORCH_CHECK_VALUE(!layers.empty(), "[LayerCaches] layers: expected at least one cache");
  for (const KeyValueCache& layer : layers) {
    layers_.push_back(std::make_shared<KeyValueCache>(layer));
  }
}

int64_t LayerCaches::position() const { return layers_[0]->position(); }

int64_t LayerCaches::bytes() const {
  int64_t sum = 0;
  for (const auto& layer : layers_) sum += layer->bytes();
  return sum;
}

void LayerCaches::reset() {
  for (const auto& layer : layers_) layer->reset();
}

void LayerCaches::select(const Tensor& entries) {
  for (const auto& layer : layers_) layer->select(entries);
}

CacheState LayerCaches::state() const {
  CacheState all;
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (auto& [name, tensor] : layers_[i]->state()) all.emplace(layer_prefix(i) + name, tensor);
  }
  return all;
}

void LayerCaches::load_state(const CacheState& state) {
  std::vector<CacheState> parts(layers_.size());
  size_t found = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = layer_prefix(i);
    for (const auto& [name, tensor] : state) {
      if (name.compare(0, prefix.size(), prefix) != 0) continue;
      parts[i].emplace(name.substr(prefix.size()), tensor);
      ++found;
    }
  }
  TORCH_CHECK_VALUE(found == state.size(), "[LayerCaches] state: ", state.size() - found,
                    " tensors belong to none of ", layers_.size(), " layers");
  // The state is loaded into new caches first, so that an error changes no layer.
  std::vector<std::shared_ptr<LayerCache>> loaded;
  for (size_t i = 0; i < layers_.size(); ++i) {
    loaded.push_back(layers_[i]->fresh());
    loaded.back()->load_state(parts[i]);
    TORCH_CHECK_VALUE(loaded.back()->position() == loaded[0]->position(),
                      "[LayerCaches] state: layer ", i, " is at position ",
                      loaded.back()->position(), ", layer 0 at ", loaded[0]->position());
  }
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->take(*loaded[i]);
}

void LayerCaches::save(const std::string& path) const {
  io::Safetensors file;
  file.metadata["kind"] = kKind;
  for (auto& [name, tensor] : state()) file.tensors.push_back({name, tensor});
  io::write_safetensors(path, file);
}

void LayerCaches::load(const std::string& path, c10::Device device) {
  const io::Safetensors file = io::read_safetensors(path);
  const auto kind = file.metadata.find("kind");
  if (kind == file.metadata.end() || kind->second != kKind) {
    throw InputError("cannot use " + path + ": it holds no key/value caches");
  }
  CacheState state;
  for (const io::NamedTensor& each : file.tensors) {
    const bool counts = each.tensor.dim() == 0;  // positions are read on the CPU
    state.emplace(each.name, counts ? each.tensor : each.tensor.to(device));
  }
  try {
    load_state(state);
  } catch (const c10::Error& error) {
    throw InputError("cannot use " + path + ": " + error.what_without_backtrace());
  }
}

}  // namespace nsimplex
