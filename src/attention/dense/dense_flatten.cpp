#include "attention/dense/dense_flatten.h"

#include <ATen/ops/randint.h>

#include <limits>

namespace nsimplex::dense {

std::string_view name_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::product:
      return "product";
    case Reduce::sum:
      return "sum";
    case Reduce::mean:
      return "mean";
  }
  TORCH_CHECK_VALUE(false, "[attention] reduce: not an enumerator of Reduce");
}

std::string_view name_of(Form form) { return form == Form::product ? "product" : "determinant"; }

std::string_view name_of(Normalizer normalizer) {
  switch (normalizer) {
    case Normalizer::softmax:
      return "softmax";
    case Normalizer::softmax_sink:
      return "softmax_sink";
    case Normalizer::sigmoid:
      return "sigmoid";
    case Normalizer::relu:
      return "relu";
  }
  TORCH_CHECK_VALUE(false, "[attention] normalizer: not an enumerator of Normalizer");
}

std::string_view name_of(Distinct distinct) {
  switch (distinct) {
    case Distinct::none:
      return "none";
    case Distinct::axes:
      return "axes";
    case Distinct::with_query:
      return "with_query";
  }
  TORCH_CHECK_VALUE(false, "[attention] distinct: not an enumerator of Distinct");
}

std::optional<c10::SymInt> seed_of(const AttentionOptions& options) {
  if (options.seed) return *options.seed;
  if (options.dropout_p == 0.0) return std::nullopt;
  return at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong).item<int64_t>();
}

}  // namespace nsimplex::dense
