#include "train/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <random>

#include "input_error_of.h"
#include "support/error.h"
#include "temporary_folder.h"
#include "train/inference.h"
#include "train/optimizer.h"
#include "train/small_run.h"
#include "train/stored_state.h"

namespace nsimplex::training {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;

Checkpoint example() {
  const data::Tokens tokens = test::small_tokens();
  Checkpoint checkpoint = test::small_start(tokens);
  checkpoint.text.sources = {"a b", "-"};
  checkpoint.progress = {7, 42, 0.1 + 0.2, 3, 0.7};
  checkpoint.tokenizer = std::string("bytes\0of a model", 16);
  return checkpoint;
}

void expect_equal(const std::vector<io::NamedTensor>& a, const std::vector<io::NamedTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  const io::Safetensors lookup{b, {}};
  for (const io::NamedTensor& each : a) {
    ASSERT_NE(lookup.find(each.name), nullptr) << each.name;
    EXPECT_TRUE(at::equal(each.tensor, *lookup.find(each.name))) << each.name;
  }
}

TEST(Checkpoint, RoundTrip) {
  const TemporaryFolder folder;
  const Checkpoint written = example();
  write_checkpoint(folder.path(), written);
  const Checkpoint read = read_checkpoint(folder / kCheckpointFile);
  EXPECT_EQ(to_map(read.model), to_map(written.model));
  EXPECT_EQ(nlohmann::json(read.training), nlohmann::json(written.training));
  EXPECT_EQ(read.text.sources, written.text.sources);
  EXPECT_EQ(read.text.fingerprint, written.text.fingerprint);
  EXPECT_EQ(read.progress.step, 7);
  EXPECT_EQ(read.progress.position, 42);
  EXPECT_EQ(read.progress.loss_sum, 0.1 + 0.2);
  EXPECT_EQ(read.progress.loss_steps, 3);
  EXPECT_EQ(read.progress.auxiliary_sum, 0.7);
  EXPECT_EQ(read.tokenizer, written.tokenizer);
  EXPECT_TRUE(at::equal(read.generator, written.generator));
  expect_equal(read.weights, written.weights);
  expect_equal(read.optimizer, written.optimizer);
}

TEST(Checkpoint, ModelFileHoldsThePlainWeights) {
  const TemporaryFolder folder;
  const Checkpoint written = example();
  write_checkpoint(folder.path(), written);
  expect_equal(io::read_safetensors(folder / kModelFile).tensors, written.weights);
  for (const std::string& path :
       {folder.path().string(), folder / kCheckpointFile, folder / kModelFile}) {
    const SavedModel model = read_model(path);
    EXPECT_EQ(to_map(model.options), to_map(written.model)) << path;
    EXPECT_EQ(model.step, 7) << path;
    EXPECT_EQ(model.tokenizer, written.tokenizer) << path;
    expect_equal(model.weights, written.weights);
  }
}

TEST(Checkpoint, OfTokenFilesSaysThatItHasNoTokenizer) {
  const TemporaryFolder folder;
  Checkpoint written = example();
  written.tokenizer.clear();
  for (const bool without : {true, false}) {
    written.without_tokenizer = without;
    written.text.token_files = {"train.bin"};
    written.text.validation_files = {"val.bin"};
    write_checkpoint(folder.path(), written);
    const Checkpoint read = read_checkpoint(folder / kCheckpointFile);
    EXPECT_EQ(read.without_tokenizer, without);
    EXPECT_EQ(read.text.token_files, written.text.token_files);
    EXPECT_EQ(read.text.validation_files, written.text.validation_files);
    EXPECT_EQ(read_model(folder.path()).without_tokenizer, without);
    EXPECT_EQ(read_model(folder / kModelFile).without_tokenizer, without);
  }
  written.text.token_files.clear();
  write_checkpoint(folder.path(), written);
  EXPECT_THAT(read_file(folder / kCheckpointFile), testing::Not(HasSubstr("token_files")));
}

std::string error_of(const std::string& path) {
  try {
    read_checkpoint(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// A checkpoint whose header says something else, with checksums that fit.
std::string changed_checkpoint(const TemporaryFolder& folder, const std::string& from,
                               const std::string& to) {
  io::Safetensors file = io::read_safetensors(folder / kCheckpointFile);
  for (auto& [key, text] : file.metadata) {
    if (const size_t at = text.find(from); at != std::string::npos)
      text.replace(at, from.size(), to);
  }
  io::write_safetensors(folder / "changed", file);
  return folder / "changed";
}

TEST(Checkpoint, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), example());
  const std::string whole = read_file(folder / kCheckpointFile);
  const auto changed = [&](const std::string& from, const std::string& to) {
    return error_of(changed_checkpoint(folder, from, to));
  };
  EXPECT_THAT(error_of(folder / "no"), HasSubstr("no: No such file or directory"));
  EXPECT_THAT(error_of(write_file(folder / "cut", whole.substr(0, whole.size() - 1))),
              HasSubstr("truncated"));
  EXPECT_THAT(error_of(folder / kModelFile), HasSubstr("not a checkpoint of this program"));
  EXPECT_THAT(changed("nsimplex checkpoint", "another checkpoint"), HasSubstr("not a checkpoint"));
  EXPECT_THAT(changed("nsimplex checkpoint 2", "nsimplex checkpoint 9"),
              HasSubstr("its format 'nsimplex checkpoint 9' is not known"));
  EXPECT_THAT(changed(R"("progress")", R"("prograss")"),
              HasSubstr("the header's state has an unknown field"));
  const std::vector<std::array<std::string, 3>> changes = {
      {R"("step":7)", R"("step":7.0)", "state.progress.step is damaged"},
      {R"("step":7)", R"("step":true)", "must be number, but is boolean"},
      {R"("step":7)", R"("step":18446744073709551609)", "state.progress.step is damaged"},
      {R"("step":7)", R"("step":13)", "expected at most 12, got 13"},
      {R"("position":42)", R"("position":-1)", "state.progress.position: expected"},
      {R"("loss_steps":3)", R"("loss_steps":8)", "state.progress.loss_steps: expected"},
      {R"("batch":3)", R"("batch":3.5)", "state.training.batch is damaged"},
      {R"("batch":3)", R"("batch":0)", "--batch: expected"},
      {R"("batch":3)", R"("batch":3,"other":1)", "has an unknown field"},
      {R"("heads":"2")", R"("heads":"0")", "heads: expected at least 1, got 0"},
      {R"("topk":)", R"("other":)", "its option topk is missing"}};
  for (const auto& [from, to, says] : changes) EXPECT_THAT(changed(from, to), HasSubstr(says));
  const auto with = [&](const std::string& name, const at::Tensor& tensor) {
    io::Safetensors other = io::read_safetensors(folder / kCheckpointFile);
    std::erase_if(other.tensors, [&](const io::NamedTensor& each) { return each.name == name; });
    other.tensors.push_back({name, tensor});
    io::write_safetensors(folder / "changed", other);
    return error_of(folder / "changed");
  };
  EXPECT_THAT(with("x", at::zeros({2})), HasSubstr("tensor \"x\" belongs to no such training"));
  EXPECT_THAT(with("tokenizer", at::zeros({2})), HasSubstr("tokenizer: expected a list of Byte"));
  EXPECT_THAT(with("optimizer.steps", at::full({}, -1.0)), HasSubstr("holds negative numbers"));
  EXPECT_THAT(with("optimizer.mean.norm.weight", at::full({16}, std::nan(""))),
              HasSubstr("tensor \"optimizer.mean.norm.weight\" holds numbers that are not finite"));
  io::Safetensors file = io::read_safetensors(folder / kCheckpointFile);
  std::erase_if(file.tensors, [](const io::NamedTensor& each) { return each.name == "generator"; });
  io::write_safetensors(folder / "changed", file);
  EXPECT_THAT(error_of(folder / "changed"), HasSubstr("it has no tensor generator"));
}

// The header may ask for a model of any size. Nothing is built that the weights are not there for.
TEST(Checkpoint, AsksForNoMoreThanItHolds) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), example());
  const auto changed = [&](const std::string& option, const std::string& from,
                           const std::string& to) {
    const auto field = [&](const std::string& value) {
      return '"' + option + "\":\"" + value + '"';
    };
    return error_of(changed_checkpoint(folder, field(from), field(to)));
  };
  EXPECT_EQ(changed("layers", "2", "2"), "no error");
  EXPECT_THAT(changed("layers", "2", "60000"),
              HasSubstr("option layers does not belong to its weights"));
  EXPECT_THAT(changed("layers", "2", "4611686018427387904"),
              HasSubstr("layers: expected at most 65536, got 4611686018427387904"));
  EXPECT_THAT(changed("vocabulary", "256", "1000000000"), HasSubstr("option vocabulary"));
  EXPECT_THAT(changed("dim", "16", "1000000"), HasSubstr("option dim"));
  EXPECT_THAT(changed("heads", "2", "1000000"), HasSubstr("option heads"));
  EXPECT_THAT(changed("mlp_ratio", "0", "1e12"), HasSubstr("option mlp_ratio"));
}

