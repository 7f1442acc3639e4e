// `nsimplex lm train | eval | sample` as a user meets them: files, exit codes, one line for what is
// wrong.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "temporary_folder.h"

namespace nsimplex::cli::testing {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string text() {
  std::string text;
  for (int i = 0; text.size() < 6000; ++i) text += fmt::format("{} and {} make {}\n", i, i, 2 * i);
  return text;
}

// A folder with a text in it, and the options of a run that takes well under a second.
struct Place : TemporaryFolder {
  Place() { write_file(*this / "text", text()); }
  std::string run(const std::string& name = "run") const { return *this / name; }
  std::vector<std::string> train(std::vector<std::string> more,
                                 const std::string& steps = "20") const {
    std::vector<std::string> all = {
        "lm",       "train", "--text",  *this / "text", "--layers",  "2",  "--every", "2",
        "--heads",  "2",     "--dim",   "16",           "--context", "16", "--batch", "2",
        "--window", "4,16",  "--steps", steps,          "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

// One line on standard error that names the program, exit code 2, nothing on standard output.
void expect_bad_input(const std::vector<std::string>& arguments, const std::string& reason) {
  const Finished finished = cli::testing::run(arguments);
  EXPECT_EQ(finished.code, 2) << reason << "\n" << finished.err;
  EXPECT_THAT(lines_of(finished.err), SizeIs(1)) << finished.err;
  EXPECT_THAT(finished.err, AllOf(StartsWith("nsimplex: "), HasSubstr(reason)));
  EXPECT_EQ(finished.out, "");
}

TEST(LmTrain, WritesARunThatCanBeEvaluatedAndSampled) {
  const Place place;
  const Finished trained = run(place.train({"--out", place.run(), "--json", "--eval-every", "10"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto lines = lines_of(trained.out);
  ASSERT_THAT(lines, SizeIs(2));
  const auto last = nlohmann::ordered_json::parse(lines.back());
  std::vector<std::string> fields;
  for (const auto& [name, value] : last.items()) fields.push_back(name);
  EXPECT_THAT(fields,
              ::testing::ElementsAre("step", "train_loss", "val_loss", "tokens_per_second"));
  EXPECT_EQ(read_file(place / "run/metrics.jsonl"), trained.out);
  EXPECT_THAT(read_file(place / "run/config.toml"), HasSubstr("steps=20"));

  const Finished evaluated = run({"lm", "eval", place.run(), "--json", "--threads", "1"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const auto evaluation = nlohmann::json::parse(evaluated.out);
  EXPECT_EQ(evaluation["step"], 20);
  EXPECT_NEAR(evaluation["val_loss"], last["val_loss"], 1e-5);  // the whole split both times

  const std::vector<std::string> sample = {"lm",        "sample", place / "run/model.safetensors",
                                           "--prompt",  "12 and", "--tokens",
                                           "30",        "--seed", "5",
                                           "--threads", "1"};
  const Finished first = run(sample), second = run(sample);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_THAT(first.out, StartsWith("12 and"));
  EXPECT_GE(first.out.size(), 36u);
}

TEST(LmTrain, LinearLayersTrainAndSample) {
  const Place place;
  const Finished trained = run(place.train({"--out", place.run(), "--sparse", "linear"}, "5"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::vector<std::string> sample = {"lm", "sample", place.run(), "--tokens", "40", "--json"};
  const Finished sampled = run(sample);
  ASSERT_EQ(sampled.code, 0) << sampled.err;
  EXPECT_EQ(nlohmann::json::parse(sampled.out)["tokens"], 40);
  expect_bad_input(place.train({"--out", place.run("other"), "--sparse", "none"}),
                   "sparse: expected window or topk or path or linear, got 'none'");
}

TEST(LmTrain, ChosenKeysTrainResumeAndSample) {
  const Place place;
  for (const std::string sparse : {"topk", "path"}) {
    SCOPED_TRACE(sparse);
    const std::string folder = place.run(sparse);
    const Finished trained =
        run(place.train({"--out", folder, "--sparse", sparse, "--topk", "4", "--indexer", "light",
                         "--indexer-scores", "relu", "--indexer-loss", "0.5"},
                        "5"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    const Finished sampled = run({"lm", "sample", folder, "--tokens", "40", "--json"});
    ASSERT_EQ(sampled.code, 0) << sampled.err;
    EXPECT_EQ(nlohmann::json::parse(sampled.out)["tokens"], 40);
  }
}

TEST(LmTrain, ReadsStandardInputAndFoldersAlike) {
  const Place place;
  write_file(place / "folder/a/part.txt", text());
  write_file(place / "folder/other.md", "not this");
  const std::string shared =
      " --layers 1 --every 0 --heads 2 --dim 16 --context 16 --batch 2 --steps 3 --threads 1 "
      "--json ";
  const std::string program = std::string(NSIMPLEX_EXECUTABLE) + " lm train" + shared;
  const auto shell = [](const std::string& line) { return WEXITSTATUS(std::system(line.c_str())); };
  ASSERT_EQ(shell("cat " + (place / "text") + " | " + program + "--text - --out " + place.run("a") +
                  " >/dev/null"),
            0);
  ASSERT_EQ(shell(program + "--text " + (place / "folder") + " --glob '*.txt' --out " +
                  place.run("b") + " >/dev/null"),
            0);
  EXPECT_TRUE(read_file(place / "a/model.safetensors") == read_file(place / "b/model.safetensors"));
}

TEST(LmTrain, CtrlCSavesAndResumeContinuesBitForBit) {
  const Place place;
  const std::string steps = "400";
  ASSERT_EQ(run(place.train({"--out", place.run("whole")}, steps)).code, 0);
  Finished stopped;
  {
    Process process(place.train({"--out", place.run()}, steps));
    while (!std::filesystem::exists(place / "run/metrics.jsonl")) std::this_thread::yield();
    process.send(SIGINT);
    stopped = process.wait();
  }
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("lm train --resume " + place.run()));
  const Finished resumed = run({"lm", "train", "--resume", place.run()});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(read_file(place / "run/checkpoint.safetensors") ==
              read_file(place / "whole/checkpoint.safetensors"));
  // Nothing is left to do: resuming again changes nothing.
  EXPECT_EQ(run({"lm", "train", "--resume", place.run()}).code, 0);
  EXPECT_TRUE(read_file(place / "run/checkpoint.safetensors") ==
              read_file(place / "whole/checkpoint.safetensors"));
}

TEST(LmTrain, AKilledProcessContinuesBitForBit) {
  const Place place;
  const std::vector<std::string> often = {"--checkpoint-every", "7", "--log-every", "3"};
  const auto with_out = [&](const std::string& name) {
    auto more = often;
    more.insert(more.end(), {"--out", place.run(name)});
    return place.train(more, "200");
  };
  ASSERT_EQ(run(with_out("whole")).code, 0);
  for (int round = 0; round < 4; ++round) {
    const bool begun = std::filesystem::exists(place / "run/checkpoint.safetensors");
    Process process(begun ? std::vector<std::string>{"lm", "train", "--resume", place.run()}
                          : with_out("run"));
    while (!std::filesystem::exists(place / "run/checkpoint.safetensors"))
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300 + 97 * round));
    process.send(SIGKILL);
    process.wait();
  }
  ASSERT_EQ(run({"lm", "train", "--resume", place.run()}).code, 0);
  EXPECT_TRUE(read_file(place / "run/checkpoint.safetensors") ==
              read_file(place / "whole/checkpoint.safetensors"));
  EXPECT_EQ(lines_of(read_file(place / "run/metrics.jsonl")).size(),
            lines_of(read_file(place / "whole/metrics.jsonl")).size());
}

TEST(LmTrain, ALossThatIsNotFiniteEndsWithOneAndItsStep) {
  const Place place;
  const Finished finished =
      run(place.train({"--out", place.run(), "--lr", "1e30", "--clip", "0", "--json"}));
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr(" at step "));
  EXPECT_TRUE(std::filesystem::exists(place / "run/checkpoint.safetensors"));
}

TEST(LmTrain, BadInputIsOneLineAndExitCodeTwo) {
  const Place place;
  const std::string out = place.run();
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"lm", "train", "--text", place / "text", "--out", out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_bad_input({"lm", "train", "--out", out}, "--text: expected files");
  expect_bad_input(place.train({}), "--out: expected a folder");
  expect_bad_input({"lm", "train", "--text", place / "no", "--out", out},
                   "No such file or directory");
  expect_bad_input({"lm", "train", "--text", write_file(place / "empty", ""), "--out", out},
                   "empty is empty");
  expect_bad_input(
      {"lm", "train", "--text", write_file(place / "bin", std::string("a\0b", 3)), "--out", out},
      "bin is not text");
  expect_bad_input(train({"--tokenizer", place / "text"}), "text");
  expect_bad_input(train({"--step", "3"}), "unknown option --step; did you mean --steps?");
  expect_bad_input(train({"--heads", "3"}), "heads");
  expect_bad_input(train({"--kv-heads", "3"}), "kv_heads");
  expect_bad_input(train({"--window", "4,0"}), "window");
  expect_bad_input(train({"--window", "4,5,6"}), "window");
  expect_bad_input(train({"--preset", "large"}), "standard or unit");
  expect_bad_input(train({"--lr", "-1"}), "lr: expected a positive number");
  expect_bad_input(train({"--batch", "0"}), "batch: expected at least 1");
  expect_bad_input(train({"--context", "100000"}), "too short for a context of 100000");
  EXPECT_FALSE(std::filesystem::exists(place / "run/checkpoint.safetensors"));
  write_file(place / "file", "");
  expect_bad_input(place.train({"--out", place / "file/run"}), "file/run");
  expect_bad_input({"lm", "train", "--resume", place / "no"}, "No such file or directory");
}

TEST(LmTrain, NothingIsOverwritten) {
  const Place place;
  write_file(place / "run/notes", "mine");
  expect_bad_input(place.train({"--out", place.run()}), "is not empty");
  expect_bad_input({"lm", "train", "--resume", place.run()}, "has no checkpoint.safetensors");
  ASSERT_EQ(run(place.train({"--out", place.run("done"), "--json"})).code, 0);
  const std::string before = read_file(place / "done/checkpoint.safetensors");
  expect_bad_input(place.train({"--out", place.run("done")}), "is not empty");
  expect_bad_input({"lm", "train", "--resume", place.run("done"), "--lr", "1"},
                   "--lr cannot be given with --resume");
  write_file(place / "text", text() + "more");
  expect_bad_input({"lm", "train", "--resume", place.run("done")},
                   "not the one this run began with");
  EXPECT_TRUE(read_file(place / "done/checkpoint.safetensors") == before);
}

TEST(Lm, DamagedModelsAreNamed) {
  const Place place;
  ASSERT_EQ(run(place.train({"--out", place.run(), "--json"})).code, 0);
  const std::string path = place / "run/checkpoint.safetensors";
  const std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() / 2));
  expect_bad_input({"lm", "train", "--resume", place.run()}, path + ": tensor");
  expect_bad_input({"lm", "eval", place.run()}, path + ": tensor");
  expect_bad_input({"lm", "sample", place.run()}, path + ": tensor");
  expect_bad_input({"lm", "sample", place / "text"}, "not a safetensors file");
  expect_bad_input({"lm", "sample", place / "run/model.safetensors", "--top-p", "2"},
                   "top-p: expected");
  expect_bad_input({"lm", "eval", place / "run/model.safetensors"}, "--text: expected");
}

TEST(LmSample, AClosedPipeIsQuiet) {
  const Place place;
  ASSERT_EQ(run(place.train({"--out", place.run(), "--json"})).code, 0);
  const std::string error = place / "error";
  std::system((std::string(NSIMPLEX_EXECUTABLE) + " lm sample " + place.run() +
               " --tokens 2000 --threads 1 2>" + error + " | head -c 20 >/dev/null")
                  .c_str());
  EXPECT_EQ(read_file(error), "");
}

// Fields of the lines that have all of `names`.
std::vector<nlohmann::json> lines_with(const std::string& text,
                                       const std::vector<std::string>& names) {
  std::vector<nlohmann::json> found;
  for (const std::string& line : lines_of(text)) {
    const auto json = nlohmann::json::parse(line);
    if (std::all_of(names.begin(), names.end(),
                    [&](const std::string& name) { return json.contains(name); })) {
      found.push_back(json);
    }
  }
  return found;
}

struct Compared : Place {
  std::vector<std::string> compare(std::vector<std::string> more) const {
    std::vector<std::string> all = {"lm",      "compare", "--layers",     "2",  "--every",   "2",
                                    "--heads", "2",       "--dim",        "16", "--context", "16",
                                    "--batch", "2",       "--eval-every", "4",  "--warmup",  "2",
                                    "--steps", "12",      "--threads",    "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST(LmCompare, TrainsArmsAndComparesThem) {
  const Compared place;
  const Finished done = run(
      place.compare({"--text", place / "text", "--out", place.run(), "--seeds", "2", "--json"}));
  ASSERT_EQ(done.code, 0) << done.err;
  // Three arms, two seeds, equal tokens and equal time.
  const auto results = lines_with(done.out, {"arm", "parameters"});
  EXPECT_THAT(results, SizeIs(12));
  for (const auto& result : results) {
    EXPECT_EQ(result.contains("retained_mass"), result["arm"] == "topk");
    if (result["equal"] == "tokens") {
      EXPECT_EQ(result["steps"], 12);
    }
  }
  const auto pairs = lines_with(done.out, {"arm", "over", "difference"});
  ASSERT_THAT(pairs, SizeIs(6));
  for (const auto& pair : pairs) {
    EXPECT_EQ(pair["seeds"], 2);
    EXPECT_LE(pair["low"], pair["difference"]);
    EXPECT_GE(pair["high"], pair["difference"]);
  }
  // The difference is that of the results.
  const auto loss = [&](const std::string& arm, int seed) {
    for (const auto& result : results) {
      if (result["arm"] == arm && result["seed"] == seed && result["equal"] == "tokens") {
        return result["val_loss"].get<double>();
      }
    }
    return 0.0;
  };
  EXPECT_EQ(pairs[0]["arm"], "window");
  EXPECT_EQ(pairs[0]["over"], "ordinary");
  EXPECT_NEAR(
      pairs[0]["difference"],
      (loss("window", 1) - loss("ordinary", 1) + loss("window", 2) - loss("ordinary", 2)) / 2,
      1e-12);
  const std::string log = read_file(place / "run/metrics.jsonl");
  EXPECT_THAT(lines_with(log, {"arm", "step", "val_loss"}), SizeIs(::testing::Ge(24u)));
  EXPECT_THAT(lines_with(log, {"arm", "over", "step", "speed_up"}), ::testing::Not(SizeIs(0)));
  EXPECT_THAT(read_file(place / "run/config.toml"), StartsWith("# nsimplex lm compare"));
}

TEST(LmCompare, ReadsTokenFilesAndWidens) {
  const Compared place;
  std::string numbers;
  for (int i = 0; i < 3000; ++i) numbers += {static_cast<char>(i % 7), 0};
  write_file(place / "train.bin", numbers);
  write_file(place / "val.bin", numbers.substr(0, 400));
  const Finished done = run(place.compare({"--tokens", place / "train.bin", place / "val.bin",
                                           "--vocabulary", "7", "--seeds", "1", "--equal", "tokens",
                                           "--arms", "ordinary:wide,path:light:loss", "--json"}));
  ASSERT_EQ(done.code, 0) << done.err;
  const auto results = lines_with(done.out, {"arm", "parameters"});
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_TRUE(results[1].contains("auxiliary_loss"));
  // A hidden unit more or less is 96 weights.
  EXPECT_NEAR(results[0]["parameters"], results[1]["parameters"], 48);
  EXPECT_LT(results[0]["val_loss"], 1.9);  // log 7 = 1.95: the period is learnt
}

TEST(LmCompare, RefusesWhatMakesNoSense) {
  const Compared place;
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--text", place / "text"});
    return place.compare(std::move(more));
  };
  expect_bad_input(with({"--arms", "ordinary,huge"}),
                   "--arms: expected ordinary, window, topk, path or linear, got 'huge'");
  expect_bad_input(with({"--arms", "topk:fast"}), "expected reuse, light, relu, softmax, loss");
  expect_bad_input(with({"--arms", "window:relu"}), "'relu' is for topk and path alone");
  expect_bad_input(with({"--arms", "topk,topk"}), "'topk' is named twice");
  expect_bad_input(with({"--accumulate", "0"}), "accumulate: expected at least 1, got 0");
  auto first = with({"--arms", "topk"});
  *(std::find(first.begin(), first.end(), "--every") + 1) = "1";
  expect_bad_input(first, "the first layer has none");
  expect_bad_input(with({"--tokens", place / "text"}), "--tokens: expected no --text beside it");
  expect_bad_input(place.compare({}), "--text: expected files");
}

TEST(LmScaling, RefitsWhatWasPublished) {
  const Finished done = run({"lm", "scaling", "--published", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const auto fits = lines_with(done.out, {"source", "alpha"});
  ASSERT_THAT(fits, SizeIs(8));
  // The exponents at the nominal sizes; the printed ones belong to sizes that were not printed, but
  // the gain of one over the other is the same to half a percent.
  const std::vector<double> expected = {0.1311, 0.1558, 0.1160, 0.1264,
                                        0.0832, 0.1002, 0.1588, 0.1702};
  for (size_t i = 0; i < fits.size(); ++i) {
    EXPECT_NEAR(fits[i]["alpha"], expected[i], 1e-4) << fits[i];
    EXPECT_GT(fits[i]["r_squared"], 0.99);
  }
  EXPECT_EQ(fits[3]["task"], "MMLU");
  EXPECT_EQ(fits[3]["printed_alpha"], 0.1364);
}

TEST(LmScaling, SweepsWidths) {
  const Compared place;
  std::vector<std::string> arguments = place.compare(
      {"--text", place / "text", "--widths", "8,16,24", "--out", place.run(), "--json"});
  arguments[1] = "scaling";
  const Finished done = run(arguments);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(lines_with(done.out, {"width", "val_loss"}), SizeIs(6));
  const auto sweeps = lines_with(done.out, {"source", "alpha"});
  ASSERT_THAT(sweeps, SizeIs(10));
  EXPECT_EQ(sweeps[8]["source"], "sweep");
  EXPECT_EQ(read_file(place / "run/metrics.jsonl"), done.out);

  arguments = place.compare({"--text", place / "text", "--widths", "8,15,24"});
  arguments[1] = "scaling";
  const Finished odd = run(arguments);
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.err, HasSubstr("--widths: expected multiples of 2 heads, got 15"));

  // What cannot be trained leaves nothing behind.
  const Finished none = run({"lm", "scaling", "--text", place / "absent", "--out", place / "new"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_FALSE(std::filesystem::exists(place / "new"));
}

}  // namespace
}  // namespace nsimplex::cli::testing
