// The separable operator in linear time from ATen calls, for devices without a kernel of its own.
//
// Queries and keys are cut into blocks. A query's state is the sum over the key blocks that all
// queries of its block see, a product of a 0/1 matrix with the blocks' sums, and over at most four
// blocks that some of them see, a product of 0/1 matrices with the rows of those blocks. Nothing
// depends on values, so the CPU does not wait for the device.

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>

#include "attention/common/attention_arguments.h"
#include "attention/separable_attention/separable_attention_call.h"

namespace nsimplex::separable {
namespace {

using at::Tensor;

// Queries and keys per block. A key at the edge of a window costs a product of this length, and the
// sums of the blocks need 1 / kBlockRows of the memory of all states.
constexpr int64_t kBlockRows = 32;

// Elements of the states of some query blocks: 128 MB in fp32, or one block.
constexpr int64_t kStateElements = int64_t{1} << 25;

int64_t blocks_of(int64_t length) { return (length + kBlockRows - 1) / kBlockRows; }

// [.., T, channels] -> [.., blocks, kBlockRows, channels], zeros behind the end.
Tensor in_blocks(const Tensor& tensor) {
  const int64_t length = tensor.size(-2), blocks = blocks_of(length);
  return at::constant_pad_nd(tensor, {0, 0, 0, blocks * kBlockRows - length})
      .unflatten(-2, {blocks, kBlockRows});
}

// Blocks of keys that the query blocks see, by number: all queries of query block b see key blocks
// full_begin[b] .. full_end[b] - 1, and some of them see the blocks of the slots.
class Band {
 public:
  struct Slot {
    Tensor block;  // [query blocks], a key block each
    Tensor sees;   // [query blocks, kBlockRows, kBlockRows] of zeros and ones
  };

  // `number` has the dtype of sums.
  Band(const kernels::Visibility& visible, int64_t queries, const at::TensorOptions& number)
      : number_(number), key_blocks_(blocks_of(visible.length)) {
    const at::TensorOptions whole = number.dtype(at::kLong);
    const int64_t last_key = key_blocks_ * kBlockRows, right = visible.causal ? 0 : visible.right;
    const Tensor position =
        at::arange(blocks_of(queries) * kBlockRows, whole).view({-1, kBlockRows}) + visible.offset;
    const auto bound = [&](int64_t reach) { return (position + reach).clamp(0, last_key); };
    begin_ = visible.left < 0 ? at::zeros_like(position) : bound(1 - visible.left);
    end_ = right < 0 ? at::full_like(position, last_key) : bound(1 + right);
    const auto floor = [](const Tensor& x) { return x.div(kBlockRows, "floor"); };
    const auto ceil = [&](const Tensor& x) { return floor(x + (kBlockRows - 1)); };
    full_begin_ = ceil(begin_.select(1, kBlockRows - 1));
    full_end_ = at::maximum(floor(end_.select(1, 0)), full_begin_);
    if (visible.left >= 0) {
      add_slots(floor(begin_.select(1, 0)), full_begin_, visible.offset + 1 - visible.left);
    }
    if (right >= 0) {
      add_slots(full_end_, ceil(end_.select(1, kBlockRows - 1)), visible.offset + 1 + right);
    }
    has_full_ = visible.left < 0 || right < 0 || visible.left + right + 1 >= 2 * kBlockRows;
  }

  // Whether there may be a key block that all queries of a block see.
  bool has_full() const { return has_full_; }

  // [query blocks, key blocks] of zeros and ones: all see all.
  Tensor full() const {
    const Tensor block = at::arange(key_blocks_, full_begin_.options());
    return block.ge(full_begin_.unsqueeze(1))
        .logical_and(block.lt(full_end_.unsqueeze(1)))
        .to(number_);
  }

  const std::vector<Slot>& slots() const { return slots_; }

 private:
  // One or two key blocks from `first` on, before `end`. The bounds of the queries of a block
  // differ by kBlockRows - 1, and those of the first query are the bounds of block 0 at `phase`.
  void add_slots(const Tensor& first, const Tensor& end, int64_t phase) {
    const int64_t inside = ((phase % kBlockRows) + kBlockRows) % kBlockRows;
    for (int64_t s = 0; s < (inside <= 1 ? 1 : 2); ++s) {
      const Tensor block = first + s;
      const Tensor key = (block * kBlockRows).view({-1, 1, 1}) +
                         at::arange(kBlockRows, block.options()).view({1, 1, -1});
      const Tensor sees = key.ge(begin_.unsqueeze(-1))
                              .logical_and(key.lt(end_.unsqueeze(-1)))
                              .logical_and(block.lt(end).view({-1, 1, 1}));
      slots_.push_back({block.clamp(0, key_blocks_ - 1), sees.to(number_)});
    }
  }

