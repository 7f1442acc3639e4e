#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "data/tokens.h"
#include "input_error_of.h"
#include "temporary_folder.h"

namespace nsimplex::data {
namespace {

using test::TemporaryFolder;
using test::write_file;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Number>
std::string file_of(const TemporaryFolder& folder, const std::string& name,
                    const std::vector<Number>& numbers) {
  write_file(folder / name,
             {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)});
  return folder / name;
}

std::vector<int64_t> read(const Tokens& tokens, int64_t begin, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  tokens.copy(begin, count, numbers.data());
  return numbers;
}

std::string error_of(const std::vector<std::string>& paths, int64_t vocabulary) {
  return test::input_error_of([&] { Tokens::of_files(paths, {}, vocabulary); });
}

TEST(TokenFiles, AreReadOneAfterTheOther) {
  const TemporaryFolder folder;
  const Tokens tokens = Tokens::of_files(
      {file_of<uint16_t>(folder, "a", {7, 50256, 0}), file_of<uint16_t>(folder, "b", {65535})}, {},
      65536);
  ASSERT_EQ(tokens.size(), 4);
  EXPECT_THAT(read(tokens, 0, 4), ElementsAre(7, 50256, 0, 65535));
  EXPECT_THAT(read(tokens, 2, 2), ElementsAre(0, 65535));
  EXPECT_EQ(split(tokens).validation.size(), 0);  // a tenth of four
}

TEST(TokenFiles, OfALargeVocabularyHaveFourBytes) {
  const TemporaryFolder folder;
  std::vector<uint32_t> numbers(600000);  // more than a block
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint32_t>(i % 70000);
  const std::string path = file_of(folder, "a", numbers);
  const Tokens tokens = Tokens::of_files({path}, {}, 70000);
  ASSERT_EQ(tokens.size(), 600000);
  EXPECT_THAT(read(tokens, 69998, 3), ElementsAre(69998, 69999, 0));
  EXPECT_THAT(error_of({path}, 69999),
              HasSubstr("expected tokens below 69999, got 69999 at token 69999"));
  write_file(folder / "half", "abcdef");
  EXPECT_THAT(error_of({folder / "half"}, 70000),
              HasSubstr("expected uint32 token numbers, got 6 bytes"));
}

TEST(TokenFiles, ForValidationAreTheValidationSplit) {
  const TemporaryFolder folder;
  const std::string a = file_of<uint16_t>(folder, "a", {1, 2, 3}),
                    b = file_of<uint16_t>(folder, "b", {4, 5});
  const Tokens tokens = Tokens::of_files({a}, {b}, 6), together = Tokens::of_files({a, b}, {}, 6);
  const Split parts = split(tokens);
  EXPECT_EQ(parts.train.size(), 3);
  EXPECT_EQ(parts.validation.begin, 3);
  EXPECT_EQ(parts.validation.end, 5);
  EXPECT_EQ(read(tokens, 0, 5), read(together, 0, 5));
  // A run that goes on must not learn from what it validates on.
  EXPECT_NE(tokens.fingerprint(), together.fingerprint());
  EXPECT_EQ(tokens.fingerprint(), Tokens::of_files({a}, {b}, 60).fingerprint());
}

TEST(TokenFiles, AreRefusedIfTheyAreNone) {
  const TemporaryFolder folder;
  write_file(folder / "odd", "abc");
  write_file(folder / "empty", "");
  EXPECT_THAT(error_of({folder / "odd"}, 65536), HasSubstr("expected uint16 token numbers, got 3"));
  EXPECT_THAT(error_of({folder / "empty"}, 65536), HasSubstr("got 0 bytes"));
  EXPECT_THAT(error_of({folder / "none"}, 65536), HasSubstr("none"));
  EXPECT_THAT(error_of({file_of<uint16_t>(folder, "a", {1, 2, 300, 4})}, 256),
              HasSubstr("expected tokens below 256, got 300 at token 2"));
}

TEST(TokenFiles, ThatChangeAreNamedInsteadOfRead) {
  const TemporaryFolder folder;
  const std::string path = file_of<uint16_t>(folder, "a", {1, 2, 3});
  for (const std::vector<uint16_t>& others : {std::vector<uint16_t>{1, 2, 3, 4}, {7, 8, 9, 10}}) {
    const Tokens tokens = Tokens::of_files({path}, {}, 65536);
    file_of(folder, "a", others);
    // The clocks of file systems may be coarse.
    const auto now = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path, now + std::chrono::hours(others[0]));
    const std::string expected = "cannot read " + path + ": it was changed while it was in use";
    EXPECT_EQ(test::input_error_of([&] { read(tokens, 0, 2); }), expected);
    EXPECT_EQ(test::input_error_of([&] { tokens.fingerprint(); }), expected);
  }
}

}  // namespace
}  // namespace nsimplex::data
