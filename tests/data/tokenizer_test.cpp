#include "data/tokenizer.h"

#include <gmock/gmock.h>

#include "support/error.h"

namespace nsimplex::data {
namespace {

TEST(ByteTokenizer, RoundTripOfEveryByte) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text.push_back(static_cast<char>(byte));
  const auto tokenizer = byte_tokenizer();
  const auto tokens = tokenizer->encode(text);
  ASSERT_EQ(tokens.size(), 256u);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(tokens[byte], byte);
  EXPECT_EQ(tokenizer->decode(tokens), text);
  EXPECT_EQ(tokenizer->vocabulary(), 256);
}

TEST(ByteTokenizer, StreamsEveryByteAtOnce) {
  const auto tokenizer = byte_tokenizer();
  StreamDecoder decoder(*tokenizer);
  const std::string text = "a\xc3\xa9\xff";
  for (const int32_t token : tokenizer->encode(text)) {
    EXPECT_EQ(decoder.next(token), std::string(1, static_cast<char>(token)));
  }
  EXPECT_EQ(decoder.finish(), "");
}

TEST(NumberTokenizer, TextIsNumbersBetweenSpaces) {
  const auto tokenizer = number_tokenizer(300);
  EXPECT_EQ(tokenizer->vocabulary(), 300);
  EXPECT_EQ(tokenizer->encode(" 7 299\n0"), (std::vector<int32_t>{7, 299, 0}));
  EXPECT_TRUE(tokenizer->encode(" \n").empty());
  EXPECT_EQ(tokenizer->decode({7, 299, 0}), "7 299 0");
  StreamDecoder decoder(*tokenizer);
  std::string streamed;
  for (const int32_t token : {7, 299, 0}) streamed += decoder.next(token);
  EXPECT_EQ(streamed + decoder.finish(), "7 299 0");
  for (const char* text : {"def f", "1 300", "-1", "3x", "99999999999"}) {
    try {
      tokenizer->encode(text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("its tokenizer is missing: expected token"));
    }
  }
}

TEST(LoadTokenizer, NoModelMeansBytesAndABadOneIsNamed) {
  EXPECT_TRUE(load_tokenizer("", "none")->is_bytes());
  try {
    load_tokenizer("not a model", "some.model");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("some.model"));
  }
}

}  // namespace
}  // namespace nsimplex::data
