#include "cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace nsimplex::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

TEST(Table, AlignsItsColumns) {
  Table table({"name", "ms"});
  table.add({"a", "1.25"});
  table.add({"longer"});
  EXPECT_EQ(table.text(),
            "name      ms\n"
            "a       1.25\n"
            "longer      \n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  Table table({"name", "accuracy"});
  table.add({"é", "0.5 ± 0.1"});
  table.add({"ab", "1"});
  EXPECT_EQ(table.text(),
            "name   accuracy\n"
            "é     0.5 ± 0.1\n"
            "ab            1\n");
}

TEST(JsonLine, IsOneLineInTheGivenOrderWhateverTheText) {
  CaptureStdout();
  print_json_line("test",
                  {{"z", "two\nlines \xff"}, {"a", std::numeric_limits<double>::quiet_NaN()}});
  const std::string line = GetCapturedStdout();
  EXPECT_EQ(line, "{\"kind\":\"test\",\"z\":\"two\\nlines \xef\xbf\xbd\",\"a\":null}\n");
}

TEST(Duration, IsShort) {
  EXPECT_EQ(format_duration(4.21), "4.2s");
  EXPECT_EQ(format_duration(59.4), "59s");
  EXPECT_EQ(format_duration(185), "3m05s");
  EXPECT_EQ(format_duration(2 * 3600 + 7 * 60), "2h07m");
}

TEST(ProgressBar, WritesPlainLinesWhenPiped) {
  CaptureStderr();
  {
    ProgressBar bar("step", 4, false);
    bar.update(1, "loss 2.0");
    bar.note("saved");
    bar.update(4, "loss 1.0");
  }
  const std::string text = GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("step 1/4"));
  EXPECT_THAT(text, HasSubstr("saved\n"));
  EXPECT_THAT(text, HasSubstr("step 4/4"));
  EXPECT_THAT(text, HasSubstr("loss 1.0\n"));
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
}

TEST(ProgressBar, IsSilentForMachines) {
  CaptureStderr();
  {
    ProgressBar bar("step", 4, true);
    bar.update(1);
    bar.note("saved");
  }
  EXPECT_EQ(GetCapturedStderr(), "");
}

}  // namespace
}  // namespace nsimplex::cli
