#include "attention/sparse/sparse_saved.h"

namespace nsimplex::sparse {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Places in the tuple of plain options.
enum Field { kOrder, kPattern, kForm, kReduce, kLogitScale, kOutputScale };

}  // namespace

void save_call(AutogradContext& context, const Call& call, const Output& output) {
  const Options& o = call.options;
  variable_list saved{call.query};
  for (const at::TensorList list : {call.keys, call.values, o.weights()}) {
    saved.insert(saved.end(), list.begin(), list.end());
  }
  saved.insert(saved.end(), {std::get<0>(output), std::get<1>(output), call.indices,
                             call.offsets.value_or(Tensor())});
  context.save_for_backward(std::move(saved));
  // Plain values in a tuple: compiled autograd compares them, and refuses opaque objects.
  context.saved_data["options"] = c10::ivalue::Tuple::create(
      {static_cast<int64_t>(call.keys.size()), std::string(o.pattern), std::string(o.form),
       std::string(o.reduce), o.logit_scale, o.output_scale});
}

SavedCall::SavedCall(AutogradContext& context)
    : tensors_(context.get_saved_variables()), fields_(context.saved_data["options"].toTuple()) {
  order_ = static_cast<size_t>(fields_->elements().asArrayRef()[kOrder].toInt());
  inputs_ = tensors_.size() - 4;
  if (tensors_.back().defined()) offsets_ = tensors_.back();
}

Call SavedCall::call() const {
  const at::ArrayRef<c10::IValue> fields = fields_->elements().asArrayRef();
  const at::TensorList all(tensors_);
  const size_t first_weight = 1 + 2 * order_;
  OptionalTensorList weights;
  if (inputs_ > first_weight) weights = all.slice(first_weight, inputs_ - first_weight);
  return {all[0],
          all.slice(1, order_),
          all.slice(1 + order_, order_),
          all[inputs_ + 2],
          offsets_,
          {fields[kPattern].toStringView(), fields[kForm].toStringView(),
           fields[kReduce].toStringView(), weights, fields[kLogitScale].toOptional<double>(),
           fields[kOutputScale].toOptional<double>()}};
}

}  // namespace nsimplex::sparse