TEST(Checkpoint, AFlippedBitAnywhereIsRefused) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), test::small_start(test::small_tokens()));
  std::mt19937 random(2);
  for (const char* name : {kCheckpointFile, kModelFile}) {
    const std::string whole = read_file(folder / name);
    for (int trial = 0; trial < 400; ++trial) {
      // Half of the places are in the header, which is the smaller part.
      const size_t place = random() % (trial % 2 == 0 ? whole.size() : size_t{2000});
      std::string bytes = whole;
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
      const std::string path = write_file(folder / "flipped", bytes);
      EXPECT_NE(test::input_error_of([&] { read_model(path); }), "nothing was thrown")
          << name << " byte " << place;
    }
  }
  // The one that is named is the one that was changed: the last bytes are those of the last tensor.
  std::string bytes = read_file(folder / kModelFile);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const std::string last = io::read_safetensors(folder / kModelFile).tensors.back().name;
  EXPECT_THAT(test::input_error_of([&] { read_model(write_file(folder / "flipped", bytes)); }),
              HasSubstr("tensor \"" + last + "\" does not fit its checksum"));
}

// Files that version 0.1 wrote, without checksums. They are read for ever.
TEST(Checkpoint, OfTheFirstVersionIsReadAndContinued) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  std::filesystem::copy(RUN_0_1, run, std::filesystem::copy_options::recursive);
  for (const std::string& path : {run, run + "/" + kModelFile}) {
    const SavedModel saved = read_model(path);
    EXPECT_EQ(saved.step, 6);
    EXPECT_EQ(saved.options.dim, 8);
    LanguageModel model(saved.options);
    copy_into(named_parameters(*model), saved.weights, path);
    const auto tokenizer = data::load_tokenizer(saved.tokenizer, path);
    const data::Tokens tokens(data::open_texts({run + "/text.txt"}), *tokenizer);
    // As `nsimplex lm eval` of that version printed it.
    EXPECT_NEAR(evaluate(model, tokens, data::split(tokens).validation, 8).loss, 5.5426465202780335,
                1e-5);
  }
  Checkpoint start = read_checkpoint(run + "/" + kCheckpointFile);
  start.training.steps = 8;
  const data::Tokens tokens(data::open_texts({run + "/text.txt"}), *data::byte_tokenizer());
  EXPECT_EQ(Trainer(run, start, tokens).run(), TrainingEnd::finished);
  EXPECT_EQ(read_checkpoint(run + "/" + kCheckpointFile).progress.step, 8);
}

