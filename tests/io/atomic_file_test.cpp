#include "io/output_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "input_error_of.h"
#include "support/error.h"
#include "temporary_folder.h"

namespace nsimplex::io {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using testing::ElementsAre;

size_t entries(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

class WriteObserver {
 public:
  explicit WriteObserver(std::function<void(WriteStage, const std::string&)> function) {
    set_write_observer(std::move(function));
  }
  ~WriteObserver() { set_write_observer({}); }
};

TEST(AtomicFile, ReplacesTheContents) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "a longer old text");
  write_text(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(AtomicFile, WithoutCommitTheOldContentsStay) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "old");
  {
    AtomicFile(path).write("new");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(AtomicFile, OverwritesTheLeftOverOfADeadWriter) {
  const TemporaryFolder folder;
  write_file(folder / "a.tmp", "half of something much longer");
  write_text(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(AtomicFile, NeverFollowsALink) {
  const TemporaryFolder folder;
  const std::string victim = write_file(folder / "victim", "mine");
  std::filesystem::create_symlink(victim, folder / "a.tmp");
  write_text(folder / "a", "new");
  EXPECT_EQ(read_file(victim), "mine");
  EXPECT_EQ(read_file(folder / "a"), "new");
  std::filesystem::create_symlink(victim, folder / "b");
  write_text(folder / "b", "new");  // the link is replaced, and not what it leads to
  EXPECT_EQ(read_file(victim), "mine");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "b"));
}

TEST(AtomicFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder");
  for (const char* name : {"pipe", "folder"}) {
    EXPECT_EQ(test::input_error_of([&] { write_text(folder / name, "new"); }),
              "cannot write " + (folder / name) + ": it is not a regular file");
  }
  EXPECT_EQ(entries(folder), 2u);
}

TEST(AtomicFile, GoesThroughTheStagesInOrder) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "old");
  std::vector<WriteStage> stages;
  std::vector<std::string> seen;
  const WriteObserver observer([&](WriteStage stage, const std::string& which) {
    EXPECT_EQ(which, path);
    stages.push_back(stage);
    seen.push_back(read_file(path));
  });
  write_text(path, "new");
  EXPECT_THAT(stages, ElementsAre(WriteStage::opened, WriteStage::written, WriteStage::synced,
                                  WriteStage::renamed, WriteStage::folder_synced));
  EXPECT_THAT(seen, ElementsAre("old", "old", "old", "new", "new"));
}

// A process that dies at any stage leaves the old or the new contents, never a mixture.
TEST(AtomicFile, SurvivesAKillAtEveryStage) {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  for (int fatal = 0; fatal <= static_cast<int>(WriteStage::folder_synced); ++fatal) {
    write_file(path, "old");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      set_write_observer([&](WriteStage stage, const std::string&) {
        if (static_cast<int>(stage) == fatal) ::raise(SIGKILL);
      });
      write_text(path, "new");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(read_file(path), fatal >= static_cast<int>(WriteStage::renamed) ? "new" : "old");
  }
}

TEST(AtomicFile, AFullDiskKeepsTheOldContents) {
  const TemporaryFolder folder;
  const std::string path = write_file(folder / "a", "old");
  const pid_t child = ::fork();  // the limit below cannot be raised again
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{1024, 1024};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_text(path, std::string(100'000, 'x'));
    } catch (const InputError&) {
      ::_exit(2);  // not the user's input that is wrong
    } catch (const std::runtime_error& error) {
      ::_exit(std::string(error.what()) == "cannot write " + path + ": File too large" ? 0 : 3);
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(AtomicFile, NamesAnUnwritablePlace) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) -> std::string {
    try {
      write_text(path, "text");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(folder / "no/a"),
            "cannot write " + (folder / "no/a") + ": No such file or directory");
  write_file(folder / "file", "");
  EXPECT_EQ(message(folder / "file/a"),
            "cannot write " + (folder / "file/a") + ": Not a directory");
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not bind root";
  ::chmod(folder.path().c_str(), 0500);
  EXPECT_EQ(message(folder / "a"), "cannot write " + (folder / "a") + ": Permission denied");
  ::chmod(folder.path().c_str(), 0700);
}

}  // namespace
}  // namespace nsimplex::io
