#include "kernels/cpu/shared/simd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "kernels/cpu/shared/processor.h"

namespace nsimplex::kernels {
namespace {

class SimdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const value = std::getenv("NSIMPLEX_SIMD");
    if (value) before_ = value;
    unsetenv("NSIMPLEX_SIMD");
    set_simd_level("");
  }
  void TearDown() override {
    if (!before_.empty()) setenv("NSIMPLEX_SIMD", before_.c_str(), 1);
    set_simd_level("");
  }

 private:
  std::string before_;
};

TEST_F(SimdTest, DefaultIsTheBestLevel) { EXPECT_EQ(simd_level(), simd_levels().front()); }

TEST_F(SimdTest, EveryLevelCanBeForcedAndLeftAgain) {
  for (const std::string& level : simd_levels()) {
    set_simd_level(level);
    EXPECT_EQ(simd_level(), level);
  }
  set_simd_level("");
  EXPECT_EQ(simd_level(), simd_levels().front());
}

TEST_F(SimdTest, UnknownLevelIsRefusedWithTheAvailableOnes) {
  try {
    set_simd_level("MMX");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'MMX'"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr(simd_levels().back()));
  }
  EXPECT_EQ(simd_level(), simd_levels().front());
}

TEST_F(SimdTest, EnvironmentNamesTheDefault) {
  setenv("NSIMPLEX_SIMD", simd_levels().back().c_str(), 1);
  set_simd_level("");
  EXPECT_EQ(simd_level(), simd_levels().back());
  setenv("NSIMPLEX_SIMD", "MMX", 1);
  EXPECT_THROW(set_simd_level(""), std::invalid_argument);
  unsetenv("NSIMPLEX_SIMD");
}

TEST_F(SimdTest, EmulatedLevelsRunByNameOnly) {
  for (const std::string& level : emulated_simd_levels()) {
    EXPECT_THAT(simd_levels(), ::testing::Not(::testing::Contains(level)));
    set_simd_level(level);
    EXPECT_EQ(simd_level(), level);
    EXPECT_EQ(bf16_products(), Bf16Products::tiles);
    set_simd_level("");
    EXPECT_EQ(simd_level(), simd_levels().front());
  }
}

TEST_F(SimdTest, ANamedLevelServesEveryCallAndTheDefaultLeavesFewChannelsToNumbers) {
  for (const std::string& level : emulated_simd_levels()) {
    set_simd_level(level);
    EXPECT_EQ(bf16_products(1), Bf16Products::tiles);
  }
  for (const std::string& level : simd_levels()) {
    set_simd_level(level);
    EXPECT_EQ(bf16_products(1), bf16_products());
  }
  set_simd_level("");
  EXPECT_EQ(bf16_products(kTileChannels), bf16_products());
  EXPECT_NE(bf16_products(kTileChannels - 1), Bf16Products::tiles);
}

TEST_F(SimdTest, NoLevelIsBeforeOneThatIsFasterOnItsFamily) {
  using ::testing::ElementsAre;
  const std::vector<std::string> targets{"AVX3", "AVX2", "EMU128"};
  const auto of = [&](bool amd, bool pairs, bool tiles) {
    return preferred_levels({.amd = amd, .bf16_pairs = pairs, .bf16_tiles = tiles}, targets);
  };
  EXPECT_THAT(of(true, true, false), ElementsAre("AVX3_BF16", "AVX3", "AVX2", "EMU128"));
  EXPECT_THAT(of(false, true, false), ElementsAre("AVX3", "AVX3_BF16", "AVX2", "EMU128"));
  EXPECT_THAT(of(false, true, true),
              ElementsAre("AMX_BF16", "AVX3", "AVX3_BF16", "AVX2", "EMU128"));
  EXPECT_THAT(of(true, false, false), ElementsAre("AVX3", "AVX2", "EMU128"));
  EXPECT_THAT(preferred_levels({.amd = true}, {"AVX2"}), ElementsAre("AVX2"));
}

TEST_F(SimdTest, OnlyMeasuredProcessorsHaveWideTilesOfScores) {
  EXPECT_TRUE(loads_limit_products({.intel = true}));
  EXPECT_FALSE(loads_limit_products({.intel = true, .bf16_pairs = true}));
  EXPECT_FALSE(loads_limit_products({.amd = true}));
  EXPECT_FALSE(loads_limit_products({}));
  const bool own = wide_score_tiles();
  set_wide_score_tiles(!own);
  EXPECT_EQ(wide_score_tiles(), !own);
  set_wide_score_tiles({});
  EXPECT_EQ(wide_score_tiles(), own);
}

TEST_F(SimdTest, FamilyAndReasonFollowFromWhatDecidesTheOrder) {
  using ::testing::HasSubstr;
  using ::testing::Not;
  const std::vector<std::string> targets{"AVX3", "AVX2", "EMU128"}, narrow{"AVX2", "EMU128"};
  const Processor zen4{.amd = true, .bf16_pairs = true}, zen3{.amd = true};
  const Processor cooper{.bf16_pairs = true};
  const Processor rapids{.bf16_pairs = true, .bf16_tiles = true};
  EXPECT_EQ(family_name("AMD", zen4, targets), "AMD with AVX512-BF16");
  EXPECT_EQ(family_name("AMD", zen3, narrow), "AMD with AVX2");
  EXPECT_EQ(family_name("Intel", cooper, targets), "Intel with AVX512-BF16");
  EXPECT_EQ(family_name("Intel", rapids, targets), "Intel with AMX");
  EXPECT_EQ(family_name("Intel", {.intel = true}, targets), "Intel with AVX-512");
  EXPECT_EQ(family_name("Arm", {}, {"NEON"}), "Arm with NEON");
  EXPECT_THAT(preference_reason(zen4, targets), HasSubstr("Zen 4"));
  EXPECT_THAT(preference_reason(cooper, targets), Not(HasSubstr("AMX_BF16")));
  EXPECT_THAT(preference_reason(rapids, targets), HasSubstr("from 64 channels on, AMX"));
  // Without AVX3 nothing about bf16 was decided.
  EXPECT_EQ(preference_reason(zen3, narrow), preference_reason({.bf16_pairs = true}, narrow));
}

TEST_F(SimdTest, TheReasonNamesWhoChoseTheLevel) {
  const std::string level = simd_levels().back();
  if (level == simd_levels().front()) GTEST_SKIP() << "this machine has one level";
  const std::string own = simd_level_reason();
  set_simd_level(level);
  EXPECT_EQ(simd_level_reason(), "the program chose it");
  setenv("NSIMPLEX_SIMD", level.c_str(), 1);
  set_simd_level("");
  EXPECT_EQ(simd_level_reason(), "NSIMPLEX_SIMD names it");
  unsetenv("NSIMPLEX_SIMD");
  set_simd_level("");
  EXPECT_EQ(simd_level_reason(), own);
}

TEST_F(SimdTest, FmaPeakIsARate) { EXPECT_GT(measure_fma_peak(), 0.01); }

}  // namespace
}  // namespace nsimplex::kernels
