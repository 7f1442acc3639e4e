// Block sizes and scratch memory of the separable attention kernel.

#pragma once

#include "kernels/common/rounding.h"
#include "kernels/cpu/separable_attention/separable_attention.h"

// Block sizes of the separable kernel, the same on every target, and the contents of its scratch
// memory.

namespace nsimplex::kernels::separable {

/// Queries processed together. A tile's sums at each of them stay in a 32 KiB first-level cache for
/// two axes, 2 x 16 KiB of fp32.
inline constexpr int64_t kChunkQueries = 32;

/// Queries, and keys, that linear attention processes together. With more of them, products within
/// a chunk grow, and loads and stores of states decrease. At 64 features and channels with AVX-512,
/// 32 took 1.06 of the time, forward and backward, and 64 took 1.21.
inline constexpr int64_t kLinearQueries = 16;

/// Queries from one saved state to the next, backward.
inline constexpr int64_t kCheckpointQueries = 128;

/// Keys per block sum of a sliding axis: the window of a query chunk is whole blocks and a few keys
/// at both ends.
inline constexpr int64_t kBlockKeys = 64;

/// Largest number of elements of a register tile: 8 vectors of 16 fp32.
inline constexpr int64_t kTileElements = 128;

/// Rows of the tallest register tile. Features are padded with zeros to a multiple.
inline constexpr int64_t kFeatureRows = 8;

/// Channels are padded to a multiple: a 512-bit vector of fp32.
inline constexpr int64_t kChannels = 16;

/// Fewest tasks wanted, if the features allow it. More would cost memory: every slice of a head has
/// its own sums over all queries.
inline constexpr int64_t kWantedTasks = 4;

/// Queries that a task of the forward's second phase finishes.
inline constexpr int64_t kFinishQueries = 256;

/// Hands out aligned parts of a memory. With a null memory it only counts.
template <class T>
class Memory {
 public:
  explicit Memory(void* memory) : base_(static_cast<T*>(memory)) {}
  T* take(int64_t count) {
    T* const part = base_ ? base_ + used_ : nullptr;
    used_ += round_up(count, 64 / static_cast<int64_t>(sizeof(T)));
    return part;
  }
  size_t bytes() const { return static_cast<size_t>(used_) * sizeof(T); }

 private:
  T* base_;
  int64_t used_ = 0;
};

/// Packed rows of keys and their values: [count][rows] and [count][width].
template <class T>
struct KeyRows {
  T *key = nullptr, *value = nullptr;
};

/// The memory of a task for one axis.
template <class T>
struct AxisScratch {
  T* state = nullptr;            ///< [rows][width], at the chunk's first query
  KeyRows<T> entering, leaving;  ///< [chunk]
  T* sums = nullptr;             ///< [chunk][kTileElements]: the state at each query, one tile
  T* blocks = nullptr;           ///< [blocks][rows][width] of a sliding axis
  int64_t block_count = 0;

  // For the backward.
  T* checkpoints = nullptr;  ///< [..][rows][width]: states of an axis that only gathers
  T* run_states = nullptr;   ///< [plan.checkpoint][rows][width]: those after one checkpoint
  int64_t run = -1;          ///< the number of this checkpoint
  T* grad_state = nullptr;   ///< [rows][width]
  T* grad_blocks = nullptr;  ///< as blocks
  T* grad_sums = nullptr;    ///< as sums
  KeyRows<T> grad_entering, grad_leaving;  ///< as entering and leaving
};

template <class T>
struct Scratch {
  AxisScratch<T> axes[kMaxOrder];
  T* query = nullptr;    ///< [chunk][group][rows]
  KeyRows<T> bulk;       ///< [kBlockKeys]
  KeyRows<T> grad_bulk;  ///< of the backward
  T* suffix = nullptr;   ///< [chunk][kTileElements]
  T* total = nullptr;    ///< [chunk][group][width]: num and den, or the gradients that reach them
  T* grad_query = nullptr;

