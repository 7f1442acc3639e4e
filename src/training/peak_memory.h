#pragma once

#include <cstdint>
#include <optional>

namespace nsimplex::training {

/// The most memory this process holds since this was made, beyond what it held then:
/// resident pages, as Linux counts them. Freed memory that the allocator keeps is given back first.
/// One at a time.
class PeakMemory {
 public:
  PeakMemory();

  /// Bytes; absent where the system does not tell (another system, /proc not writable).
  std::optional<int64_t> bytes() const;

 private:
  std::optional<int64_t> before_;
};

}  // namespace nsimplex::training
