#include "io/mapped_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::io {
namespace {

using test::TemporaryFolder;
using test::write_file;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, HoldsTheFile) {
  const TemporaryFolder folder;
  const MappedFile file(write_file(folder / "a", std::string("one\0two", 7)));
  EXPECT_EQ(text_of(file), std::string_view("one\0two", 7));
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MappedFile(write_file(folder / "empty", "")).bytes().empty());
}

TEST(MappedFile, WritingIntoItLeavesTheFile) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "abc");
  const MappedFile file(path);
  file.bytes()[0] = 'X';
  EXPECT_EQ(test::read_file(path), "abc");
}

TEST(MappedFile, KeepsTheOldContentsWhenTheFileIsReplaced) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "old");
  const MappedFile file(path);
  std::filesystem::rename(write_file(folder / "b", "newer"), path);
  EXPECT_EQ(text_of(file), "old");
}

TEST(MappedFile, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) -> std::string {
    try {
      MappedFile file(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(folder / "no"),
            "cannot read " + (folder / "no") + ": No such file or directory");
  EXPECT_EQ(message(folder.path()), "cannot read " + folder.path().string() + ": is a folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(folder / "pipe"),
            "cannot read " + (folder / "pipe") + ": is not a regular file");
}

}  // namespace
}  // namespace nsimplex::io