  Scratch(const SeparableProblem<T>& problem, const SeparablePlan& plan, bool backward,
          void* memory, size_t* bytes = nullptr) {
    Memory<T> next(memory);
    const int64_t group = problem.heads / problem.kv_heads, state_size = plan.rows * plan.width;
    const auto keys = [&](int64_t count) {
      T* const key = next.take(count * plan.rows);
      return KeyRows<T>{key, next.take(count * plan.width)};
    };
    for (int m = 0; m < problem.order; ++m) {
      const SeparableAxis<T>& axis = problem.axes[m];
      AxisScratch<T>& a = axes[m];
      a.state = next.take(state_size);
      a.entering = keys(plan.chunk);
      a.sums = next.take(plan.chunk * kTileElements);
      if (axis.sliding()) {
        a.leaving = keys(plan.chunk);
        a.block_count = axis.visible.length / kBlockKeys;
        a.blocks = next.take(a.block_count * state_size);
      }
      if (!backward) continue;
      a.grad_state = next.take(state_size);
      a.grad_entering = keys(plan.chunk);
      a.grad_sums = next.take(plan.chunk * kTileElements);
      if (axis.sliding()) {
        a.grad_leaving = keys(plan.chunk);
        a.grad_blocks = next.take(a.block_count * state_size);
      } else {
        a.checkpoints =
            next.take(ceil_div(problem.queries, plan.chunk * plan.checkpoint) * state_size);
        a.run_states = next.take(plan.checkpoint * state_size);
      }
    }
    query = next.take(plan.chunk * group * plan.rows);
    bulk = keys(kBlockKeys);
    suffix = next.take(plan.chunk * kTileElements);
    total = next.take(plan.chunk * group * plan.width);
    if (backward) {
      grad_bulk = keys(kBlockKeys);
      grad_query = next.take(plan.chunk * group * plan.rows);
    }
    if (bytes) *bytes = next.bytes();
  }
};

/// Whether a problem is linear attention with keys that never leave: its chunks are small matrix
/// products.
template <class T>
bool is_linear(const SeparableProblem<T>& problem) {
  return problem.order == 1 && !problem.axes[0].sliding();
}

/// The memory of a task of linear attention. M is the number of (query, head of the group) rows of
/// a chunk, padded to kChannels; C is kLinearQueries.
template <class T>
struct LinearScratch {
  KeyRows<T> keys;          ///< [C]
  T* query = nullptr;       ///< [M][rows]
  T* sums = nullptr;        ///< [M][width]: num and den, or the gradients that reach them
  T* products = nullptr;    ///< q . k of visible keys: [C][M], backward [M][C]
  T* state = nullptr;       ///< [rows][width]; backward transposed
  int32_t* seen = nullptr;  ///< [M]: number of visible keys of the chunk

  T* state_of_ones = nullptr;  ///< [rows], of the forward: the state of the denominator
  T* query_columns = nullptr;  ///< [rows][M]
  T* denominators = nullptr;   ///< [M]

  T* grad_state = nullptr;     ///< [width][rows], of the backward
  T* grad_products = nullptr;  ///< [M][C]
  T* grad_query = nullptr;     ///< [M][rows]
  KeyRows<T> columns, grads;   ///< keys and values transposed, [rows][C] and [width][C]; as keys
  T* grad_columns = nullptr;   ///< [width][C]

  int64_t padded_rows;  ///< M

  LinearScratch(const SeparableProblem<T>& problem, const SeparablePlan& plan, bool backward,
                void* memory, size_t* bytes = nullptr)
      : padded_rows(round_up(plan.chunk * (problem.heads / problem.kv_heads), kChannels)) {
    Memory<T> next(memory);
    const int64_t state_size = plan.rows * plan.width;
    const auto take_keys = [&] {
      T* const key = next.take(kLinearQueries * plan.rows);
      return KeyRows<T>{key, next.take(kLinearQueries * plan.width)};
    };
    keys = take_keys();
    query = next.take(padded_rows * plan.rows);
    sums = next.take(padded_rows * plan.width);
    products = next.take(padded_rows * kLinearQueries);
    state = next.take(state_size);
    seen = reinterpret_cast<int32_t*>(next.take(padded_rows));
    if (backward) {
      grad_state = next.take(state_size);
      grad_products = next.take(padded_rows * kLinearQueries);
      grad_query = next.take(padded_rows * plan.rows);
      columns = take_keys();
      grads = take_keys();
      grad_columns = next.take(plan.width * kLinearQueries);
    } else {
      state_of_ones = next.take(plan.rows);
      query_columns = next.take(padded_rows * plan.rows);
      denominators = next.take(padded_rows);
    }
    if (bytes) *bytes = next.bytes();
  }
};

}  // namespace nsimplex::kernels::separable
