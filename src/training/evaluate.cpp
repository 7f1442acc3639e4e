#include "training/evaluate.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <vector>

#include "support/error.h"
#include "training/stopwatch.h"

namespace nsimplex::training {
namespace {

// Tokens of one forward pass: enough to keep every thread busy, little memory.
constexpr int64_t kTokensAPass = 8192;

}  // namespace

Evaluation evaluate(LanguageModel& model, const data::Tokens& tokens, data::Slice slice,
                    int64_t context, int64_t max_tokens,
                    const std::function<void(int64_t, int64_t)>& progress) {
  const Stopwatch watch;
  const int64_t predicted = slice.size() - 1;
  if (predicted < 1) {
    throw InputError("the validation text has " +
                     std::to_string(std::max<int64_t>(slice.size(), 0)) +
                     " tokens: at least 2 are needed");
  }
  const int64_t windows = (predicted + context - 1) / context;
  const int64_t wanted =
      max_tokens > 0 ? std::min(windows, (max_tokens + context - 1) / context) : windows;
  const auto start = [&](int64_t index) {
    return slice.begin + index * windows / wanted * context;
  };
  const auto length = [&](int64_t begin) { return std::min(context, slice.end - 1 - begin); };
  const int64_t total = (wanted - 1) * context + length(start(wanted - 1));

  const at::NoGradGuard no_grad;
  const c10::Device device = model->parameters().front().device();
  const int64_t rows = std::max<int64_t>(kTokensAPass / context, 1);
  Evaluation result;
  double sum = 0.0;
  std::vector<int64_t> starts;
  for (int64_t index = 0; index < wanted;) {
    starts.clear();
    const int64_t width = length(start(index));
    while (index < wanted && static_cast<int64_t>(starts.size()) < rows &&
           length(start(index)) == width) {
      starts.push_back(start(index++));
    }
    const data::Batch batch = data::gather(tokens, starts, width);
    const int64_t count = batch.targets.numel();
    sum += model->loss(batch.inputs.to(device), batch.targets.to(device)).item<double>() *
           static_cast<double>(count);
    result.tokens += count;
    if (progress) progress(result.tokens, total);
  }
  result.loss = sum / static_cast<double>(result.tokens);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace nsimplex::training
