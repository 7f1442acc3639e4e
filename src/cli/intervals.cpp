#include "cli/intervals.h"

#include <fmt/format.h>

namespace nsimplex::cli {

std::string interval_text(const training::Interval& of,
                          const std::function<std::string(double)>& format) {
  if (of.count == 0) return "-";
  if (of.count == 1) return format(of.mean) + " (one run)";
  return fmt::format("{} [{}, {}]", format(of.mean), format(of.low), format(of.high));
}

}  // namespace nsimplex::cli
