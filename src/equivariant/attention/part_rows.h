#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace nsimplex::equivariant {

/// Rows [rows, H, e] of several parts that end up side by side, [rows, parts H e]: written to their
/// places one part after the other, or kept and put together in the end, which can be
/// differentiated.
class PartRows {
 public:
  PartRows() = default;
  PartRows(bool in_place, int64_t rows, size_t parts, int64_t heads, int64_t width,
           const at::TensorOptions& options)
      : own_(parts) {
    if (!in_place) return;
    all_ = at::empty({rows, static_cast<int64_t>(parts), heads, width}, options);
    for (size_t i = 0; i < parts; ++i) own_[i] = all_.select(1, static_cast<int64_t>(i));
  }

  /// Where a part's rows belong; undefined where they are put there later.
  at::Tensor place(size_t part) const { return all_.defined() ? own_[part] : at::Tensor(); }

  void put(size_t part, const at::Tensor& rows) {
    if (!all_.defined()) {
      own_[part] = rows;
    } else if (!rows.is_same(own_[part])) {
      own_[part].copy_(rows);
    }
  }

  /// [rows, parts H e]
  at::Tensor side_by_side() const {
    return (all_.defined() ? all_ : at::stack(own_, 1)).flatten(1);
  }

 private:
  std::vector<at::Tensor> own_;
  at::Tensor all_;
};

}  // namespace nsimplex::equivariant
