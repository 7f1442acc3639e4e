// A training on graphs that stops and goes on ends with the bits of one that never stopped.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "input_error_of.h"
#include "lab/graphs/baseline_networks.h"
#include "lab/graphs/encoder_network.h"
#include "lab/graphs/graph_training.h"
#include "lab/graphs/hyperedge_task.h"
#include "lab/graphs/pair_task.h"
#include "temporary_folder.h"
#include "train/optimizer.h"

namespace nsimplex::training {
namespace {

using test::input_error_of;
using ::testing::HasSubstr;

using Make = std::function<std::shared_ptr<GraphModel>()>;

ChainTask chains() {
  return ChainTask({.train = 10, .validation = 3, .test = 2, .nodes = 4, .test_nodes = 5}, 3);
}

std::shared_ptr<GraphModel> plain() {
  return std::make_shared<LinearNetwork>(LinearNetworkOptions{.input = {.order = 2},
                                                              .output = {.order = 1},
                                                              .in_channels = 2,
                                                              .hidden = 8,
                                                              .layers = 1,
                                                              .head = {.out_channels = 2}});
}

// Dropout, random features that are drawn anew in half of the steps, and a head with dropout.
std::shared_ptr<GraphModel> random_features() {
  return std::make_shared<EncoderNetwork>(
      EncoderNetworkOptions{.input = {.order = 2},
                            .output = {.order = 1},
                            .in_channels = 2,
                            .hidden = 8,
                            .layers = 1,
                            .heads = 2,
                            .form = AttentionForm::kernel,
                            .dropout = 0.2,
                            .head = {.out_channels = 2, .layers = 1, .hidden = 8, .dropout = 0.2}});
}

// Buffers: means and variances of a batch.
std::shared_ptr<GraphModel> normalised() {
  return std::make_shared<MessageNetwork>(MessageNetworkOptions{.kind = MessageKind::isomorphism,
                                                                .node_channels = 2,
                                                                .out_channels = 2,
                                                                .hidden = 8,
                                                                .layers = 2,
                                                                .dropout = 0.1});
}

struct Run {
  std::optional<GraphResult> result;
  std::vector<GraphPoint> points;
  std::vector<at::Tensor> weights;  // that the model is left with
};

// Trains as `events` say, from a state where there is one.
Run train(GraphTask& task, const Make& make, const GraphTrainingOptions& options,
          GraphEvents events = {}, const GraphState* start = nullptr) {
  Run run;
  std::shared_ptr<GraphModel> model;
  events.point = [&](const GraphPoint& point) { run.points.push_back(point); };
  run.result = train_graphs(task, [&] { return model = make(); }, options, 5, events, start);
  run.weights = copy_of_weights(*model);
  return run;
}

// Models this small are faster on one thread, and a busy machine keeps two waiting for each other.
class GraphResume : public ::testing::Test {
 protected:
  GraphResume() { at::set_num_threads(1); }
};

// Figures that are no numbers are equal here.
void expect_equal_scores(const Scores& a, const Scores& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(a[i].second == b[i].second || (std::isnan(a[i].second) && std::isnan(b[i].second)))
        << a[i].first << ": " << a[i].second << " and " << b[i].second;
  }
}

void expect_equal_points(const GraphPoint& a, const GraphPoint& b) {
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.loss, b.loss);
  expect_equal_scores(a.validation, b.validation);
}

