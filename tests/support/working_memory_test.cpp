#include "support/working_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace nsimplex {
namespace {

// The flags that Linux lists for the memory at an address, such as "hg" for large pages; empty where
// it lists none.
std::string flags_at(const void* address) {
  std::ifstream file("/proc/self/smaps");
  const auto place = reinterpret_cast<uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      inside = begin <= place && place < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

TEST(WorkingMemory, HoldsEveryByteOfAnySize) {
  for (const int64_t bytes : {0L, 1L, 4095L, (4L << 20) - 1, 4L << 20, (6L << 20) + 1, 40L << 20}) {
    const at::Tensor memory = working_memory(bytes);
    ASSERT_EQ(memory.numel(), bytes);
    if (bytes == 0) continue;
    auto* const data = static_cast<uint8_t*>(memory.mutable_data_ptr());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::memset(data, 0xa5, static_cast<size_t>(bytes));
    EXPECT_EQ(data[0], 0xa5);
    EXPECT_EQ(data[bytes - 1], 0xa5);
  }
}

TEST(WorkingMemory, AsksForLargePagesOnlyInsideOfItself) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this system has no large pages";
  }
  const int64_t bytes = 40 << 20;
  const at::Tensor memory = working_memory(bytes);
  auto* const data = static_cast<uint8_t*>(memory.mutable_data_ptr());
  const std::string flags = flags_at(data + bytes / 2);
  if (flags.empty()) GTEST_SKIP() << "this system does not show the flags of memory";
  EXPECT_NE(flags.find(" hg "), std::string::npos) << flags;
  // The last bytes and the first ones are on pages that other data may share.
  EXPECT_EQ(flags_at(data).find(" hg "), std::string::npos);
  EXPECT_EQ(flags_at(data + bytes - 1).find(" hg "), std::string::npos);
}

}  // namespace
}  // namespace nsimplex
