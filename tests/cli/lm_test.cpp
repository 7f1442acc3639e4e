// `nsimplex lm train | eval | sample` as a user meets them: files, exit codes, one line for what is
// wrong.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "cli/lm_place.h"
#include "cli/process.h"

namespace nsimplex::cli::testing {
namespace {

using test::read_file;
using test::write_file;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(LmTrain, WritesARunThatCanBeEvaluatedAndSampled) {
  const Place place;
  const Finished trained = run(place.train({"--out", place.run(), "--json", "--eval-every", "10"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto lines = lines_of(trained.out);
  ASSERT_THAT(lines, SizeIs(2));
  const auto last = nlohmann::ordered_json::parse(lines.back());
  std::vector<std::string> fields;
  for (const auto& [name, value] : last.items()) fields.push_back(name);
  EXPECT_THAT(fields, ::testing::ElementsAre("kind", "step", "train_loss", "val_loss",
                                             "tokens_per_second"));
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
                   "sparse: expected one of window, topk, path, linear");
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

TEST(LmTrain, OptionsOfTheSimplicialLayersTrainResumeAndSample) {
  const Place place;
  const std::vector<std::vector<std::string>> kinds = {
      {"--form", "determinant", "--rotary", "--normalizer", "softmax_sink"},
      {"--normalizer", "softmax_sink", "--augment", "--dropout", "0.3"},
      {"--normalizer", "softmax_sink", "--sparse", "topk", "--topk", "4"}};
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(kind);
    const auto train = [&](const std::string& name, const std::string& often) {
      std::vector<std::string> more = {"--out", place.run(name), "--json", "--checkpoint-every",
                                       often};
      more.insert(more.end(), kinds[kind].begin(), kinds[kind].end());
      std::vector<std::string> all = place.train(more, "200");
      *std::next(std::find(all.begin(), all.end(), "--width")) = "24";
      return all;
    };
    const std::string whole = fmt::format("whole{}", kind), cut = fmt::format("cut{}", kind);
    const Finished trained = run(train(whole, "0"));
    ASSERT_EQ(trained.code, 0) << trained.err;
    {
      Process process(train(cut, "1"));
      wait_until([&] { return std::filesystem::exists(place / (cut + "/metrics.jsonl")); });
      process.send(SIGINT);
      process.wait();
    }
    const Finished resumed = run({"lm", "train", "--resume", place.run(cut)});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(read_file(place / (cut + "/model.safetensors")) ==
                read_file(place / (whole + "/model.safetensors")));
    const Finished sampled = run({"lm", "sample", place.run(whole), "--tokens", "40", "--json"});
    ASSERT_EQ(sampled.code, 0) << sampled.err;
    EXPECT_EQ(nlohmann::json::parse(sampled.out)["tokens"], 40);
    const Finished evaluated = run({"lm", "eval", place.run(whole), "--json", "--threads", "1"});
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    const auto last = nlohmann::json::parse(lines_of(trained.out).back());
    EXPECT_NEAR(nlohmann::json::parse(evaluated.out)["val_loss"], last["val_loss"], 1e-5);
  }
}

TEST(LmTrain, ReadsStandardInputAndFoldersAlike) {
  const Place place;
  write_file(place / "folder/a/part.txt", text());
  write_file(place / "folder/other.md", "not this");
  const std::string shared =
      " --layers 1 --every 0 --heads 2 --width 16 --context 16 --batch 2 --steps 3 --threads 1 "
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

TEST(LmTrain, MakesARunFolderOfItsOwnIfNoneIsNamed) {
  const Place place;
  const auto train = [&](const std::vector<std::string>& more) {
    const std::string folder = place / ".";
    return run_after([&] { std::filesystem::current_path(folder); }, place.train(more, "2"));
  };
  EXPECT_EQ(train({"--topk", "3"}).code, 2);
  EXPECT_FALSE(std::filesystem::exists(place / "runs"));  // nothing is left of a refused run
  const Finished first = train({}), second = train({"--json"});
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(first.err, ContainsRegex("no --out was given; the run goes to runs/text-[0-9]{4}-"));
  const std::string named = nlohmann::json::parse(lines_of(second.out).front())["out"];
  EXPECT_THAT(named, ContainsRegex("^runs/text-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{6}(-2)?$"));
  size_t runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place / "runs")) {
    ++runs;
    EXPECT_TRUE(std::filesystem::exists(entry.path() / "model.safetensors"));
    EXPECT_THAT(read_file(entry.path() / "config.toml"), Not(HasSubstr("\nout=")));
  }
  EXPECT_EQ(runs, 2U);
}

TEST(LmTrain, MakesTheFolderOfThatNameWhateverItHolds) {
  const Place place;
  const std::string folder = place / "a\tb";
  const Finished trained = run(place.train({"--out", folder}, "2"));
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(std::filesystem::exists(folder + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(place / "a\\tb"));
}

TEST(LmTrain, CtrlCSavesAndResumeContinuesBitForBit) {
  const Place place;
  const std::string steps = "400";
  ASSERT_EQ(run(place.train({"--out", place.run("whole")}, steps)).code, 0);
  Finished stopped;
  {
    Process process(place.train({"--out", place.run()}, steps));
    wait_until([&] { return std::filesystem::exists(place / "run/metrics.jsonl"); });
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
    wait_until([&] { return std::filesystem::exists(place / "run/checkpoint.safetensors"); });
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
  expect_bad_input(train({"--kv-heads", "3"}), "--kv-heads: expected a divisor of heads 4");
  expect_bad_input(train({"--window", "4,0"}), "window");
  expect_bad_input(train({"--window", "4,5,6"}), "window");
  expect_bad_input(train({"--scale", "large"}), "--scale: expected one of standard, unit");
  expect_bad_input(train({"--form", "dot"}),
                   "--form: expected one of product, determinant, got 'dot'");
  expect_bad_input(train({"--rotary"}), "rotary: expected form determinant with order 2");
  expect_bad_input(train({"--form", "determinant"}), "--head-width: expected a multiple of");
  expect_bad_input(train({"--augment", "--sparse", "topk"}),
                   "--augment: expected --sparse window with it, got topk");
  expect_bad_input(train({"--dropout", "1"}), "dropout: expected a share in [0, 1), got 1");
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
                   "--top-p: expected");
  expect_bad_input({"lm", "sample", place.run(), "--temperature", "-1"}, "--temperature: expected");
  expect_bad_input({"lm", "sample", place.run(), "--tokens", "1", "--tokens", "2"},
                   "--tokens: expected once, got it 2 times");
  expect_bad_input({"lm", "eval", place / "run/model.safetensors"}, "--text: expected");
}

std::string token_file(int count, int vocabulary) {
  std::string numbers;
  for (int i = 0; i < count; ++i) {
    const int token = i * i % vocabulary;
    numbers += {static_cast<char>(token % 256), static_cast<char>(token / 256)};
  }
  return numbers;
}

// The options of place.train(), with token files in place of the text.
std::vector<std::string> train_on_tokens(const Place& place, const std::vector<std::string>& more,
                                         const std::string& steps = "20") {
  std::vector<std::string> all = place.train({}, steps);
  const auto text = std::find(all.begin(), all.end(), "--text");
  all.erase(text, text + 2);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(LmTrain, TokenFilesTrainResumeEvaluateAndSample) {
  const Place place;
  const std::string train = write_file(place / "train.bin", token_file(3000, 300)),
                    val = write_file(place / "val.bin", token_file(400, 300));
  const auto start = [&](const std::string& name, const std::string& steps) {
    return train_on_tokens(place,
                           {"--out", place.run(name), "--tokens", train, "--validation-tokens", val,
                            "--vocabulary", "300", "--checkpoint-every", "5"},
                           steps);
  };
  const Finished trained = run(start("run", "20"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("text    3000 tokens for training, 400 for validation\n"));

  // Two files alone are the same, and so is a folder whose checkpoint is resumed.
  const Finished two = run(train_on_tokens(
      place, {"--out", place.run("two"), "--tokens", train, val, "--vocabulary", "300"}));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(read_file(place / "run/model.safetensors"), read_file(place / "two/model.safetensors"));
  const Finished again = run({"lm", "train", "--resume", place.run(), "--json"});
  EXPECT_EQ(again.code, 0) << again.err;

  for (const std::string name : {"run", "run/model.safetensors"}) {
    const Finished sampled =
        run({"lm", "sample", place / name, "--prompt", "7 299", "--tokens", "5", "--threads", "1"});
    ASSERT_EQ(sampled.code, 0) << sampled.err;
    EXPECT_THAT(sampled.out, ::testing::MatchesRegex("7 299( [0-9]+)+\n"));
    expect_bad_input({"lm", "sample", place / name, "--prompt", "def"},
                     "its tokenizer is missing: expected token numbers from 0 to 299, got \"def\"");
  }
  const Finished own = run({"lm", "eval", place.run(), "--json", "--threads", "1"}),
                 named = run({"lm", "eval", place / "run/model.safetensors", "--tokens", val,
                              "--part", "all", "--json", "--threads", "1"});
  ASSERT_EQ(own.code, 0) << own.err;
  ASSERT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(nlohmann::json::parse(own.out)["val_loss"],
            nlohmann::json::parse(named.out)["val_loss"]);
  expect_bad_input({"lm", "eval", place.run(), "--text", place / "text"}, "tokenizer is missing");

  std::string changed = token_file(3000, 300);
  changed[2000] ^= 1;
  write_file(train, changed);
  expect_bad_input({"lm", "train", "--resume", place.run()},
                   "the text is not the one this run began with");
}

TEST(LmTrain, TokenFilesAreChecked) {
  const Place place;
  const auto refused = [&](std::vector<std::string> more, const std::string& reason) {
    more.insert(more.end(), {"--out", place.run()});
    expect_bad_input(train_on_tokens(place, more), reason);
  };
  const std::string good = write_file(place / "good.bin", token_file(3000, 300)),
                    odd = write_file(place / "odd.bin", "abc"),
                    empty = write_file(place / "empty.bin", "");
  refused({"--tokens", good, "--vocabulary", "256"}, "good.bin: expected tokens below 256, got 2");
  refused({"--tokens", odd}, "odd.bin: expected uint16 token numbers, got 3 bytes");
  refused({"--tokens", empty}, "empty.bin: expected uint16 token numbers, got 0 bytes");
  refused({"--tokens", place / "none.bin"}, "none.bin: No such file");
  refused({"--tokens", good, good, good}, "--tokens: expected a file for training and one for");
  refused({"--validation-tokens", good}, "--validation-tokens: expected --tokens with it");
  refused({"--tokens", good, "--text", place / "text"}, "--tokens: expected no --text with it");
  refused({"--text", place / "text", "--vocabulary", "300"},
          "--vocabulary: expected --tokens with it, and no --tokenizer");
  refused({"--tokens", good, "--vocabulary", "-1"}, "--vocabulary");
}

TEST(LmSample, AClosedPipeIsQuiet) {
  const Place place;
  ASSERT_EQ(run(place.train({"--out", place.run(), "--json"})).code, 0);
  const std::string error = place / "error";
  [[maybe_unused]] const int status =
      std::system((std::string(NSIMPLEX_EXECUTABLE) + " lm sample " + place.run() +
                   " --tokens 2000 --threads 1 2>" + error + " | head -c 20 >/dev/null")
                      .c_str());
  EXPECT_EQ(read_file(error), "");
}

}  // namespace
}  // namespace nsimplex::cli::testing
