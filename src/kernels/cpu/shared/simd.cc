// Lists the SIMD levels of this machine in order of speed, chooses one, and says why.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/shared/simd.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/cpu/shared/matrix_tiles.h"
#include "kernels/cpu/shared/processor.h"
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
#if HWY_ARCH_X86_64
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
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

// Highway names only the targets of the processor that it is compiled for.
constexpr char kAvx512Level[] = "AVX3";

// AVX3 with other products of bf16, and AVX2 with emulated ones: levels that Highway does not know.
constexpr char kPairsLevel[] = "AVX3_BF16", kTilesLevel[] = "AMX_BF16",
               kEmulatedLevel[] = "AMX_EMULATED";

// Set together with the target.
std::atomic<Bf16Products> products_chosen{Bf16Products::numbers};
// Whether the environment or a caller named the level, which then serves every call.
std::atomic<bool> level_named{false};

const Processor& this_processor() {
  static const Processor processor = [] {
    Processor found;
#if HWY_ARCH_X86_64
    __builtin_cpu_init();
    found.intel = __builtin_cpu_is("intel");
    found.amd = __builtin_cpu_is("amd");
    found.bf16_pairs =
        (available_targets() & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512bf16");
    found.bf16_tiles = found.bf16_pairs && has_amx_bf16();
#endif
    return found;
  }();
  return processor;
}

std::atomic<bool>& wide_tiles() {
  static std::atomic<bool> wide{loads_limit_products(this_processor())};
  return wide;
}

// Highway's targets of this machine, best first.
std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(rest & -rest));
  }
  return names;
}

void choose_by_name(const std::string& name) {
  const auto choose = [](Bf16Products products, int64_t target) {
    products_chosen = products;
    choose_target(target);
  };
  const std::vector<std::string> levels = simd_levels(), emulated = emulated_simd_levels();
  if (std::ranges::find(emulated, name) != emulated.end()) {
    return choose(Bf16Products::tiles, HWY_AVX2);
  }
  if (std::ranges::find(levels, name) != levels.end()) {
    if (name == kTilesLevel) return choose(Bf16Products::tiles, HWY_AVX3);
    if (name == kPairsLevel) return choose(Bf16Products::pairs, HWY_AVX3);
    for (int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
      if (name == hwy::TargetName(rest & -rest)) return choose(Bf16Products::numbers, rest & -rest);
    }
  }
  std::string message = "unknown or unavailable SIMD level '" + name + "'; available:";
  for (const std::string& level : levels) message += " " + level;
  throw std::invalid_argument(message);
}

}  // namespace

bool loads_limit_products(Processor processor) { return processor.intel && !processor.bf16_pairs; }

bool wide_score_tiles() { return wide_tiles(); }

void set_wide_score_tiles(std::optional<bool> wide) {
  wide_tiles() = wide.value_or(loads_limit_products(this_processor()));
}

std::vector<std::string> preferred_levels(Processor processor, std::vector<std::string> targets) {
  const auto plain = std::ranges::find(targets, kAvx512Level);
  if (plain == targets.end()) return targets;
  // Zen 4 multiplies pairs at twice the rate of fp32. Sapphire Rapids took 1.5 times as long for
  // them as for fp32, and tiles are faster there (docs/attention/performance-notes.md).
  if (processor.bf16_pairs) targets.insert(processor.amd ? plain : plain + 1, kPairsLevel);
  if (processor.bf16_tiles) {
    const auto own = std::ranges::find(targets, kAvx512Level);
    targets.insert(processor.amd ? own + 1 : own, kTilesLevel);
  }
  return targets;
}

std::string family_name(const std::string& vendor, Processor processor,
                        const std::vector<std::string>& targets) {
  if (processor.bf16_tiles) return vendor + " with AMX";
  if (processor.bf16_pairs) return vendor + " with AVX512-BF16";
  const std::string& best = targets.front();
  return vendor + " with " + (best == kAvx512Level ? "AVX-512" : best);
}

std::string preference_reason(Processor processor, const std::vector<std::string>& targets) {
  const bool pairs =
      processor.bf16_pairs && preferred_levels(processor, targets).size() > targets.size();
  if (pairs && processor.amd) {
    return "on AMD, AVX512-BF16 multiplies bf16 faster than fp32 (measured on Zen 4)";
  }
  if (pairs && processor.bf16_tiles) {
    return "from " + std::to_string(kTileChannels) +
           " channels on, AMX multiplies bf16 faster than AVX-512 does (measured on a Xeon); calls "
           "with fewer run as on AVX3";
  }
  if (pairs) {
    return "outside AMD, AVX512-BF16 multiplied bf16 more slowly than fp32 (measured on a Xeon "
           "with AMX)";
  }
  return "no other level of this processor has vectors as wide";
}

std::string processor_name() {
  std::string name;
#if HWY_ARCH_X86_64
  constexpr unsigned kFirst = 0x80000002u, kLast = 0x80000004u;
  for (unsigned leaf = kFirst; leaf <= kLast; ++leaf) {
    std::array<unsigned, 4> part{};
    if (!__get_cpuid(leaf, &part[0], &part[1], &part[2], &part[3])) return "";
    std::array<char, sizeof part + 1> text{};
    std::memcpy(text.data(), part.data(), sizeof part);
    name += text.data();
  }
  name.erase(name.find_last_not_of(' ') + 1);
  name.erase(0, name.find_first_not_of(' '));
#endif
  return name;
}

std::string processor_family() {
  std::string vendor = "Arm";
#if HWY_ARCH_X86_64
  vendor = this_processor().amd ? "AMD" : this_processor().intel ? "Intel" : "other x86";
#endif
  return family_name(vendor, this_processor(), target_names());
}

std::string simd_level_reason() {
  const std::string level = simd_level();
  const char* const wanted = std::getenv("NSIMPLEX_SIMD");
  if (wanted && level == wanted) return "NSIMPLEX_SIMD names it";
  if (level != simd_levels().front()) return "the program chose it";
  return preference_reason(this_processor(), target_names());
}

std::vector<std::string> simd_levels() {
  return preferred_levels(this_processor(), target_names());
}

std::vector<std::string> emulated_simd_levels() {
  if (available_targets() & HWY_AVX2) return {kEmulatedLevel};
  return {};
}

void read_simd_environment() {
  static const bool done = (set_simd_level(""), true);
  (void)done;
}

Bf16Products bf16_products() { return products_chosen; }

Bf16Products bf16_products(int64_t channels) {
  const Bf16Products products = products_chosen;
  const bool few = products == Bf16Products::tiles && channels < kTileChannels && !level_named;
  return few ? Bf16Products::numbers : products;
}

std::string simd_level() {
  read_simd_environment();
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  const int64_t best = targets & -targets;
  if (bf16_products() == Bf16Products::pairs) return kPairsLevel;
  if (bf16_products() == Bf16Products::tiles) {
    return best == HWY_AVX2 ? kEmulatedLevel : kTilesLevel;
  }
  return hwy::TargetName(best);
}

void set_simd_level(const std::string& name) {
  if (!name.empty()) {
    read_simd_environment();  // first, since it would undo this choice later
    choose_by_name(name);
    level_named = true;
    return;
  }
  const char* const wanted = std::getenv("NSIMPLEX_SIMD");
  choose_by_name(simd_levels().front());  // stays if the wanted one is unknown
  level_named = false;
  if (wanted && *wanted) {
    choose_by_name(wanted);
    level_named = true;
  }
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
