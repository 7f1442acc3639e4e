#include "training/peak_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace nsimplex::training {
namespace {

// A line of /proc/self/status in bytes.
std::optional<int64_t> status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    return std::stoll(line.substr(name.size())) * 1024;  // "VmHWM:   1234 kB"
  }
  return std::nullopt;
}

// Makes the high-water mark what is resident now.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  if (reset_peak()) before_ = status_bytes("VmRSS:");
}

std::optional<int64_t> PeakMemory::bytes() const {
  const std::optional<int64_t> peak = status_bytes("VmHWM:");
  if (!before_ || !peak) return std::nullopt;
  return std::max<int64_t>(*peak - *before_, 0);
}

}  // namespace nsimplex::training
