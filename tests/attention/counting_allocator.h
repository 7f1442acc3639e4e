#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace nsimplex {

/// Counts the bytes of CPU tensors that are alive. Installed for the whole process: tensors of one
/// test may outlive it.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = c10::alloc_cpu(bytes);
    const int64_t now = (alive_ += static_cast<int64_t>(bytes));
    for (int64_t peak = peak_; now > peak && !peak_.compare_exchange_weak(peak, now);) {
    }
    return {data, new Block{data, bytes, this}, &release, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  /// Most bytes alive while `body` ran, beyond those alive before.
  template <class Body>
  int64_t peak_of(Body&& body) {
    const int64_t before = alive_;
    peak_ = before;
    body();
    return peak_ - before;
  }

  static CountingAllocator& installed() {
    static CountingAllocator* const allocator = [] {
      auto* const counting = new CountingAllocator;
      c10::SetCPUAllocator(counting, /*priority=*/1);
      return counting;
    }();
    return *allocator;
  }

 private:
  struct Block {
    void* data;
    size_t bytes;
    CountingAllocator* owner;
  };
  static void release(void* context) {
    auto* const block = static_cast<Block*>(context);
    block->owner->alive_ -= static_cast<int64_t>(block->bytes);
    c10::free_cpu(block->data);
    delete block;
  }

  std::atomic<int64_t> alive_{0}, peak_{0};
};

inline constexpr int64_t kMegabyte = int64_t{1} << 20;

}  // namespace nsimplex