  at::TensorOptions number_;
  int64_t key_blocks_;
  Tensor begin_, end_;            // [query blocks, kBlockRows]: keys that a query sees
  Tensor full_begin_, full_end_;  // [query blocks]
  std::vector<Slot> slots_;
  bool has_full_ = true;
};

// One axis. B batch entries, H key heads, R features, V = Dv + 1 channels; the last is 1.
class Axis {
 public:
  Axis(const Call& call, size_t m, at::ScalarType type)
      : band_(visibility_of(call, m), call.query.size(2), call.query.options().dtype(type)) {
    const Tensor value = call.values[m].to(type);
    keys_ = in_blocks(call.keys[m].to(type));
    values_ = in_blocks(at::cat({value, at::ones_like(value.narrow(-1, 0, 1))}, -1));
    if (!band_.has_full()) return;
    full_ = band_.full();
    sums_ = keys_.transpose(-1, -2).matmul(values_).flatten(3);
  }

  // The states of some query blocks: [B, H, n, kBlockRows, R, V].
  Tensor states(int64_t first, int64_t count) const {
    Tensor states;  // [B, H, n, kBlockRows or 1, R V]
    if (full_.defined()) states = full_.narrow(0, first, count).matmul(sums_).unsqueeze(3);
    for (const Band::Slot& slot : band_.slots()) {
      const auto [keys, values] = rows_of(slot, first, count);
      const Tensor terms = (keys.unsqueeze(-1) * values.unsqueeze(-2)).flatten(4);
      const Tensor part = slot.sees.narrow(0, first, count).matmul(terms);
      states = states.defined() ? states + part : part;
    }
    return states.unflatten(-1, {keys_.size(-1), values_.size(-1)});
  }

  // Adds the gradients of keys and values from that of the states of some query blocks.
  void add_gradient(const Tensor& of_states, int64_t first, int64_t count) {
    if (!grad_keys_.defined()) {
      grad_keys_ = at::zeros_like(keys_.movedim(2, 0));
      grad_values_ = at::zeros_like(values_.movedim(2, 0));
    }
    if (full_.defined()) of_blocks_.push_back(of_states.sum(3).flatten(3));
    for (const Band::Slot& slot : band_.slots()) {
      const auto [keys, values] = rows_of(slot, first, count);
      const Tensor of_rows = slot.sees.narrow(0, first, count)
                                 .transpose(-1, -2)
                                 .matmul(of_states.flatten(4))
                                 .unflatten(-1, {keys.size(-1), values.size(-1)});
      // Sorted by place: the same bits in every call.
      const c10::List<std::optional<Tensor>> places({slot.block.narrow(0, first, count)});
      const auto add = [&](Tensor& total, const Tensor& part) {
        total.index_put_(places, part.movedim(2, 0), /*accumulate=*/true);
      };
      add(grad_keys_, of_rows.matmul(values.unsqueeze(-1)).squeeze(-1));
      add(grad_values_, keys.unsqueeze(-2).matmul(of_rows).squeeze(-2));
    }
  }

  // Gradients of keys [B, H, T, R] and values [B, H, T, V].
  std::pair<Tensor, Tensor> gradients(int64_t length) const {
    Tensor of_keys = grad_keys_.movedim(0, 2), of_values = grad_values_.movedim(0, 2);
    if (full_.defined()) {
      const Tensor of_sums = full_.t()
                                 .matmul(at::cat(of_blocks_, 2))
                                 .unflatten(-1, {keys_.size(-1), values_.size(-1)});
      of_keys = of_keys + values_.matmul(of_sums.transpose(-1, -2));
      of_values = of_values + keys_.matmul(of_sums);
    }
    const auto in_rows = [&](const Tensor& blocks) {
      return blocks.flatten(2, 3).narrow(2, 0, length);
    };
    return {in_rows(of_keys), in_rows(of_values)};
  }

 private:
  // The key block of a slot for every query block: [B, H, n, kBlockRows, R] and [.., V].
  std::pair<Tensor, Tensor> rows_of(const Band::Slot& slot, int64_t first, int64_t count) const {
    const Tensor blocks = slot.block.narrow(0, first, count);
    return {keys_.index_select(2, blocks), values_.index_select(2, blocks)};
  }

