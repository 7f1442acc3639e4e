#include <gmock/gmock.h>

#include "data/tokens.h"
#include "input_error_of.h"
#include "temporary_folder.h"

namespace nsimplex::data {
namespace {

using test::TemporaryFolder;
using test::write_file;
using testing::ElementsAre;
using testing::HasSubstr;

std::string file_of(const TemporaryFolder& folder, const std::string& name,
                    const std::vector<uint16_t>& numbers) {
  write_file(folder / name, {reinterpret_cast<const char*>(numbers.data()), numbers.size() * 2});
  return folder / name;
}

std::string error_of(const std::vector<std::string>& paths, int64_t vocabulary) {
  return test::input_error_of([&] { Tokens::of_uint16_files(paths, vocabulary); });
}

TEST(Uint16Files, AreReadOneAfterTheOther) {
  const TemporaryFolder folder;
  const Tokens tokens = Tokens::of_uint16_files(
      {file_of(folder, "a", {7, 50256, 0}), file_of(folder, "b", {65535})}, 65536);
  ASSERT_EQ(tokens.size(), 4);
  std::vector<int64_t> read(4);
  tokens.copy(0, 4, read.data());
  EXPECT_THAT(read, ElementsAre(7, 50256, 0, 65535));
  tokens.copy(2, 2, read.data());
  EXPECT_THAT(read, ElementsAre(0, 65535, 0, 65535));
}

TEST(Uint16Files, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  write_file(folder / "odd", "abc");
  write_file(folder / "empty", "");
  EXPECT_THAT(error_of({folder / "odd"}, 65536), HasSubstr("expected uint16 token numbers, got 3"));
  EXPECT_THAT(error_of({folder / "empty"}, 65536), HasSubstr("got 0 bytes"));
  EXPECT_THAT(error_of({folder / "none"}, 65536), HasSubstr("none"));
  EXPECT_THAT(error_of({file_of(folder, "a", {1, 2, 300, 4})}, 256),
              HasSubstr("expected tokens below 256, got 300 at token 2"));
}

}  // namespace
}  // namespace nsimplex::data
