#pragma once

#include <functional>
#include <string>

#include "training/statistics.h"

namespace nsimplex::cli {

/// A mean and its interval for people, "+1.5 [+0.9, +2.1]"; one value has no interval, which is
/// said, and of none there is "-".
std::string interval_text(const training::Interval& of,
                          const std::function<std::string(double)>& format);

}  // namespace nsimplex::cli
