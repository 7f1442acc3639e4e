#include "training/graph_judge.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "training/diverged.h"

namespace nsimplex::training {
namespace {

// Rows of a split whose batches and plans are kept between validations: some hundred megabytes.
constexpr int64_t kKeptRows = int64_t{1} << 20;

}  // namespace

at::Generator graph_stream(uint64_t seed, uint64_t which) {
  return at::make_generator<at::CPUGeneratorImpl>(4 * seed + which);
}

GraphJudge::GraphJudge(GraphTask& task, GraphModel& model, GraphSplit split, int64_t batch,
                       uint64_t seed)
    : task_(task),
      model_(model),
      split_(split),
      batch_(batch),
      seed_(seed),
      redraws_(split == GraphSplit::validation && task.redraws_validation()),
      draws_(generator()) {}

Scores GraphJudge::scores(int64_t step) {
  const at::NoGradGuard no_grad;
  model_.eval();
  const auto scorer = task_.scorer();
  if (!kept_.empty()) {
    for (const Prepared& each : kept_) add(*scorer, each, step);
    return scorer->scores();
  }
  if (!redraws_) draws_ = generator();
  const std::vector<int64_t> examples = this->examples();
  int64_t rows = 0;
  for (size_t begin = 0; begin < examples.size(); begin += static_cast<size_t>(batch_)) {
    const size_t count = std::min(static_cast<size_t>(batch_), examples.size() - begin);
    Prepared each{task_.batch(split_, std::span(examples).subspan(begin, count), draws_), {}};
    each.forward = model_.prepare(each.batch);
    add(*scorer, each, step);
    rows += each.batch.input.size() + each.batch.output.size();
    if (rows <= kKeptRows) kept_.push_back(std::move(each));
  }
  if (rows > kKeptRows || redraws_) kept_.clear();
  return scorer->scores();
}

void GraphJudge::add(GraphScorer& scorer, const Prepared& each, int64_t step) {
  const at::Tensor outputs = each.forward();
  require_finite_outputs(step, outputs);
  scorer.add(outputs, each.batch);
}

at::Generator GraphJudge::generator() const {
  return graph_stream(seed_, 1 + static_cast<uint64_t>(split_));
}

std::vector<int64_t> GraphJudge::examples() {
  const int64_t size = task_.size(split_);
  std::vector<int64_t> examples(static_cast<size_t>(size));
  if (!redraws_) {
    std::iota(examples.begin(), examples.end(), int64_t{0});
    return examples;
  }
  const at::Tensor order = at::randperm(size, draws_, at::kLong);
  std::copy_n(order.const_data_ptr<int64_t>(), size, examples.begin());
  if (size > batch_) examples.resize(static_cast<size_t>(size - size % batch_));
  return examples;
}

}  // namespace nsimplex::training