  Band band_;
  Tensor keys_, values_;  // [B, H, blocks, kBlockRows, R or V]
  Tensor full_, sums_;    // [query blocks, blocks]; [B, H, blocks, R V], sums of a block's terms
  Tensor grad_keys_, grad_values_;  // [blocks, B, H, kBlockRows, R or V]
  std::vector<Tensor> of_blocks_;   // of the states, summed over the queries of a block
};

// A call in the dtype of sums; G query heads of one key head.
class Blocks {
 public:
  explicit Blocks(const Call& call)
      : heads_(call.keys[0].size(1)),
        queries_(call.query.size(2)),
        type_(dense::accumulate_type(call.query.scalar_type())) {
    query_ = by_block(call.query);
    for (size_t m = 0; m < call.keys.size(); ++m) axes_.emplace_back(call, m, type_);
    const int64_t row = call.query.size(0) * heads_ * kBlockRows *
                        std::max(call.query.size(3), int64_t{1}) * (call.values[0].size(3) + 1);
    chunk_ = std::max<int64_t>(kStateElements / std::max<int64_t>(row, 1), 1);
  }

  // [B, Hq, Tq, channels] -> [B, H, blocks, kBlockRows, G, channels], zeros behind the end.
  Tensor by_block(const Tensor& tensor) const {
    return in_blocks(tensor.to(type_).unflatten(1, {heads_, -1})).movedim(2, 4);
  }
  // The inverse of by_block() for all chunks.
  Tensor by_head(const std::vector<Tensor>& chunks) const {
    const Tensor rows = at::cat(chunks, 2).flatten(2, 3).narrow(2, 0, queries_);
    return rows.transpose(2, 3).flatten(1, 2);
  }

  // visit(first query block, their number, the axes' states)
  template <class Visit>
  void for_each_chunk(Visit&& visit) {
    const int64_t blocks = query_.size(2);
    for (int64_t first = 0; first < blocks; first += chunk_) {
      const int64_t count = std::min(chunk_, blocks - first);
      std::vector<Tensor> states;
      for (const Axis& axis : axes_) states.push_back(axis.states(first, count));
      visit(first, count, states);
    }
  }

  Tensor query(int64_t first, int64_t count) const { return query_.narrow(2, first, count); }
  std::vector<Axis>& axes() { return axes_; }

 private:
  const int64_t heads_, queries_;
  const at::ScalarType type_;
  Tensor query_;
  std::vector<Axis> axes_;
  int64_t chunk_ = 1;
};

// The product of all states except that of `without`; undefined if there is none.
Tensor product_of(const std::vector<Tensor>& states, size_t without) {
  Tensor product;
  for (size_t m = 0; m < states.size(); ++m) {
    if (m != without) product = product.defined() ? product * states[m] : states[m];
  }
  return product;
}

bool is_empty(const Call& call) {
  return call.query.numel() == 0 ||
         std::ranges::any_of(call.keys, [](const Tensor& key) { return key.numel() == 0; });
}

Output block_forward(const Call& call) {
  check(call);
  if (is_empty(call)) return reference_forward(call);
  Blocks blocks(call);
  std::vector<Tensor> sums;
  blocks.for_each_chunk([&](int64_t first, int64_t count, const std::vector<Tensor>& states) {
    sums.push_back(blocks.query(first, count).matmul(product_of(states, states.size())));
  });
  return quotient_of(call, blocks.by_head(sums));
}

Gradients block_backward(const BackwardCall& backward) {
  check(backward);
  const Call& call = backward.forward;
  if (is_empty(call)) return reference_backward(backward);
  Blocks blocks(call);
  const Tensor gradient = blocks.by_block(gradient_of_sums(backward));
  std::vector<Tensor> of_query;
  blocks.for_each_chunk([&](int64_t first, int64_t count, const std::vector<Tensor>& states) {
    const Tensor own = gradient.narrow(2, first, count), query = blocks.query(first, count);
    of_query.push_back(own.matmul(product_of(states, states.size()).transpose(-1, -2)));
    const Tensor outer = query.transpose(-1, -2).matmul(own);  // over the heads of the group
    for (size_t m = 0; m < states.size(); ++m) {
      const Tensor others = product_of(states, m);
      blocks.axes()[m].add_gradient(others.defined() ? outer * others : outer, first, count);
    }
  });
  Gradients gradients{dense::in_order_of(call.query, blocks.by_head(of_query)), {}, {}};
  for (size_t m = 0; m < call.keys.size(); ++m) {
    const auto [of_keys, of_values] = blocks.axes()[m].gradients(call.keys[m].size(2));
    std::get<1>(gradients).push_back(dense::in_order_of(call.keys[m], of_keys));
    std::get<2>(gradients).push_back(
        dense::in_order_of(call.values[m], of_values.narrow(-1, 0, call.values[m].size(3))));
  }
  return gradients;
}

TORCH_LIBRARY_IMPL(nsimplex, CompositeExplicitAutograd, m) {
  m.impl("separable_attention", TORCH_FN(flat<&block_forward>));
  m.impl("separable_attention_backward", TORCH_FN(flat<&block_backward>));
}

}  // namespace
}  // namespace nsimplex::separable
