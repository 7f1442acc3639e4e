#include "train/ranks.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "train/feature_encodings.h"
#include "train/feature_training.h"
#include "train/optimizer.h"

namespace nsimplex::training {
namespace {

using at::Tensor;

// What the ranks of a test share, which are threads.
struct Meeting {
  explicit Meeting(int64_t ranks) : barrier(ranks), parts(static_cast<size_t>(ranks)) {}
  std::barrier<> barrier;
  std::vector<Tensor> parts;
};

class ThreadRanks : public Ranks {
 public:
  ThreadRanks(Meeting& meeting, int64_t rank) : meeting_(meeting), rank_(rank) {}
  int64_t rank() const override { return rank_; }
  int64_t size() const override { return std::ssize(meeting_.parts); }
  void sum(const Tensor& values) override {
    meeting_.parts[static_cast<size_t>(rank_)] = values.clone();
    meeting_.barrier.arrive_and_wait();
    const Tensor total = meeting_.parts[0].clone();
    for (size_t other = 1; other < meeting_.parts.size(); ++other) {
      total.add_(meeting_.parts[other]);
    }
    meeting_.barrier.arrive_and_wait();
    values.copy_(total);
  }

 private:
  Meeting& meeting_;
  int64_t rank_;
};

// The results of a function on several ranks, by rank. An error of any is one of the call.
template <class Function>
auto on_ranks(int64_t count, Function function) {
  using Result = decltype(function(only_rank()));
  Meeting meeting(count);
  std::vector<std::future<Result>> running;
  for (int64_t rank = 0; rank < count; ++rank) {
    running.push_back(std::async(std::launch::async, [&meeting, &function, rank] {
      ThreadRanks ranks(meeting, rank);
      try {
        return function(ranks);
      } catch (...) {
        meeting.barrier.arrive_and_drop();
        throw;
      }
    }));
  }
  std::vector<Result> results;
  for (auto& each : running) results.push_back(each.get());
  return results;
}

TEST(Ranks, DivideRowsWithoutGapsAndShareWhatTheFirstHas) {
  for (const int64_t count : {0, 1, 7, 12}) {
    const auto parts = on_ranks(3, [&](Ranks& ranks) { return ranks.rows_of(count); });
    int64_t next = 0;
    for (const Ranks::Rows& part : parts) {
      EXPECT_EQ(part.begin, next);
      next += part.count;
      EXPECT_LE(std::abs(3 * part.count - count), 3);
    }
    EXPECT_EQ(next, count);
  }
  const std::string text("lines\nof \0 rank 0", 17);
  for (const std::string& given : {text, std::string()}) {
    EXPECT_THAT(on_ranks(3,
                         [&](Ranks& ranks) {
                           return ranks.first_text(ranks.rank() == 0 ? given : "something else");
                         }),
                testing::Each(given));
  }
}

TEST(Ranks, OneWorksWhileTheOthersWait) {
  using namespace std::chrono_literals;
  const auto worked = on_ranks(3, [](Ranks& ranks) {
    int64_t pauses = 0, together = 0;
    ranks.lead(
        [&](const auto& pause) {
          for (; pauses < 6; ++pauses) {
            std::this_thread::sleep_for(150ms);
            pause();
          }
        },
        [&] { ++together; });
    return std::pair(pauses, together);
  });
  EXPECT_EQ(worked[0].first, 6);
  EXPECT_EQ(worked[1].first, 0);
  EXPECT_GE(worked[0].second, 1);
  EXPECT_LT(worked[0].second, 6);  // not at every pause
  EXPECT_EQ(worked[1].second, worked[0].second);
  EXPECT_EQ(worked[2].second, worked[0].second);

  struct Stop {};
  const auto stopped = on_ranks(2, [](Ranks& ranks) {
    try {
      ranks.lead(
          [](const auto& pause) {
            while (true) {
              std::this_thread::sleep_for(10ms);
              pause();
            }
          },
          [&] {
            if (ranks.any(ranks.rank() == 1)) throw Stop();
          });
    } catch (const Stop&) {
      return true;
    }
    return false;
  });
  EXPECT_THAT(stopped, testing::Each(true));
}

TEST(Ranks, AllGetTheEncodingThatTheFirstMakes) {
  const Tensor x = at::randn({60, 5}, at::make_generator<at::CPUGeneratorImpl>(3), at::kDouble);
  x.select(1, 3).add_(x.select(1, 0), 2.0);
  x.select(1, 4).add_(x.select(1, 3), -1.5);
  FeatureTransformerOptions shape{.features = 5, .dim = 8, .heads = 2};
  for (const std::string name : {"cape", "cape-scaled", "cape-additive", "relative"}) {
    const MadeEncoding want = EncodingMaker(x, {.embedding = {.steps = 20}}).make(name, shape, 1);
    const auto all = on_ranks(2, [&](Ranks& ranks) {
      // Only the first rank has usable observations.
      const Tensor own = ranks.rank() == 0 ? x : at::zeros({0, 5}, at::kDouble);
      return EncodingMaker(own, {.embedding = {.steps = 20}}).make(name, shape, 1, {}, ranks);
    });
    for (const MadeEncoding& made : all) {
      EXPECT_EQ(made.encoding, want.encoding);
      EXPECT_EQ(made.learned_scale, want.learned_scale);
      EXPECT_EQ(made.edges, want.edges);
      ASSERT_EQ(made.table.defined(), want.table.defined());
      if (!want.table.defined()) continue;
      EXPECT_GT(made.edges, 0);
      EXPECT_TRUE(at::equal(made.table, want.table.to(at::kDouble)));
    }
  }
}

struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> weights;
};

using Learn = std::function<void(FeatureTransformer&, const FeatureEvents&, Ranks&)>;

// Ranks begin with different weights, of which those of rank 0 count.
Trained trained(FeatureValues values, const Learn& learn, Ranks& ranks) {
  const auto seed = static_cast<uint64_t>(1 + ranks.rank());
  FeatureTransformer model(FeatureTransformerOptions{.features = 4,
                                                     .dim = 16,
                                                     .heads = 2,
                                                     .layers = 1,
                                                     .values = values,
                                                     .bins = 3,
                                                     .encoding = FeatureEncoding::learned,
                                                     .outputs = 3},
                           at::make_generator<at::CPUGeneratorImpl>(seed));
  Trained result;
  learn(model,
        {.step = [&](int64_t, int64_t, double loss) { result.losses.push_back(loss); },
         .checkpoint = [&] { ranks.any(false); }},
        ranks);
  for (const auto& each : named_parameters(*model)) {
    result.weights.push_back(each.tensor.detach().clone());
  }
  return result;
}

// The losses are those of one rank to rounding; all ranks have the same bits, and again.
void expect_as_one(FeatureValues values, const Learn& learn) {
  const Trained one = trained(values, learn, only_rank());
  ASSERT_FALSE(one.losses.empty());
  for (const int64_t count : {2, 3}) {
    const auto run = [&] {
      return on_ranks(count, [&](Ranks& ranks) { return trained(values, learn, ranks); });
    };
    const std::vector<Trained> all = run(), again = run();
    ASSERT_EQ(all[0].losses.size(), one.losses.size());
    for (size_t step = 0; step < one.losses.size(); ++step) {
      EXPECT_NEAR(all[0].losses[step], one.losses[step], 1e-4 * (1 + one.losses[step]));
    }
    for (size_t i = 0; i < one.weights.size(); ++i) {
      EXPECT_TRUE(at::allclose(all[0].weights[i], one.weights[i], 1e-3, 1e-3));
      for (int64_t rank = 0; rank < count; ++rank) {
        EXPECT_TRUE(at::equal(all[static_cast<size_t>(rank)].weights[i], all[0].weights[i]));
      }
      EXPECT_TRUE(at::equal(again[0].weights[i], all[0].weights[i]));
    }
    EXPECT_EQ(again[0].losses, all[0].losses);
  }
}

// 65 rows in steps of 32: the last step has one row, so that ranks are without.
Tensor rows_of_bins() {
  return at::randint(0, 4, {65, 4}, at::make_generator<at::CPUGeneratorImpl>(5),
                     at::TensorOptions(at::kLong));
}

TEST(FeatureRanks, RestoreMaskedValuesAsOne) {
  // With few masked values, some ranks have none.
  for (const double mask : {0.02, 0.3}) {
    expect_as_one(FeatureValues::bins, [&](FeatureTransformer& model, const FeatureEvents& events,
                                           Ranks& ranks) {
      restore_values(model, rows_of_bins(), {.epochs = 3, .mask = mask}, 1, events, ranks);
    });
  }
  expect_as_one(FeatureValues::linear, [&](FeatureTransformer& model, const FeatureEvents& events,
                                           Ranks& ranks) {
    restore_values(model, rows_of_bins().to(at::kFloat), {.epochs = 3}, 1, events, ranks);
  });
}

TEST(FeatureRanks, LearnAnswersAsOne) {
  const Tensor x = rows_of_bins();
  for (const Tensor& answers : {x.select(1, 1).remainder(3), x.narrow(1, 0, 3).to(at::kFloat)}) {
    expect_as_one(FeatureValues::bins,
                  [&](FeatureTransformer& model, const FeatureEvents& events, Ranks& ranks) {
                    learn_answers(model, x, answers, {.epochs = 3}, 1, events, ranks);
                  });
  }
}

TEST(FeatureRanks, AllDivergeTogether) {
  const auto diverged = on_ranks(2, [](Ranks& ranks) {
    try {
      trained(
          FeatureValues::linear,
          [](FeatureTransformer& model, const FeatureEvents& events, Ranks& all) {
            // Only the last row, which one rank has, is at fault.
            const Tensor answers = at::zeros({8, 3});
            answers[7].fill_(1e30);
            learn_answers(model, at::ones({8, 4}), answers, {.epochs = 1}, 1, events, all);
          },
          ranks);
    } catch (const Diverged&) {
      return true;
    }
    return false;
  });
  EXPECT_THAT(diverged, testing::Each(true));
}

}  // namespace
}  // namespace nsimplex::training
