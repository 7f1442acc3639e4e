#include "training/checkpoint.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <random>

#include "support/error.h"
#include "temporary_folder.h"
#include "training/parameters.h"
#include "training/small_run.h"

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

std::string error_of(const std::string& path) {
  try {
    read_checkpoint(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Checkpoint, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), example());
  const std::string whole = read_file(folder / kCheckpointFile);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = whole;
    EXPECT_EQ(from.size(), to.size());
    copy.replace(copy.find(from), from.size(), to);
    return error_of(write_file(folder / "changed", copy));
  };
  EXPECT_THAT(error_of(folder / "no"), HasSubstr("no: No such file or directory"));
  EXPECT_THAT(error_of(write_file(folder / "cut", whole.substr(0, whole.size() - 1))),
              HasSubstr("truncated"));
  EXPECT_THAT(error_of(folder / kModelFile), HasSubstr("not a checkpoint of this program"));
  EXPECT_THAT(changed("nsimplex checkpoint 1", "nsimplex checkpoint 9"),
              HasSubstr("not a checkpoint"));
  EXPECT_THAT(changed(R"(\"progress\")", R"(\"prograss\")"),
              HasSubstr("the header's state is damaged"));
  EXPECT_THAT(changed(R"(\"steps\":12)", R"(\"steps\":"")"), HasSubstr("is not JSON"));
  EXPECT_THAT(changed(R"("generator")", R"("generatos")"), HasSubstr("no generator state"));
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
  EXPECT_THAT(error({}), HasSubstr("tensors, got 0"));
  auto renamed = named_parameters(*small);
  renamed[0].name = "other";
  EXPECT_THAT(error(renamed), HasSubstr("it has no tensor"));
}

}  // namespace
}  // namespace nsimplex::training
