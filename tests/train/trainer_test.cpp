#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>

#include "support/error.h"
#include "temporary_folder.h"
#include "train/small_run.h"

extern char** environ;

namespace nsimplex::training {
namespace {

using test::read_file;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// metrics.jsonl without the speed, the only field that two equal runs do not share.
std::vector<nlohmann::json> metrics_of(const TemporaryFolder& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(folder / kMetricsFile);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("tokens_per_second");
  }
  return lines;
}

std::vector<int64_t> steps_of(const std::vector<nlohmann::json>& lines) {
  std::vector<int64_t> steps;
  for (const auto& line : lines) steps.push_back(line["step"]);
  return steps;
}

void expect_equal_runs(const TemporaryFolder& a, const TemporaryFolder& b) {
  EXPECT_TRUE(read_file(a / kCheckpointFile) == read_file(b / kCheckpointFile));
  EXPECT_TRUE(read_file(a / kModelFile) == read_file(b / kModelFile));
  EXPECT_EQ(metrics_of(a), metrics_of(b));
}

// One uninterrupted run, made once.
const TemporaryFolder& whole_run() {
  static const TemporaryFolder* folder = [] {
    auto* made = new TemporaryFolder;
    EXPECT_EQ(test::train_in(made->path()), TrainingEnd::finished);
    return made;
  }();
  return *folder;
}

// Models this small are faster on one thread, and a busy machine keeps two waiting for each other.
struct OneThread : testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { std::filesystem::remove_all(whole_run().path()); }
};
const auto* const kOneThread = testing::AddGlobalTestEnvironment(new OneThread);

TEST(Trainer, WritesItsFilesAndLearns) {
  const auto lines = metrics_of(whole_run());
  EXPECT_THAT(steps_of(lines), ElementsAre(4, 6, 8, 12));
  EXPECT_TRUE(lines[0]["val_loss"].is_null());
  EXPECT_TRUE(lines[1]["val_loss"].is_number());
  EXPECT_TRUE(lines[2]["val_loss"].is_null());
  EXPECT_LT(lines[3]["val_loss"].get<double>(), lines[1]["val_loss"].get<double>());
  EXPECT_LT(lines[3]["train_loss"].get<double>(), lines[0]["train_loss"].get<double>());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(whole_run().path()), {}), 3);
  const Checkpoint last = read_checkpoint(whole_run() / kCheckpointFile);
  EXPECT_EQ(last.progress.step, 12);
  EXPECT_EQ(last.progress.position, 12 * 2 * 3);
}

TEST(Trainer, TwoRunsAreEqual) {
  const TemporaryFolder again;
  test::train_in(again.path());
  expect_equal_runs(whole_run(), again);
}

TEST(Trainer, ASeedOfItsOwnMakesAnotherRun) {
  const TemporaryFolder folder;
  const data::Tokens tokens = test::small_tokens();
  TrainingOptions options = test::small_training();
  options.seed = 2;
  Trainer(folder.path(), test::small_start(tokens, options), tokens).run();
  EXPECT_NE(metrics_of(folder), metrics_of(whole_run()));
}

// Stopped before every step in turn, as Ctrl-C does, and resumed in a new Trainer.
TEST(Trainer, AStoppedRunContinuesBitForBit) {
  for (int stop_at = 0; stop_at < 12; ++stop_at) {
    SCOPED_TRACE(stop_at);
    const TemporaryFolder folder;
    int asked = 0;
    TrainingEvents events;
    events.stop = [&] { return asked++ == stop_at; };
    ASSERT_EQ(test::train_in(folder.path(), events), TrainingEnd::stopped);
    EXPECT_EQ(read_checkpoint(folder / kCheckpointFile).progress.step, stop_at);
    ASSERT_EQ(test::train_in(folder.path()), TrainingEnd::finished);
    expect_equal_runs(whole_run(), folder);
  }
}

