// Checks what files of trainings say, and puts their tensors into place.

#include "train/stored_state.h"

#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "support/printable.h"
#include "support/require.h"

namespace nsimplex::training {

std::string unreadable(const std::string& path, const std::string& why) {
  return "cannot read " + path + ": " + why.substr(0, 400);  // which may repeat a long text
}

void require_same(const nlohmann::json& given, const nlohmann::json& own, const std::string& name) {
  const auto require = [&](bool same) {
    nsimplex::require(same, "the header's ", name, " is damaged: no training writes it");
  };
  if (own.is_object()) {
    require(given.is_object());
    for (const auto& [key, value] : given.items()) {
      nsimplex::require(own.contains(key), "the header's ", name, " has an unknown field ",
                        quoted_name(key));
    }
    for (const auto& [key, value] : own.items()) {
      nsimplex::require(given.contains(key), "the header's ", name, " has no ", key);
      require_same(given.at(key), value, name + "." + key);
    }
  } else if (own.is_array()) {
    require(given.is_array() && given.size() == own.size());
    for (size_t i = 0; i < own.size(); ++i) require_same(given[i], own[i], name);
  } else if (own.is_number_float()) {
    require(given.is_number() && given == own);
  } else {
    // Comparisons of numbers wrap around, too.
    const bool wrapped = given.is_number_unsigned() && !own.is_number_unsigned() && own < 0;
    require(given.is_number_float() == own.is_number_float() && given == own && !wrapped);
  }
}

void require_usable(const std::vector<io::NamedTensor>& tensors) {
  for (const io::NamedTensor& each : tensors) {
    const std::string_view name = each.name;
    const bool positive =
        name == "optimizer.steps" || name == "times" || name.starts_with("optimizer.variance.");
    require(at::isfinite(each.tensor).all().item<bool>(), "tensor ", quoted_name(name),
            " holds numbers that are not finite");
    require(!positive || !(each.tensor < 0).any().item<bool>(), "tensor ", quoted_name(name),
            " holds negative numbers");
  }
}

std::vector<io::NamedTensor> take_under(std::vector<io::NamedTensor>& tensors,
                                        std::string_view prefix) {
  std::vector<io::NamedTensor> taken;
  std::erase_if(tensors, [&](const io::NamedTensor& each) {
    if (!each.name.starts_with(prefix)) return false;
    taken.push_back({each.name.substr(prefix.size()), each.tensor});
    return true;
  });
  return taken;
}

at::Tensor take_list(std::vector<io::NamedTensor>& tensors, std::string_view name,
                     at::ScalarType type) {
  const auto found = std::ranges::find(tensors, name, &io::NamedTensor::name);
  require(found != tensors.end(), "it has no tensor ", name);
  at::Tensor taken = found->tensor.contiguous();
  require(taken.dim() == 1 && taken.scalar_type() == type, "tensor ", name, ": expected a list of ",
          type, ", got ", taken.scalar_type(), " of shape ", taken.sizes());
  tensors.erase(found);
  return taken;
}

void require_all_taken(const std::vector<io::NamedTensor>& left) {
  for (const io::NamedTensor& each : left) {
    require(false, "its tensor ", quoted_name(each.name), " belongs to no such training");
  }
}

void copy_into(const std::vector<io::NamedTensor>& tensors,
               const std::vector<io::NamedTensor>& values, const std::string& origin) {
  const at::NoGradGuard no_grad;
  std::unordered_map<std::string_view, const at::Tensor*> by_name;
  for (const io::NamedTensor& value : values) by_name.emplace(value.name, &value.tensor);
  const auto require = [&](bool fits, const auto&... why) {
    nsimplex::require(fits, "cannot read ", origin, ": ", why...);
  };
  for (const io::NamedTensor& each : tensors) {
    const auto found = by_name.find(each.name);
    require(found != by_name.end(), "it has no tensor ", each.name);
    const at::Tensor& value = *found->second;
    require(value.sizes() == each.tensor.sizes(), "tensor ", each.name, ": expected shape ",
            each.tensor.sizes(), ", got ", value.sizes());
    require(value.scalar_type() == each.tensor.scalar_type(), "tensor ", each.name, ": expected ",
            each.tensor.scalar_type(), ", got ", value.scalar_type());
    each.tensor.copy_(value);
    by_name.erase(found);
  }
  for (const auto& [name, value] : by_name) {
    require(false, "its tensor ", quoted_name(name), " belongs to no such training");
  }
}

namespace {

// The front of a state of torch's generator. Its numbers of 64 bits follow.
struct GeneratorState {
  uint64_t seed;
  int left, seeded;
  uint64_t next;
};

}  // namespace

void set_state(at::Generator generator, const at::Tensor& state, const std::string& name) {
  GeneratorState front{};
  const bool whole = state.scalar_type() == at::kByte && state.dim() == 1 &&
                     state.nbytes() == generator.get_state().nbytes();
  if (whole) std::memcpy(&front, state.const_data_ptr(), sizeof(front));
  // Every draw takes one number off what is left, and begins anew before the last one.
  require(whole && front.left >= 1 && front.next <= at::MERSENNE_STATE_N &&
              front.next + static_cast<uint64_t>(front.left) <= at::MERSENNE_STATE_N + 1,
          "tensor ", name, " is no state of a generator of random numbers");
  try {
    generator.set_state(state);
  } catch (const c10::Error&) {
    require(false, "tensor ", name, " is no state of a generator of random numbers");
  }
}

}  // namespace nsimplex::training
