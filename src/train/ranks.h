// Declares the processes that train one model together.

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokens.h"
#include "io/safetensors.h"

namespace nsimplex::training {

/// The error of a rank whose messages no longer reach the others. The text is empty on ranks that
/// leave the report to another one.
struct RanksLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The processes that train one model together. Each computes the gradients of its rows of every
/// batch. This class is the only rank of a training in one process; all its sums are the values
/// themselves.
///
/// Every rank calls the same functions in the same order. A function whose messages fail throws
/// RanksLost.
class Ranks {
 public:
  Ranks() = default;
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  virtual int64_t rank() const { return 0; }
  virtual int64_t size() const { return 1; }

  /// Replaces the values of a dense tensor by their sums over the ranks. Every rank gets the same
  /// bits, and gets them again when the sum is repeated with as many ranks.
  virtual void sum(const at::Tensor& /*values*/) {}

  /// Whether this rank reports an error. Of several ranks with the same error only the first does.
  virtual bool reports(std::string_view /*error*/) { return true; }

  /// Whether a launcher repeats the command on all ranks after one of them has ended.
  virtual bool repeats() const { return false; }

  /// The line about a message that failed after `seconds`, for RanksLost. It names the ranks that do
  /// not answer, and is empty if another rank has reported an error.
  virtual std::string describe_loss(double /*seconds*/, const std::string& why) { return why; }

  /// Whether this rank writes the files of the run.
  bool writes() const { return rank() == 0; }

  /// The values of all ranks, by rank.
  std::vector<double> gather(double value);

  /// Whether `here` is true on any rank.
  bool any(bool here);

  /// Replaces the numbers and the gradients of the parameters by their means over the ranks. A
  /// parameter that has a gradient on some ranks only counts as zero on the others. The messages are
  /// buckets whose contents depend on the parameters alone.
  void average(std::span<double> numbers, const std::vector<io::NamedTensor>& parameters);

  /// The same with sums instead of means.
  void total(std::span<double> numbers, const std::vector<io::NamedTensor>& parameters);

  /// Replaces the values of a dense tensor by those of rank 0.
  void copy_first(const at::Tensor& values);

  /// The text of rank 0.
  std::string first_text(const std::string& text);

  /// Runs `work` on rank 0 while the other ranks wait. `work` calls the function that it gets now
  /// and then. About twice a second, such a call makes all ranks call `together` (if there is one),
  /// which calls functions of this object or throws the same on all of them. In one process every
  /// such call is one of `together`.
  void lead(const std::function<void(const std::function<void()>& pause)>& work,
            const std::function<void()>& together);

  /// Throws InputError unless the ranks divide the rows of a batch.
  void require_divides(int64_t batch) const;

  /// This rank's rows of a batch.
  data::Batch share(const data::Batch& batch) const;

  /// This rank's part of `count` rows: `count` of them from `begin` on. Parts differ by one row at
  /// most, and may be empty.
  struct Rows {
    int64_t begin, count;
  };
  Rows rows_of(int64_t count) const;

 private:
  void combine(std::span<double> numbers, const std::vector<io::NamedTensor>& parameters,
               double divisor);
  void combine_bucket(const std::vector<at::Tensor>& gradients, double divisor);
};

/// The rank of a training in one process.
Ranks& only_rank();

}  // namespace nsimplex::training
