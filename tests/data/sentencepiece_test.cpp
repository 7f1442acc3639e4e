#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

#include "data/tokens.h"
#include "error_of.h"
#include "input_error_of.h"
#include "support/error.h"
#include "support/executable.h"
#include "temporary_folder.h"

namespace nsimplex::data {
namespace {

// A model of 300 pieces, byte fallback included, made from a few sentences.
const std::string& model() {
  static const std::string bytes = [] {
    const test::TemporaryFolder folder;
    std::string text;
    for (int i = 0; i < 50; ++i) {
      text += "the cat sat on the mat and the dog sat on the log\n";
      text += "a quick brown fox jumps over the lazy dog number " + std::to_string(i) + "\n";
    }
    test::write_file(folder / "text", text);
    const std::string command = (executable_folder() / TRAIN_SENTENCEPIECE).string() + " " +
                                (folder / "text") + " " + (folder / "m");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return test::read_file(folder / "m.model");
  }();
  return bytes;
}

TEST(SentencePiece, RoundTrip) {
  const auto tokenizer = load_tokenizer(model(), "m.model");
  const std::string text = "the quick dog sat on a \xe2\x82\xac mat";
  const auto tokens = tokenizer->encode(text);
  EXPECT_LT(tokens.size(), text.size());
  for (const int32_t token : tokens) EXPECT_LT(token, tokenizer->vocabulary());
  EXPECT_EQ(tokenizer->decode(tokens), text);
  EXPECT_EQ(tokenizer->model(), model());
}

// What is streamed adds up to the text, and no character is shown in parts.
TEST(SentencePiece, StreamsWholeCharacters) {
  const auto tokenizer = load_tokenizer(model(), "m.model");
  const std::string text = "the \xe2\x82\xac mat \xf0\x9f\x90\x88 sat";  // both by byte fallback
  StreamDecoder decoder(*tokenizer);
  std::string streamed;
  for (const int32_t token : tokenizer->encode(text)) {
    const std::string added = decoder.next(token);
    EXPECT_EQ(added.find("\xef\xbf\xbd"), std::string::npos);
    streamed += added;
  }
  EXPECT_EQ(streamed + decoder.finish(), text);
}

TEST(SentencePiece, TextsAreSeparated) {
  const auto tokenizer = load_tokenizer(model(), "m.model");
  const std::string cat = "the cat", dog = "the dog";
  const auto text = [](const std::string& s) {
    return Text{"", {reinterpret_cast<const uint8_t*>(s.data()), s.size()}, nullptr};
  };
  const Tokens tokens({text(cat), text(dog)}, *tokenizer);
  std::vector<int64_t> all(static_cast<size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), all.data());
  std::vector<int64_t> expected;
  for (const int32_t token : tokenizer->encode(cat)) expected.push_back(token);
  expected.push_back(tokenizer->separator());
  for (const int32_t token : tokenizer->encode(dog)) expected.push_back(token);
  EXPECT_EQ(all, expected);
}

// A model that somebody has changed is refused or used; the process survives both.
TEST(SentencePiece, NoChangedModelEndsTheProcess) {
  std::mt19937 random(1);
  int refused = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    std::string changed = model();
    for (int change = 0; change <= trial % 4; ++change) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    if (trial % 10 == 0) changed.resize(random() % changed.size());
    try {
      const auto tokenizer = load_tokenizer(changed, "m.model");
      tokenizer->decode(
          tokenizer->encode("the \xef\xbd\x83\xef\xbd\x81\xef\xbd\x94 \xe2\x82\xac mat 1\xc2\xbd"));
    } catch (const std::runtime_error&) {  // an InputError, or what the library says of a text
      ++refused;
    }
  }
  EXPECT_GT(refused, 150);
}

}  // namespace
}  // namespace nsimplex::data