TEST(Checkpoint, CorruptionEndsInOneErrorOrARun) {
  const TemporaryFolder folder;
  const data::Tokens tokens = test::small_tokens();
  write_checkpoint(folder.path(), test::small_start(tokens));
  const std::string whole = read_file(folder / kCheckpointFile);
  const size_t header =
      static_cast<unsigned char>(whole[0]) + 256u * static_cast<unsigned char>(whole[1]);
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 2; ++change)
      bytes[8 + random() % header] = "0123456789\"{}[],:x"[random() % 18];
    write_file(folder / kCheckpointFile, bytes);
    try {
      Trainer(folder.path(), read_checkpoint(folder / kCheckpointFile), tokens);
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

// Torch takes any place of the next number up to the end, however many numbers are left.
TEST(SetState, OfAGeneratorNamesNoNumberBeyondItsEnd) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::rand({100}, generator);
  const at::Tensor own = generator.get_state();
  set_state(generator, own, "generator");
  EXPECT_TRUE(generator.get_state().equal(own));
  const auto error = [&](const at::Tensor& state) {
    return test::input_error_of([&] { set_state(generator, state, "generator"); });
  };
  for (const int64_t place : {8, 16}) {  // how many numbers are left; the next one
    at::Tensor other = own.clone();
    other.narrow(0, place, 2).copy_(at::tensor({0x70, 0x02}, at::kByte));
    EXPECT_THAT(error(other), HasSubstr("tensor generator is no state")) << place;
  }
  EXPECT_THAT(error(own.narrow(0, 0, 9)), HasSubstr("is no state of a generator"));
  EXPECT_THAT(error(at::zeros_like(own)), HasSubstr("is no state of a generator"));
  EXPECT_THAT(error(own.to(at::kInt)), HasSubstr("is no state of a generator"));
}

TEST(CopyInto, NamesWhatDoesNotFit) {
  LanguageModel small(test::small_model());
  LanguageModelOptions wide = test::small_model();
  wide.dim = 32;
  const auto error = [&](const std::vector<io::NamedTensor>& values) -> std::string {
    try {
      copy_into(named_parameters(*small), values, "FILE");
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error(named_parameters(*small)), "");
  EXPECT_THAT(error(named_parameters(*LanguageModel(wide))), HasSubstr("cannot read FILE: tensor"));
  EXPECT_THAT(error({}), HasSubstr("it has no tensor"));
  auto renamed = named_parameters(*small);
  renamed[0].name = "other";
  EXPECT_THAT(error(renamed), HasSubstr("it has no tensor"));
  auto more = named_parameters(*small);
  more.push_back({"other", at::zeros({1})});
  EXPECT_THAT(error(more), HasSubstr("its tensor \"other\" belongs to no such training"));
  auto halves = named_parameters(*small);
  halves[0].tensor = halves[0].tensor.to(at::kHalf);
  EXPECT_THAT(error(halves), HasSubstr("expected Float, got Half"));
}

}  // namespace
}  // namespace nsimplex::training
