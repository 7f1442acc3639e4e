// A scope in which torch.autocast is off.

#pragma once

#include <ATen/autocast_mode.h>

namespace nsimplex {

/// Turns autocast off while it lives: the caller chooses the dtype of torch's products below.
class NoAutocast {
 public:
  explicit NoAutocast(c10::DeviceType device) : guard_(keys_of(device)) {}

 private:
  // Tensors without data have no autocast.
  static c10::DispatchKeySet keys_of(c10::DeviceType device) {
    if (!at::autocast::is_autocast_available(device)) return {};
    return c10::DispatchKeySet(at::autocast::get_autocast_dispatch_key_from_device_type(device));
  }

  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace nsimplex
