#include "cli/published_losses.h"

namespace nsimplex::cli {

const std::array<PublishedLosses, 8> kPublishedLosses = {{
    {"GSM8k", "transformer", {0.3277, 0.2987, 0.2781}, 0.1420, -1.8280},
    {"GSM8k", "2-simplicial", {0.3302, 0.2942, 0.2718}, 0.1683, -2.3939},
    {"MMLU", "transformer", {0.6411, 0.5932, 0.5543}, 0.1256, -2.1606},
    {"MMLU", "2-simplicial", {0.6423, 0.5862, 0.5484}, 0.1364, -2.3960},
    {"MMLU-pro", "transformer", {0.8718, 0.8193, 0.7858}, 0.0901, -1.7289},
    {"MMLU-pro", "2-simplicial", {0.8718, 0.8135, 0.7689}, 0.1083, -2.1181},
    {"MBPP", "transformer", {0.2690, 0.2435, 0.2203}, 0.1720, -2.2569},
    {"MBPP", "2-simplicial", {0.2714, 0.2411, 0.2193}, 0.1837, -2.5201},
}};

}  // namespace nsimplex::cli
