// Keeps the columns of a table that a screening chooses.

#pragma once

#include <ATen/ATen.h>
#include <nsimplex/causal.h>

#include "causal/tables/usable_table.h"
#include "causal/tensors.h"

namespace nsimplex::causal {

/// Keeps `screen` columns of a table, by screen_columns(). 0, or no fewer than it has: all of them.
inline void screen_table(UsableTable& table, int64_t screen, ScreenCriterion by) {
  if (screen == 0) return;
  const at::Tensor chosen = screen_columns(to_tensor(table.values), screen, by);
  const int64_t* places = chosen.const_data_ptr<int64_t>();
  keep_columns(table, {places, places + chosen.numel()});
}

}  // namespace nsimplex::causal
