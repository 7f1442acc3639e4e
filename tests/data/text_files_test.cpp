#include "data/text_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::data {
namespace {

using test::TemporaryFolder;
using test::write_file;
using testing::ElementsAre;

std::vector<std::string> contents(const std::vector<Text>& texts) {
  std::vector<std::string> all;
  for (const Text& text : texts) all.emplace_back(text.bytes.begin(), text.bytes.end());
  return all;
}

std::string error_of(const std::vector<std::string>& sources, const std::string& glob = "*") {
  try {
    open_texts(sources, glob);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// Makes a file this process's standard input for one scope.
class StandardInput {
 public:
  explicit StandardInput(const std::string& path) : saved_(::dup(STDIN_FILENO)) {
    const int file = ::open(path.c_str(), O_RDONLY);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

TEST(TextFiles, KeepsTheOrderOfTheSources) {
  const TemporaryFolder folder;
  const std::string b = write_file(folder / "b", "bee"), a = write_file(folder / "a", "ay");
  EXPECT_THAT(contents(open_texts({b, a, b})), ElementsAre("bee", "ay", "bee"));
}

TEST(TextFiles, TakesAFolderRecursivelyInTheOrderOfThePaths) {
  const TemporaryFolder folder;
  write_file(folder / "z.py", "z");
  write_file(folder / "deep/er/b.py", "b");
  write_file(folder / "deep/a.py", "a");
  write_file(folder / "deep/a.txt", "not Python");
  write_file(folder / ".hidden/c.py", "hidden");
  write_file(folder / "empty.py", "");
  write_file(folder / "compiled.py", std::string("\0\1", 2));
  std::filesystem::create_symlink("nowhere", folder / "dangling.py");
  const std::string path = folder.path();
  EXPECT_THAT(contents(open_texts({path}, "*.py")), ElementsAre("a", "b", "z"));
  EXPECT_THAT(contents(open_texts({path}, "deep/*.py")), ElementsAre("a", "b"));
  EXPECT_THAT(contents(open_texts({path})), ElementsAre("a", "not Python", "b", "z"));
}

TEST(TextFiles, ReadsStandardInput) {
  const TemporaryFolder folder;
  const std::string text(3'000'000, 'x');  // more than one read
  const StandardInput input(write_file(folder / "in", text));
  EXPECT_THAT(contents(open_texts({"-"})), ElementsAre(text));
}

TEST(TextFiles, NamesWhatCannotBeUsed) {
  const TemporaryFolder folder;
  const std::string path = folder.path();
  EXPECT_EQ(error_of({}), "no text given");
  EXPECT_EQ(error_of({path + "/no"}), "cannot read " + path + "/no: No such file or directory");
  EXPECT_EQ(error_of({path}), path + " has no file that matches '*'");
  write_file(folder / "empty", "");
  EXPECT_EQ(error_of({path + "/empty"}), path + "/empty is empty");
  write_file(folder / "binary", std::string("abc\0def", 7));
  EXPECT_EQ(error_of({path + "/binary"}), path + "/binary is not text: it holds zero bytes");
  EXPECT_EQ(error_of({path}),
            path + " has no text: all 2 files that match '*' are empty or binary");
  EXPECT_EQ(error_of({path}, "*.py"), path + " has no file that matches '*.py'");
  const StandardInput input("/dev/null");
  EXPECT_EQ(error_of({"-"}), "standard input is empty");
}

TEST(TextFiles, NamesAnUnreadableFileInAFolder) {
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not bind root";
  const TemporaryFolder folder;
  const std::string secret = write_file(folder / "secret", "text");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  EXPECT_EQ(error_of({folder.path()}), "cannot read " + secret + ": Permission denied");
}

}  // namespace
}  // namespace nsimplex::data
