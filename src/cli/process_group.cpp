// The entry of nsimplex_ranks.so, which python/nsimplex/_on_ranks.py loads: the command line on the
// ranks of a process group of torch.distributed. It lies apart from libnsimplex_cli.so, which every
// program loads, because c10d is a part of torch that a build of torch may lack.

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <utility>
#include <vector>

#include "cli/app.h"
#include "cli/output.h"
#include "support/stopwatch.h"
#include "train/ranks.h"

namespace nsimplex::cli {
namespace {

// Keys of the group's store.
constexpr char kErrorKey[] = "nsimplex/error", kWaitingKey[] = "nsimplex/waiting/";

// The longest time that a rank whose message failed waits for word from the others.
constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kPoll = std::chrono::milliseconds(50);

// The ranks of a process group.
class GroupRanks : public training::Ranks {
 public:
  explicit GroupRanks(const std::string& name)
      : group_(c10d::resolve_process_group(name)), store_(group_->getStore()) {}

  int64_t rank() const override { return group_->getRank(); }
  int64_t size() const override { return group_->getSize(); }
  bool repeats() const override { return true; }

  void sum(const at::Tensor& values) override {
    std::vector<at::Tensor> one{values};
    const Stopwatch watch;
    try {
      group_->allreduce(one)->wait();
    } catch (const c10::Error& error) {
      throw training::RanksLost(describe_loss(watch.seconds(), error.what_without_backtrace()));
    } catch (const std::exception& error) {
      throw training::RanksLost(describe_loss(watch.seconds(), error.what()));
    }
  }

  bool reports(std::string_view error) override {
    try {
      const std::string mine = fmt::format("{} {}", rank(), error);
      const std::string first = store_->compareSet(kErrorKey, "", mine);
      return first == mine || first.substr(first.find(' ') + 1) != error;
    } catch (const std::exception&) {  // the store is lost, too
      return true;
    }
  }

  std::string describe_loss(double seconds, const std::string& why) override {
    try {
      store_->set(kWaitingKey + std::to_string(rank()), "1");
      const Stopwatch watch;
      std::vector<int64_t> silent = silent_ranks();
      while (!silent.empty() &&
             watch.seconds() < std::chrono::duration<double>(kPatience).count()) {
        if (store_->check({kErrorKey})) return "";
        std::this_thread::sleep_for(kPoll);
        silent = silent_ranks();
      }
      if (store_->check({kErrorKey})) return "";
      if (silent.empty())
        return fmt::format("the ranks lost their connection: {}", first_line(why));
      return fmt::format(
          "rank{} {} did not answer for {:.0f} s; the run ends, and its last "
          "checkpoint remains",
          silent.size() > 1 ? "s" : "", fmt::join(silent, ", "), std::ceil(seconds));
    } catch (const std::exception&) {
      return fmt::format("the ranks lost their connection: {}", first_line(why));
    }
  }

 private:
  std::vector<int64_t> silent_ranks() {
    std::vector<int64_t> silent;
    for (int64_t each = 0; each < size(); ++each) {
      if (!store_->check({kWaitingKey + std::to_string(each)})) silent.push_back(each);
    }
    return silent;
  }

  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace
}  // namespace nsimplex::cli

/// Runs `nsimplex` with these arguments, the first of which is the program, on the ranks of the
/// process group of this name (empty: in one process). Returns the exit code.
extern "C" __attribute__((visibility("default"))) int nsimplex_run(const char* group, int count,
                                                                   char** arguments) {
  using namespace nsimplex;
  cli::keep_freed_memory();
  if (*group == '\0') return cli::run(cli::kProduct, cli::typed_words(count, arguments));
  cli::GroupRanks ranks(group);
  if (!ranks.writes()) cli::mute();
  return cli::run(cli::kProduct, cli::typed_words(count, arguments), ranks);
}