// Stops after so many steps and goes on from the file, again and again.
void expect_same_bits(const std::function<std::unique_ptr<GraphTask>()>& task, const Make& make,
                      const GraphTrainingOptions& options) {
  const Run whole = train(*task(), make, options);
  for (const int stride : {1, 4, 7}) {
    SCOPED_TRACE(stride);
    const test::TemporaryFolder folder;
    const std::string path = folder / "state.safetensors";
    Run last;
    std::vector<GraphPoint> points;
    int parts = 0;
    for (bool stopped = true; stopped; ++parts) {
      ASSERT_LT(parts, 100);
      int done = 0;
      GraphEvents events;
      events.step = [&](int64_t, int64_t, double) { ++done; };
      events.stop = [&] { return done == stride; };
      events.save = [&](const GraphState& state) { write_graph_state(path, "this", state); };
      events.save_every = 1e9;
      const std::optional<GraphState> start = read_graph_state(path, "this");
      ASSERT_EQ(start.has_value(), parts > 0);
      at::rand({3 + parts});  // what this process drew before is of no account
      last = train(*task(), make, options, events, start ? &*start : nullptr);
      points.insert(points.end(), last.points.begin(), last.points.end());
      stopped = !last.result || last.result->stopped;
    }
    EXPECT_GT(parts, 1);
    expect_equal_scores(last.result->best_test, whole.result->best_test);
    expect_equal_scores(last.result->last_test, whole.result->last_test);
    EXPECT_EQ(last.result->parameters, whole.result->parameters);
    expect_equal_points(last.result->best, whole.result->best);
    expect_equal_points(last.result->last, whole.result->last);
    ASSERT_EQ(points.size(), whole.points.size());
    for (size_t i = 0; i < points.size(); ++i) expect_equal_points(points[i], whole.points[i]);
    ASSERT_EQ(last.weights.size(), whole.weights.size());
    for (size_t i = 0; i < last.weights.size(); ++i) {
      EXPECT_TRUE(last.weights[i].equal(whole.weights[i])) << i;
    }
  }
}

std::unique_ptr<GraphTask> new_chains() { return std::make_unique<ChainTask>(chains()); }

TEST_F(GraphResume, APlainTrainingGoesOnBitForBit) {
  expect_same_bits(new_chains, plain, {.epochs = 5, .batch = 4, .learning_rate = 0.05});
}

TEST_F(GraphResume, AveragesDropoutAndRandomFeaturesGoOnBitForBit) {
  expect_same_bits(new_chains, random_features,
                   {.epochs = 5,
                    .batch = 4,
                    .learning_rate = 0.02,
                    .warmup = 1,
                    .decays = true,
                    .clip = 0.5,
                    .weight_decay = 0.1,
                    .ema = 0.9,
                    .redraw = 0.5,
                    .evaluate_every = 2});
}

TEST_F(GraphResume, StatisticsOfBatchesAndPatienceGoOnBitForBit) {
  expect_same_bits(new_chains, normalised,
                   {.epochs = 6, .batch = 4, .learning_rate = 0.02, .patience = 2});
}

// Negatives are drawn at every visit, and the validation split anew at every validation.
TEST_F(GraphResume, WhatATaskDrawsGoesOnBitForBit) {
  io::Tuples tuples{2, {}, {7, 9}, {}};
  for (int64_t i = 0; i < 14; ++i) {
    tuples.values.insert(tuples.values.end(), {i % 7, 7 + (i + 1 + i / 7) % 9});
  }
  const auto task = [&]() -> std::unique_ptr<GraphTask> {
    return std::make_unique<HyperedgeTask>(data::splits_chosen_by_test(tuples, tuples),
                                           HyperedgeTaskOptions{.negatives = 2, .redraw = true}, 4);
  };
  const auto make = [&]() -> std::shared_ptr<GraphModel> {
    return std::make_shared<AutoencodedNetwork>(
        data::cooccurrence(data::splits_chosen_by_test(tuples, tuples)),
        NodeAutoencoderOptions{.channels = 4},
        std::make_shared<LinearNetwork>(
            LinearNetworkOptions{.input = {.order = 1},
                                 .output = {.order = 2, .symmetry = Symmetry::loop_free},
                                 .in_channels = 4,
                                 .hidden = 4,
                                 .layers = 1,
                                 .head = {.out_channels = 1}}));
  };
  expect_same_bits(task, make, {.epochs = 3, .batch = 4, .learning_rate = 0.05});
}

TEST_F(GraphResume, AStateIsSavedNowAndThenAndWhereItStops) {
  ChainTask task = chains();
  std::vector<int64_t> saved;
  GraphEvents events;
  events.save = [&](const GraphState& state) {
    saved.push_back(3 * (state.epoch - 1) + state.begin / 4);
  };
  events.save_every = 0;
  train(task, plain, {.epochs = 2, .batch = 4}, events);
  EXPECT_THAT(saved, ::testing::ElementsAre(1, 2, 3, 4, 5));
  saved.clear();
  events.save_every = 1e9;
  int asked = 0;
  events.stop = [&] { return asked++ == 2; };
  train(task, plain, {.epochs = 2, .batch = 4}, events);
  EXPECT_THAT(saved, ::testing::ElementsAre(2));
  saved.clear();
  events.stop = [] { return true; };  // nothing was done that could be lost
  train(task, plain, {.epochs = 2, .batch = 4}, events);
  EXPECT_TRUE(saved.empty());
}

