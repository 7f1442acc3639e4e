#include "io/input_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::io {
namespace {

using test::TemporaryFolder;
using test::write_file;

std::string_view text_of(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(FileBytes, HoldsTheFile) {
  const TemporaryFolder folder;
  const FileBytes file(write_file(folder / "a", std::string("one\0two", 7)));
  EXPECT_EQ(text_of(file), std::string_view("one\0two", 7));
}

TEST(FileBytes, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  EXPECT_TRUE(FileBytes(write_file(folder / "empty", "")).bytes().empty());
}

TEST(FileBytes, WritingIntoItLeavesTheFile) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "abc");
  const FileBytes file(path);
  file.bytes()[0] = 'X';
  EXPECT_EQ(test::read_file(path), "abc");
}

TEST(FileBytes, KeepsTheOldContentsWhenTheFileIsReplaced) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "old");
  const FileBytes file(path);
  std::filesystem::rename(write_file(folder / "b", "newer"), path);
  EXPECT_EQ(text_of(file), "old");
}

TEST(FileBytes, KeepsWhatItReadWhenTheFileIsCutOff) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", std::string(100'000, 'x'));
  const FileBytes file(path);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(text_of(file), std::string(100'000, 'x'));
}

TEST(FileBytes, ReadsSpecialFilesToTheirEnd) {
  EXPECT_THAT(text_of(FileBytes("/proc/self/maps")), testing::HasSubstr("[stack]"));
}

TEST(OpenFile, ReadsPartsAndNoticesAChange) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "0123456789");
  const OpenFile file(path);
  char part[4];
  EXPECT_EQ(file.read(3, part, 4), 4);
  EXPECT_EQ(std::string_view(part, 4), "3456");
  EXPECT_EQ(file.read(8, part, 4), 2);
  file.require_unchanged();
  write_file(path, "0123456780");
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
  EXPECT_THROW(file.require_unchanged(), InputError);
}

TEST(FileBytes, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) -> std::string {
    try {
      FileBytes file(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(folder / "no"),
            "cannot read " + (folder / "no") + ": No such file or directory");
  EXPECT_EQ(message(folder.path()), "cannot read " + folder.path().string() + ": is a folder");
  const std::string path = write_file(folder / "a", "abc");
  EXPECT_EQ(message(path + std::string("\0.csv", 5)),
            "cannot read " + path + "\\x00.csv: a path with a zero byte");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(message(folder / "pipe"),
            "cannot read " + (folder / "pipe") + ": is not a regular file");
}

}  // namespace
}  // namespace nsimplex::io