// Runs killed_training; returns whether it was killed.
bool train_until_killed(const std::string& folder, int stage) {
  const std::string count = std::to_string(stage);
  std::string program = NSIMPLEX_KILLED_TRAINING, place = folder, number = count;
  char* const arguments[] = {program.data(), place.data(), number.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, arguments[0], nullptr, nullptr, arguments, environ), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
              (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

// Killed at every stage of every file that a run writes: before and after each rename among them.
TEST(Trainer, AKilledRunContinuesBitForBit) {
  int stage = 0;
  for (;; ++stage) {
    SCOPED_TRACE(stage);
    const TemporaryFolder folder;
    const bool killed = train_until_killed(folder.path(), stage);
    if (killed) {
      ASSERT_EQ(test::train_in(folder.path()), TrainingEnd::finished);
    }
    expect_equal_runs(whole_run(), folder);
    if (!killed || testing::Test::HasFailure()) break;
  }
  // Checkpoint and model, each five stages, after steps 0, 5, 10 and 12.
  EXPECT_EQ(stage, 4 * 2 * 5);
}

// Killed again and again while it resumes.
TEST(Trainer, ARunKilledManyTimesContinuesBitForBit) {
  const TemporaryFolder folder;
  int kills = 0;
  while (train_until_killed(folder.path(), 13)) {
    ASSERT_LT(++kills, 20);
  }
  EXPECT_GE(kills, 2);
  expect_equal_runs(whole_run(), folder);
}

TEST(Trainer, DropsLinesBeyondTheCheckpoint) {
  const TemporaryFolder folder;
  int asked = 0;
  TrainingEvents events;
  events.stop = [&] { return asked++ == 7; };
  test::train_in(folder.path(), events);
  std::ofstream(folder / kMetricsFile, std::ios::app)
      << R"({"step":8,"train_loss":-1})" << "\n{\"step\":1";
  test::train_in(folder.path());
  expect_equal_runs(whole_run(), folder);
}

TEST(Trainer, StopsAtALossThatIsNotFinite) {
  const TemporaryFolder folder;
  const data::Tokens tokens = test::small_tokens();
  TrainingOptions options = test::small_training();
  options.lr = 1e30;
  options.checkpoint_every = 1;
  Trainer trainer(folder.path(), test::small_start(tokens, options), tokens);
  try {
    trainer.run();
    FAIL() << "no NaN at a learning rate of 1e30";
  } catch (const Diverged& error) {
    const Checkpoint kept = read_checkpoint(folder / kCheckpointFile);
    EXPECT_THAT(error.what(), HasSubstr("at step " + std::to_string(kept.progress.step + 1) + ":"));
    EXPECT_LT(kept.progress.step, 12);
  }
}

TEST(Trainer, RefusesAnotherText) {
  const TemporaryFolder folder;
  test::train_in(folder.path());
  const std::string other = test::small_text() + "!";
  const auto* bytes = reinterpret_cast<const uint8_t*>(other.data());
  const data::Tokens tokens({{"other", {bytes, other.size()}, nullptr}}, *data::byte_tokenizer());
  EXPECT_THROW(Trainer(folder.path(), read_checkpoint(folder / kCheckpointFile), tokens),
               InputError);
}

TEST(Trainer, RefusesAContextLongerThanTheText) {
  const TemporaryFolder folder;
  const data::Tokens tokens = test::small_tokens();
  Checkpoint start = test::small_start(tokens);
  start.model.context = 4000;
  EXPECT_THROW(Trainer(folder.path(), start, tokens), InputError);
}

TEST(Trainer, HoldsItsFolder) {
  const TemporaryFolder folder;
  const data::Tokens tokens = test::small_tokens();
  const Checkpoint start = test::small_start(tokens);
  const Trainer first(folder.path(), start, tokens);
  EXPECT_THROW(Trainer(folder.path(), start, tokens), InputError);
}

// The mean over two passes of 3 windows is the gradient of one pass of those 6 windows.
TEST(Trainer, AccumulationAveragesGradients) {
  const data::Tokens tokens = test::small_tokens();
  std::vector<double> losses;
  for (const auto& [batch, accumulate] : {std::pair{6, 1}, std::pair{3, 2}}) {
    const TemporaryFolder folder;
    TrainingOptions options = test::small_training();
    options.batch = batch;
    options.accumulate = accumulate;
    TrainingEvents events;
    events.metrics = [&](const Metrics& metrics) { losses.push_back(metrics.train_loss); };
    Trainer(folder.path(), test::small_start(tokens, options), tokens).run(events);
  }
  ASSERT_THAT(losses, SizeIs(8));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(losses[i], losses[i + 4], 1e-4);
}

TEST(Trainer, TrainsUnderBf16Autocast) {
  const TemporaryFolder folder;
  const data::Tokens tokens = test::small_tokens();
  TrainingOptions options = test::small_training();
  options.bf16 = true;
  Trainer(folder.path(), test::small_start(tokens, options), tokens).run();
  const auto lines = metrics_of(folder), exact = metrics_of(whole_run());
  ASSERT_EQ(lines.size(), exact.size());
  EXPECT_NE(lines, exact);  // it did change the arithmetic
  EXPECT_NEAR(lines.back()["val_loss"], exact.back()["val_loss"], 0.05);
}

}  // namespace
}  // namespace nsimplex::training
