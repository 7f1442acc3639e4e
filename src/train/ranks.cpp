// Sums gradients over ranks, divides rows among them, and lets rank 0 work while the others wait.

#include "train/ranks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "support/error.h"
#include "support/stopwatch.h"

namespace nsimplex::training {
namespace {

// The size of DistributedDataParallel's buckets (bucket_cap_mb).
constexpr int64_t kBucketBytes = int64_t{25} << 20;

// Between two messages of a rank that works for all.
constexpr double kSecondsBetweenPauses = 0.5;

}  // namespace

Ranks& only_rank() {
  static Ranks ranks;
  return ranks;
}

std::vector<double> Ranks::gather(double value) {
  const at::Tensor values = at::zeros({size()}, at::kDouble);
  double* const first = values.mutable_data_ptr<double>();
  first[rank()] = value;
  sum(values);
  return {first, first + size()};
}

bool Ranks::any(bool here) {
  if (size() == 1) return here;
  return std::ranges::any_of(gather(here ? 1.0 : 0.0), [](double each) { return each > 0.0; });
}

void Ranks::average(std::span<double> numbers, const std::vector<io::NamedTensor>& parameters) {
  combine(numbers, parameters, static_cast<double>(size()));
}

void Ranks::total(std::span<double> numbers, const std::vector<io::NamedTensor>& parameters) {
  combine(numbers, parameters, 1.0);
}

void Ranks::combine(std::span<double> numbers, const std::vector<io::NamedTensor>& parameters,
                    double divisor) {
  if (size() == 1) return;
  const at::NoGradGuard no_grad;
  // One message has the numbers, and which parameters have a gradient on any rank.
  const at::Tensor first =
      at::zeros({static_cast<int64_t>(numbers.size() + parameters.size())}, at::kDouble);
  double* const places = first.mutable_data_ptr<double>();
  std::ranges::copy(numbers, places);
  for (size_t i = 0; i < parameters.size(); ++i) {
    places[numbers.size() + i] = parameters[i].tensor.grad().defined() ? 1.0 : 0.0;
  }
  sum(first);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = places[i] / divisor;

  std::vector<at::Tensor> bucket;
  int64_t bytes = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (places[numbers.size() + i] == 0.0) continue;
    const at::Tensor& parameter = parameters[i].tensor;
    if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
    const at::Tensor& gradient = parameter.grad();
    const bool fits =
        bucket.empty() || (gradient.scalar_type() == bucket.front().scalar_type() &&
                           bytes + static_cast<int64_t>(gradient.nbytes()) <= kBucketBytes);
    if (!fits) {
      combine_bucket(std::exchange(bucket, {}), divisor);
      bytes = 0;
    }
    bucket.push_back(gradient);
    bytes += static_cast<int64_t>(gradient.nbytes());
  }
  if (!bucket.empty()) combine_bucket(bucket, divisor);
}

void Ranks::combine_bucket(const std::vector<at::Tensor>& gradients, double divisor) {
  std::vector<at::Tensor> parts;
  std::vector<int64_t> sizes;
  for (const at::Tensor& each : gradients) {
    parts.push_back(each.reshape(-1));
    sizes.push_back(each.numel());
  }
  const at::Tensor all = at::cat(parts);
  sum(all);
  if (divisor != 1.0) all.div_(divisor);
  parts = all.split_with_sizes(sizes);
  for (size_t i = 0; i < gradients.size(); ++i) {
    gradients[i].copy_(parts[i].view(gradients[i].sizes()));
  }
}

void Ranks::copy_first(const at::Tensor& values) {
  if (size() == 1) return;
  const at::NoGradGuard no_grad;
  if (rank() != 0) values.zero_();
  sum(values);
}

std::string Ranks::first_text(const std::string& text) {
  if (size() == 1) return text;
  const double here = rank() == 0 ? static_cast<double>(text.size()) : 0.0;
  std::string first(static_cast<size_t>(gather(here).front()), '\0');
  if (first.empty()) return first;
  if (rank() == 0) first = text;
  copy_first(at::from_blob(first.data(), {std::ssize(first)}, at::kByte));
  return first;
}

void Ranks::lead(const std::function<void(const std::function<void()>& pause)>& work,
                 const std::function<void()>& together) {
  const auto call_together = [&] {
    if (together) together();
  };
  if (size() == 1) return work(call_together);
  // Each message says whether the work is done.
  if (rank() != 0) {
    while (!any(false)) call_together();
    return;
  }
  Stopwatch since;
  work([&] {
    if (since.seconds() < kSecondsBetweenPauses) return;
    any(false);
    call_together();
    since = Stopwatch();
  });
  any(true);
}

void Ranks::require_divides(int64_t batch) const {
  if (batch % size() == 0) return;
  throw InputError(
      fmt::format("batch: expected a multiple of the {} ranks, got {}", size(), batch));
}

data::Batch Ranks::share(const data::Batch& batch) const {
  const int64_t rows = batch.inputs.size(0) / size();
  return {batch.inputs.narrow(0, rank() * rows, rows),
          batch.targets.narrow(0, rank() * rows, rows)};
}

Ranks::Rows Ranks::rows_of(int64_t count) const {
  const int64_t begin = rank() * count / size();
  return {begin, (rank() + 1) * count / size() - begin};
}

}  // namespace nsimplex::training
