#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

namespace nsimplex::cache {

/// The last `window` rows of a growing [B, H, T, C] sequence; -1: all of them.
///
/// The row of position t lies in slot t mod capacity. Capacity doubles until it is the window, and
/// no row is dropped before that: a ring that still grows has never wrapped.
class Ring {
 public:
  explicit Ring(int64_t window) : window_(window) {}

  /// rows [B, H, t, C], t >= 0; the first call decides B, H, C, dtype and device.
  void append(const at::Tensor& rows);

  /// Rows held, in the order of slots: all rows in order until the first is dropped. A view.
  at::Tensor in_slots() const { return rows_.narrow(2, 0, held()); }

  /// The last `count` rows held, in the order of positions; a view where they do not wrap.
  at::Tensor last(int64_t count) const;

  int64_t position() const { return position_; }  ///< rows appended so far
  int64_t held() const { return window_ < 0 ? position_ : std::min(position_, window_); }

  void reset();
  void select(const at::Tensor& entries);

  /// Starts again with these rows, the last of `position` ones.
  void restore(const at::Tensor& rows, int64_t position);

  /// [B, H, capacity, C]; undefined before the first append.
  const at::Tensor& storage() const { return rows_; }

 private:
  void reserve(const at::Tensor& like, int64_t rows);

  int64_t window_;
  int64_t position_ = 0;
  at::Tensor rows_;
};

}  // namespace nsimplex::cache
