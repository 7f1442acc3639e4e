#include "train/training_options.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "support/error.h"

namespace nsimplex::training {
namespace {

TEST(TrainingOptions, RoundTripThroughJsonIsExact) {
  TrainingOptions options;
  options.lr = 0.1 + 0.2;  // needs all 17 digits
  options.seed = ~uint64_t{0};
  const auto read = nlohmann::json::parse(nlohmann::json(options).dump()).get<TrainingOptions>();
  EXPECT_EQ(read.lr, options.lr);
  EXPECT_EQ(nlohmann::json(read), nlohmann::json(options));
}

TEST(TrainingOptions, NamesWhatIsOutOfRange) {
  const auto message = [](const std::function<void(TrainingOptions&)>& change) -> std::string {
    TrainingOptions options;
    change(options);
    try {
      check(options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& o) { o.steps = 0; }), "--steps: expected at least 1, got 0");
  EXPECT_EQ(message([](auto& o) { o.batch = -1; }), "--batch: expected at least 1, got -1");
  EXPECT_EQ(message([](auto& o) { o.lr = 0; }), "--lr: expected a positive number, got 0");
  EXPECT_EQ(message([](auto& o) { o.lr = std::numeric_limits<double>::quiet_NaN(); }),
            "--lr: expected a positive number, got nan");
  EXPECT_EQ(message([](auto& o) { o.min_lr = 1; }),
            "--min-lr: expected a number from 0 to --lr, got 1");
  EXPECT_EQ(message([](auto& o) { o.beta2 = 1; }), "--beta2: expected a number in [0, 1), got 1");
}

}  // namespace
}  // namespace nsimplex::training
