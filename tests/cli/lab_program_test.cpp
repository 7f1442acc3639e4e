// Experiments are commands of nsimplex-lab, which nsimplex starts.
#include "cli/lab_program.h"
#include "cli/former_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config_file.h"
#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(LabProgram, TakesWhatFollowsItsWord) {
  EXPECT_THAT(lab_arguments({"lab", "match3", "--steps", "3"}),
              Optional(ElementsAre("match3", "--steps", "3")));
  EXPECT_THAT(lab_arguments({"--config", "lab", "lab", "jets"}),
              Optional(ElementsAre("--config", "lab", "jets")));
  EXPECT_THAT(lab_arguments({"--json", "lab", "jets"}), Optional(ElementsAre("--json", "jets")));
  EXPECT_THAT(lab_arguments({"lab"}), Optional(ElementsAre()));
}

TEST(LabProgram, FormerNamesOfCommandsAreReplaced) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases{
      {{"graph", "scaling", "--json"}, {"lab", "graph-scaling", "--json"}},
      {{"graph", "hyperedges", "--json"}, {"lab", "hyperedges", "--json"}},
      {{"--json", "graph", "molecules", "a.npz"}, {"--json", "lab", "molecules", "a.npz"}},
      {{"--json", "causal", "classify", "a.csv"},
       {"--json", "causal", "task", "classify", "a.csv"}},
      {{"--config", "lab", "lab", "perturb"}, {"--config", "lab", "causal", "task", "perturb"}},
      {{"bench", "levels"}, {"bench", "attention", "--levels"}}};
  for (const auto& [before, now] : cases) {
    std::vector<std::string> words = before;
    EXPECT_THAT(use_current_command(words), HasSubstr("is now called nsimplex "));
    EXPECT_EQ(words, now);
    EXPECT_EQ(use_current_command(words), "");
    EXPECT_EQ(words, now);
  }
  for (std::vector<std::string> words : {std::vector<std::string>{}, {"causal"}, {"--config"}}) {
    EXPECT_EQ(use_current_command(words), "");
  }
  const Finished help = run({"help", "causal", "perturb"});
  EXPECT_THAT(help.out, HasSubstr("nsimplex causal task perturb"));
  EXPECT_EQ(help.err,
            "nsimplex: nsimplex causal perturb is now called nsimplex causal task perturb; the old "
            "name works until version 0.4\n");
}

TEST(LabProgram, LeavesTheProductItsCommands) {
  EXPECT_FALSE(lab_arguments({}));
  EXPECT_FALSE(lab_arguments({"graph"}));
  EXPECT_FALSE(lab_arguments({"graph", "train", "lab"}));
  EXPECT_FALSE(lab_arguments({"--config"}));
}

TEST(LabProgram, IsStartedInPlaceOfTheProduct) {
  const Finished help = run({"lab", "--help"});
  EXPECT_EQ(help.code, 0) << help.err;
  EXPECT_THAT(help.out, HasSubstr("match3"));
  const Finished unknown = run({"lab", "proteins"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("(see nsimplex lab --help)"));
  EXPECT_THAT(run({"--help"}).out, HasSubstr("nsimplex lab --help"));
}

TEST(LabProgram, IsAskedForWhereItIsNotBuilt) {
  // The program finds its libraries in the folder lib beside its own.
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const fs::path program = NSIMPLEX_EXECUTABLE;
  fs::create_directory(folder / "bin");
  fs::create_directory_symlink(program.parent_path().parent_path() / "lib", folder / "lib");
  const std::string alone = folder / "bin/nsimplex";
  fs::copy_file(program, alone);
  const Finished finished = run_program(alone, {"lab", "match3"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("nsimplex-lab is not there; make lab builds it"));
}

TEST(LabProgram, RunsOfFormerNamesContinue) {
  EXPECT_TRUE(is_command("nsimplex lab chains", "# nsimplex graph chains --out runs/a\n"));
  EXPECT_TRUE(is_command("nsimplex lab chains", "# nsimplex lab chains --out runs/a\n"));
  EXPECT_FALSE(is_command("nsimplex lab chains", "# nsimplex graph jets --out runs/a\n"));
  EXPECT_FALSE(is_command("nsimplex lab chains", "nsimplex lab chains\n"));
}

}  // namespace
}  // namespace nsimplex::cli::testing
