// Evaluates the loss of a language model and samples text from it.

#include "train/inference.h"

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/common/rounding.h"
#include "support/error.h"
#include "support/random.h"
#include "support/stopwatch.h"

namespace nsimplex::training {
namespace {

// Tokens per forward pass: enough to keep every thread busy, with little memory.
constexpr int64_t kTokensAPass = 8192;

// Turns off gradients and dropout for one scope.
class Evaluating {
 public:
  explicit Evaluating(LanguageModel& model) : model_(model), trained_(model->is_training()) {
    model_->eval();
  }
  ~Evaluating() { model_->train(trained_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  const at::NoGradGuard no_grad_;
  LanguageModel& model_;
  bool trained_;
};

}  // namespace

Evaluation evaluate(LanguageModel& model, const data::Tokens& tokens, data::Slice slice,
                    int64_t context, int64_t max_tokens,
                    const std::function<void(int64_t, int64_t)>& progress, Ranks& ranks) {
  const Stopwatch watch;
  const int64_t predicted = slice.size() - 1;
  if (predicted < 1) {
    throw InputError("the validation text has " +
                     std::to_string(std::max<int64_t>(slice.size(), 0)) +
                     " tokens: at least 2 are needed");
  }
  const int64_t windows = ceil_div(predicted, context);
  const int64_t wanted =
      max_tokens > 0 ? std::min(windows, ceil_div(max_tokens, context)) : windows;
  const auto start = [&](int64_t index) {
    return slice.begin + index * windows / wanted * context;
  };
  const auto length = [&](int64_t begin) { return std::min(context, slice.end - 1 - begin); };
  const int64_t total = (wanted - 1) * context + length(start(wanted - 1));

  const Evaluating evaluating(model);
  const c10::Device device = model->parameters().front().device();
  const int64_t rows = std::max<int64_t>(kTokensAPass / context, 1);
  Evaluation result;
  double sum = 0.0;
  std::vector<int64_t> starts;
  int64_t pass = 0;
  for (int64_t index = 0; index < wanted; ++pass) {
    starts.clear();
    const int64_t width = length(start(index));
    while (index < wanted && static_cast<int64_t>(starts.size()) < rows &&
           length(start(index)) == width) {
      starts.push_back(start(index++));
    }
    const int64_t count = static_cast<int64_t>(starts.size()) * width;
    result.tokens += count;
    if (pass % ranks.size() != ranks.rank()) continue;
    const data::Batch batch = data::gather(tokens, starts, width);
    sum += model->loss(batch.inputs.to(device), batch.targets.to(device)).item<double>() *
           static_cast<double>(count);
    if (progress) progress(result.tokens, total);
  }
  const std::vector<double> sums = ranks.gather(sum);
  result.loss = std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(result.tokens);
  result.seconds = watch.seconds();
  return result;
}

namespace {

void normalize(std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
}

// The token at which the cumulative sum exceeds a uniform number.
int32_t draw(const std::vector<double>& probabilities, double uniform) {
  double sum = 0.0;
  int32_t last = 0;  // the result if rounding keeps the whole sum below the number
  for (size_t token = 0; token < probabilities.size(); ++token) {
    if (probabilities[token] == 0) continue;
    last = static_cast<int32_t>(token);
    sum += probabilities[token];
    if (uniform < sum) break;
  }
  return last;
}

// A growing text. Each step appends tokens and returns the logits of the next one.
class Continuation {
 public:
  explicit Continuation(LanguageModel& model)
      : model_(model),
        caches_(model->make_cache()),
        device_(model->parameters().front().device()) {}

  std::vector<double> next_logits(c10::ArrayRef<int32_t> tokens) {
    // Chunks of the context, as in training, keep the memory at that of a training window.
    const auto chunk = static_cast<size_t>(model_->options().context);
    at::Tensor logits;
    for (size_t first = 0; first < tokens.size(); first += chunk) {
      const auto part = tokens.slice(first, std::min(chunk, tokens.size() - first));
      logits = model_->forward(at::tensor(part).to(device_).unsqueeze(0), caches_);
    }
    logits = logits[0][-1].to(at::kDouble).cpu().contiguous();
    const double* data = logits.const_data_ptr<double>();
    return {data, data + logits.numel()};
  }

 private:
  LanguageModel& model_;
  LayerCaches caches_;
  const c10::Device device_;
};

}  // namespace

void check(const SamplingOptions& o) {
  if (!(o.temperature >= 0) || !std::isfinite(o.temperature)) {
    throw InputError(fmt::format("--temperature: expected 0 or more, got {}", o.temperature));
  }
  if (o.top_k < 0)
    throw InputError(fmt::format("--top-k: expected 0 (all) or more, got {}", o.top_k));
  if (!(o.top_p > 0 && o.top_p <= 1)) {
    throw InputError(fmt::format("--top-p: expected a number in (0, 1], got {}", o.top_p));
  }
}

std::vector<double> sampling_distribution(const std::vector<double>& logits,
                                          const SamplingOptions& o) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  const bool greedy = o.temperature == 0;
  size_t kept = greedy ? 1 : o.top_k > 0 ? std::min<size_t>(o.top_k, order.size()) : order.size();

  std::vector<double> weights(logits.size(), 0.0);
  for (size_t rank = 0; rank < kept; ++rank) {
    const double gap = logits[order[rank]] - logits[order[0]];
    weights[order[rank]] = greedy ? 1.0 : std::exp(gap / o.temperature);
  }
  normalize(weights);
  if (o.top_p < 1) {
    double sum = 0.0;
    for (const size_t token : order) {
      if (sum >= o.top_p) weights[token] = 0.0;
      sum += weights[token];
    }
    normalize(weights);
  }
  return weights;
}

void generate(LanguageModel& model, std::vector<int32_t> tokens, int64_t count,
              const SamplingOptions& options, const std::function<bool(int32_t)>& emit) {
  check(options);
  TORCH_CHECK(!tokens.empty(), "[generate] the prompt has no token");
  const Evaluating evaluating(model);
  Continuation text(model);
  for (int64_t n = 0; n < count; ++n) {
    const auto probabilities = sampling_distribution(text.next_logits(tokens), options);
    const double uniform = random_unit(random_bits(options.seed, static_cast<uint64_t>(n)));
    tokens = {draw(probabilities, uniform)};
    if (!emit(tokens.back())) return;
  }
}

}  // namespace nsimplex::training
