#include "attention/dense/dense_saved.h"

namespace nsimplex::dense {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Saved tensors: query, keys.., values.., out, lse, then these, then the key masks if there are
// any.
enum OptionIndex { kKeyLengths, kSegments, kMask, kSink, kOptionTensors };

// Places in the tuple of plain options.
enum Field {
  kOrder,
  kCausal,
  kForm,
  kReduce,
  kNormalizer,
  kLogitScale,
  kOutputScale,
  kDistinct,
  kWindow,
  kAugment,
  kDropout,
  kSeed
};

// Plain values in a tuple: compiled autograd compares them, and refuses opaque objects.
c10::IValue pack(size_t order, const Options& o) {
  std::vector<c10::IValue> window, augment;
  if (o.window) window.assign(o.window->begin(), o.window->end());
  if (o.augment) augment.assign(o.augment->begin(), o.augment->end());
  return c10::ivalue::Tuple::create({static_cast<int64_t>(order), o.causal, std::string(o.form),
                                     std::string(o.reduce), std::string(o.normalizer),
                                     o.logit_scale, o.output_scale, std::string(o.distinct),
                                     c10::ivalue::Tuple::create(std::move(window)),
                                     c10::ivalue::Tuple::create(std::move(augment)), o.dropout_p,
                                     o.seed ? c10::IValue(*o.seed) : c10::IValue()});
}

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

at::ArrayRef<c10::IValue> elements(const c10::IValue& tuple) {
  return tuple.toTupleRef().elements().asArrayRef();
}

}  // namespace

void save_call(AutogradContext& context, const Call& call, const Output& output) {
  const Options& options = call.options;
  variable_list saved{call.query};
  saved.insert(saved.end(), call.keys.begin(), call.keys.end());
  saved.insert(saved.end(), call.values.begin(), call.values.end());
  saved.push_back(std::get<0>(output));
  saved.push_back(std::get<1>(output));
  for (const OptionalTensor* each : std::initializer_list<const OptionalTensor*>{
           &options.key_lengths, &options.cu_seqlens, &options.mask, &options.sink}) {
    saved.push_back(each->value_or(Tensor()));
  }
  if (options.key_masks) {
    saved.insert(saved.end(), options.key_masks->begin(), options.key_masks->end());
  }
  context.save_for_backward(std::move(saved));
  context.saved_data["options"] = pack(call.keys.size(), options);
}

SavedCall::SavedCall(AutogradContext& context)
    : tensors_(context.get_saved_variables()), fields_(context.saved_data["options"].toTuple()) {
  const at::ArrayRef<c10::IValue> fields = fields_->elements().asArrayRef();
  order_ = static_cast<size_t>(fields[kOrder].toInt());
  for (const c10::IValue& each : elements(fields[kWindow])) window_.push_back(each.toSymInt());
  for (const c10::IValue& each : elements(fields[kAugment])) augment_.push_back(each.toInt());
  const Tensor* const options = &tensors_[3 + 2 * order_];
  key_lengths_ = optional(options[kKeyLengths]);
  cu_seqlens_ = optional(options[kSegments]);
  mask_ = optional(options[kMask]);
  sink_ = optional(options[kSink]);
}

Call SavedCall::call() const {
  const at::ArrayRef<c10::IValue> fields = fields_->elements().asArrayRef();
  const at::TensorList all(tensors_);
  at::OptionalSymIntArrayRef window;
  if (!window_.empty()) window = c10::SymIntArrayRef(window_);
  at::OptionalIntArrayRef augment;
  if (!augment_.empty()) augment = at::IntArrayRef(augment_);
  std::optional<c10::SymInt> seed;
  if (!fields[kSeed].isNone()) seed = fields[kSeed].toSymInt();
  const size_t first_mask = 3 + 2 * order_ + kOptionTensors;
  OptionalTensorList key_masks;
  if (tensors_.size() > first_mask) key_masks = all.slice(first_mask);
  return {all[0],
          all.slice(1, order_),
          all.slice(1 + order_, order_),
          {fields[kCausal].toBool(), window, fields[kForm].toStringView(),
           fields[kReduce].toStringView(), fields[kNormalizer].toStringView(),
           fields[kLogitScale].toOptional<double>(), fields[kOutputScale].toOptional<double>(),
           key_lengths_, key_masks, cu_seqlens_, mask_, sink_, fields[kDistinct].toStringView(),
           augment, fields[kDropout].toDouble(), seed}};
}

}  // namespace nsimplex::dense
