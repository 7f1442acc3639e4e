#include "io/output_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "input_error_of.h"
#include "temporary_folder.h"

namespace nsimplex::io {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::HasSubstr;

TEST(LineFile, GrowsBehindWhatIsKept) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "lines", "one\ntwo\nhal");
  {
    LineFile file(path, 8);
    file.append("three");
    EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
    file.sync();
  }
  LineFile(path, 0).append("new");
  EXPECT_EQ(read_file(path), "new\n");
}

TEST(LineFile, RefusesLinksAndWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string victim = write_file(folder / "victim", "mine");
  std::filesystem::create_symlink(victim, folder / "link");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(test::input_error_of([&] { LineFile(folder / "link", 0); }),
              HasSubstr("it is a link"));
  EXPECT_THAT(test::input_error_of([&] { LineFile(folder / "pipe", 0); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(test::input_error_of([&] { LineFile(folder / "no/lines", 0); }),
              HasSubstr("No such file"));
  EXPECT_EQ(read_file(victim), "mine");
}

// A file that may not grow stands for a full disk.
TEST(LineFile, HoldsWholeLinesWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  LineFile file(folder / "lines", 0);
  file.append("first");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(file.append(std::string(1000, 'x')), std::runtime_error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(folder / "lines"), "first\n");
  file.append("second");
  EXPECT_EQ(read_file(folder / "lines"), "first\nsecond\n");
}

TEST(Folders, AreMadeWithWhatIsMissingAbove) {
  const TemporaryFolder folder;
  create_folders(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  create_folders(folder / "a/b/c/");  // there already
  write_file(folder / "file", "");
  EXPECT_THAT(test::input_error_of([&] { create_folders(folder / "file/x"); }),
              testing::AllOf(HasSubstr("file/x"), HasSubstr("Not a directory")));
}

}  // namespace
}  // namespace nsimplex::io