TEST_F(GraphResume, AStateOfSomethingElseIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "state.safetensors";
  const GraphTrainingOptions options{.epochs = 2, .batch = 4};
  EXPECT_FALSE(read_graph_state(path, "one"));
  ChainTask task = chains();
  int asked = 0;
  GraphEvents events;
  events.stop = [&] { return asked++ == 4; };
  events.save = [&](const GraphState& state) { write_graph_state(path, "one", state); };
  train(task, plain, options, events);
  EXPECT_FALSE(read_graph_state(path, "another"));
  const std::optional<GraphState> state = read_graph_state(path, "one");
  ASSERT_TRUE(state);
  ChainTask longer({.train = 11, .validation = 3, .test = 2, .nodes = 4, .test_nodes = 5}, 3);
  EXPECT_THAT(
      input_error_of([&] { train(longer, plain, options, {}, &*state); }),
      HasSubstr("it began with 10, 3, 2 examples of the splits, the data has 11, 3, 2 now"));
  EXPECT_THAT(input_error_of([&] { train(task, normalised, options, {}, &*state); }),
              HasSubstr("cannot read " + path + ": it has no tensor"));
  for (const int64_t place : {int64_t{0}, int64_t{10}, int64_t{-1}, int64_t{1} << 40}) {
    GraphState other = *state;
    for (io::NamedTensor& each : other.tensors) {
      if (each.name == "order") each.tensor = at::full_like(each.tensor, place);
    }
    EXPECT_THAT(input_error_of([&] { train(task, plain, options, {}, &other); }),
                HasSubstr("its order is not of all examples"));
  }
  const auto refused = [&](const std::string& name, const at::Tensor& tensor) {
    GraphState other = *state;
    std::erase_if(other.tensors, [&](const io::NamedTensor& each) { return each.name == name; });
    other.tensors.push_back({name, tensor});
    write_graph_state(folder / "other", "one", other);
    return input_error_of([&] {
      const auto read = read_graph_state(folder / "other", "one");
      train(task, plain, options, {}, &*read);
    });
  };
  EXPECT_THAT(refused("x", at::zeros({2})), HasSubstr("tensor \"x\" belongs to no such training"));
  EXPECT_THAT(refused("times", at::full({4}, -1.0, at::kDouble)), HasSubstr("negative"));
  EXPECT_THAT(refused("generator.training", at::zeros({9}, at::kByte)), HasSubstr("no state"));
  EXPECT_THAT(refused("optimizer.steps", at::full({}, NAN)), HasSubstr("not finite"));
  const std::vector<std::array<std::string, 3>> changes = {
      {"\"epoch\":2", "\"epoch\":4", "state.epoch: expected at most 3, got 4"},
      {"\"epoch\":2", "\"epoch\":2.5", "state.epoch is damaged"},
      {"\"begin\":4", "\"begin\":-4", "state.begin: expected"},
      {"\"loss\":", "\"other\":1,\"loss\":", "unknown field"},
      {"\"validation\":[[", "\"other\":[[", "damaged"}};
  for (const auto& [from, to, says] : changes) {
    io::Safetensors file = io::read_safetensors(path);
    std::string& text = file.metadata.at("state");
    ASSERT_NE(text.find(from), std::string::npos) << text;
    text.replace(text.find(from), from.size(), to);
    io::write_safetensors(folder / "other", file);
    EXPECT_THAT(input_error_of([&] {
                  const auto read = read_graph_state(folder / "other", "one");
                  train(task, plain, options, {}, &*read);
                }),
                HasSubstr(says));
  }

  std::string bytes = test::read_file(path);
  bytes[bytes.size() / 2] ^= 1;
  test::write_file(path, bytes);
  EXPECT_THAT(input_error_of([&] { read_graph_state(path, "one"); }), HasSubstr("damaged"));
  test::write_file(path, "");
  EXPECT_THAT(input_error_of([&] { read_graph_state(path, "one"); }),
              HasSubstr("state.safetensors"));
}

}  // namespace
}  // namespace nsimplex::training
