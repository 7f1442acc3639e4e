#include "train/scores.h"

#include <gmock/gmock.h>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::training {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

constexpr char kTwo[] =
    R"({"kind":"training","step":2,"train_loss":1.5,"val_loss":null,"tokens_per_second":10.0})"
    "\n";
constexpr char kFour[] =
    R"({"kind":"training","step":4,"train_loss":1.25,"val_loss":1.375,"tokens_per_second":20.0})"
    "\n";

TEST(MetricsLog, WritesOneObjectALine) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "m", 0);
  log.append({2, 1.5, std::nullopt, 10.0});
  log.append({4, 1.25, 1.375, 20.0});
  log.sync();
  EXPECT_EQ(read_file(folder / "m"), std::string(kTwo) + kFour);
}

TEST(MetricsLog, HasTheIndexersLossWhereThereIsOne) {
  const Metrics metrics{.step = 2, .train_loss = 1.5, .auxiliary_loss = 0.25};
  EXPECT_EQ(to_json(metrics)["auxiliary_loss"], 0.25);
  EXPECT_FALSE(to_json(Metrics{}).contains("auxiliary_loss"));
}

TEST(MetricsLog, KeepsWholeLinesUpToTheStep) {
  const TemporaryFolder folder;
  const std::string two = kTwo, both = two + kFour;
  const auto kept = [&](const std::string& contents, int64_t step) {
    write_file(folder / "m", contents);
    MetricsLog(folder / "m", step);
    return read_file(folder / "m");
  };
  EXPECT_EQ(kept(both, 4), both);
  EXPECT_EQ(kept(both, 3), two);
  EXPECT_EQ(kept(both, 1), "");
  EXPECT_EQ(kept(both.substr(0, both.size() - 1), 4), two);  // the line break is missing
  EXPECT_EQ(kept(both.substr(0, two.size() + 9), 9), two);   // half a line
  EXPECT_EQ(kept(two + "[]\n" + kFour, 9), two);
  EXPECT_EQ(kept("", 9), "");
}

TEST(MetricsLog, AppendsAfterWhatItKept) {
  const TemporaryFolder folder;
  write_file(folder / "m", std::string(kTwo) + kFour);
  MetricsLog(folder / "m", 2).append({4, 1.25, 1.375, 20.0});
  EXPECT_EQ(read_file(folder / "m"), std::string(kTwo) + kFour);
}

TEST(MetricsLog, NamesAFileItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THROW(MetricsLog(folder / "no/m", 0), InputError);
}

}  // namespace
}  // namespace nsimplex::training
