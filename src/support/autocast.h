#pragma once

#include <ATen/autocast_mode.h>

namespace nsimplex {

/// Autocast is off while it lives: what torch's products below compute in is the caller's choice.
class NoAutocast {
 public:
  explicit NoAutocast(c10::DeviceType device)
      : guard_(
            c10::DispatchKeySet(at::autocast::get_autocast_dispatch_key_from_device_type(device))) {
  }

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace nsimplex
