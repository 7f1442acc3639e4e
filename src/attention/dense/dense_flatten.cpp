#include "attention/dense/dense_flatten.h"

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

}  // namespace nsimplex::dense
