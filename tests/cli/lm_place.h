#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/process.h"
#include "temporary_folder.h"

// What tests of `nsimplex lm` share.

namespace nsimplex::cli::testing {

inline std::string text() {
  std::string text;
  for (int i = 0; text.size() < 6000; ++i) text += fmt::format("{} and {} make {}\n", i, i, 2 * i);
  return text;
}

/// A folder with a text in it, and the options of a run that takes well under a second.
struct Place : test::TemporaryFolder {
  Place() { test::write_file(*this / "text", text()); }
  std::string run(const std::string& name = "run") const { return *this / name; }
  std::vector<std::string> train(std::vector<std::string> more,
                                 const std::string& steps = "20") const {
    std::vector<std::string> all = {"lm",      "train",   "--text",    *this / "text", "--layers",
                                    "2",       "--every", "2",         "--heads",      "2",
                                    "--width", "16",      "--context", "16",           "--batch",
                                    "2",       "--steps", steps,       "--threads",    "1"};
    const bool sparse = std::find(more.begin(), more.end(), "--sparse") != more.end();
    if (!sparse) all.insert(all.end(), {"--window", "4,16"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

/// One line on standard error that names the program, exit code 2, nothing on standard output.
inline void expect_bad_input(const std::vector<std::string>& arguments, const std::string& reason) {
  const Finished finished = cli::testing::run(arguments);
  EXPECT_EQ(finished.code, 2) << reason << "\n" << finished.err;
  EXPECT_THAT(lines_of(finished.err), ::testing::SizeIs(1)) << finished.err;
  EXPECT_THAT(finished.err,
              ::testing::AllOf(::testing::StartsWith("nsimplex: "), ::testing::HasSubstr(reason)));
  EXPECT_EQ(finished.out, "");
}

}  // namespace nsimplex::cli::testing
