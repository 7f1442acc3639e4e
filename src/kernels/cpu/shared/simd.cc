#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/shared/simd.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/shared/simd.h"

HWY_BEFORE_NAMESPACE();
namespace nsimplex::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Runs `rounds` rounds of independent multiply-adds on registers and returns their floating-point
/// operations. Start and result go through `sink`, so that the compiler cannot compute a chain
/// beforehand.
double multiply_add_rounds(int64_t rounds, float* sink) {
  // 12 chains fill two units with a latency of four cycles and fit 16 registers.
  constexpr int kChains = 12;
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 1e-3f);
  hn::Vec<decltype(d)> chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = hn::Set(d, *sink + static_cast<float>(c));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chain[c] = hn::MulAdd(chain[c], factor, term);
  }
  for (int c = 1; c < kChains; ++c) chain[0] = hn::Add(chain[0], chain[c]);
  *sink = hn::GetLane(chain[0]);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace nsimplex::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace nsimplex::kernels {
namespace {

HWY_EXPORT(multiply_add_rounds);

// Targets that are compiled in and run on this machine; a lower bit is better.
int64_t available_targets() {
  static const int64_t targets = [] {
    hwy::SetSupportedTargetsForTest(0);
    return hwy::SupportedTargets() & HWY_TARGETS;
  }();
  return targets;
}

// Highway keeps the choice for the whole process. Despite its name, SetSupportedTargetsForTest is
// the interface that can also return to a better target.
void choose_target(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// AVX3 with AVX512-BF16, the one level that Highway does not know. Set together with the target.
constexpr char kBf16Level[] = "AVX3_BF16";
std::atomic<bool> bf16_pairs_chosen{false};

bool has_bf16_pairs() {
#if HWY_ARCH_X86_64
  return (available_targets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void choose_by_name(const std::string& name) {
  if (has_bf16_pairs() && name == kBf16Level) {
    bf16_pairs_chosen = true;
    return choose_target(HWY_AVX3);
  }
  for (int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
    if (name == hwy::TargetName(rest & -rest)) {
      bf16_pairs_chosen = false;
      return choose_target(rest & -rest);
    }
  }
  std::string message = "unknown or unavailable SIMD level '" + name + "'; available:";
  for (const std::string& level : simd_levels()) message += " " + level;
  throw std::invalid_argument(message);
}

}  // namespace

std::vector<std::string> simd_levels() {
  std::vector<std::string> names;
  if (has_bf16_pairs()) names.emplace_back(kBf16Level);
  for (int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(rest & -rest));
  }
  return names;
}

void read_simd_environment() {
  static const bool done = (set_simd_level(""), true);
  (void)done;
}

bool bf16_pairs() { return bf16_pairs_chosen; }

std::string simd_level() {
  read_simd_environment();
  if (bf16_pairs()) return kBf16Level;
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);
}

void set_simd_level(const std::string& name) {
  if (!name.empty()) {
    read_simd_environment();  // first, since it would undo this choice later
    return choose_by_name(name);
  }
  choose_target(0);
  bf16_pairs_chosen = has_bf16_pairs();
  const char* const wanted = std::getenv("NSIMPLEX_SIMD");
  if (wanted && *wanted) choose_by_name(wanted);
}

double measure_fma_peak() {
  read_simd_environment();
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kRounds = 1 << 20;  // about 4 ms
  double best = 0.0;
  volatile float sink = 0.0f;
  for (int repeat = 0; repeat < 9; ++repeat) {
    float result = 0.0f;
    const auto start = Clock::now();
    const double operations = HWY_DYNAMIC_DISPATCH(multiply_add_rounds)(kRounds, &result);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    sink = sink + result;
    best = std::max(best, operations / elapsed.count() * 1e-9);
  }
  return best;
}

}  // namespace nsimplex::kernels
#endif
