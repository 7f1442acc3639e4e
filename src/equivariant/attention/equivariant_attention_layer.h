// Computes the equivariant attention layer and its gradients around the attention of each class.

#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <vector>

#include "equivariant/attention/class_attention.h"
#include "equivariant/attention/class_products.h"
#include "equivariant/attention/equivariant_attention_call.h"
#include "equivariant/attention/rectified_features.h"
#include "equivariant/classes/equivariant_classes.h"

// The layer around the classes: queries, keys and values, attention, and the product for the
// output. It computes class by class, so that only the input and its gradient are kept for more
// than one class.

namespace nsimplex::equivariant {

/// Calls run(the call in float32, or in float64 if its tensors are). Sums of many tuples in 16 bits
/// would lose their later terms.
template <class Run>
auto in_wide_type(const AttentionCall& call, Run&& run) {
  const at::ScalarType type = call.x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto cast = [&](const at::Tensor& tensor) { return tensor.to(type); };
  const at::Tensor x = cast(call.x), query = cast(call.query), query_bias = cast(call.query_bias),
                   key = cast(call.key), key_bias = cast(call.key_bias), value = cast(call.value),
                   output = cast(call.output);
  std::optional<at::Tensor> directions;
  if (call.directions) directions = cast(*call.directions);
  return run(AttentionCall{x, query, query_bias, key, key_bias, value, output, directions,
                           call.plan, call.parts, call.heads, call.form, call.normalise,
                           call.features});
}

template <class Class>
class AttentionLayer;

/// The layer of a checked call, and its gradients, in the dtype of x.
template <class Class>
at::Tensor attend_in_wide_type(const AttentionCall& call) {
  return in_wide_type(call,
                      [](const AttentionCall& own) { return AttentionLayer<Class>(own).forward(); })
      .to(call.x.scalar_type());
}

template <class Class>
AttentionGradients differentiate_in_wide_type(const AttentionBackwardCall& call) {
  const at::ScalarType type = call.forward.x.scalar_type();
  return in_wide_type(call.forward, [&](const AttentionCall& own) {
    AttentionGradients gradients =
        AttentionLayer<Class>(own).backward(call.grad_out.to(own.x.scalar_type()));
    const auto own_memory = [type](const at::Tensor& gradient) {
      const at::Tensor typed = gradient.to(type);
      return typed.is_same(gradient) ? typed.clone(at::MemoryFormat::Contiguous) : typed;
    };
    return std::apply([&](const auto&... each) { return AttentionGradients{own_memory(each)...}; },
                      gradients);
  });
}

/// `Class` is ReferenceClass, which makes everything here differentiable, or a class of kernels of
/// a device.
template <class Class>
class AttentionLayer {
 public:
  explicit AttentionLayer(const AttentionCall& call)
      : call_(call),
        plan_(read_plan(call.plan, call.parts)),
        form_(parse_attention_form(call.form, "equivariant_attention")),
        map_(parse_feature_map(call.features, "equivariant_attention")),
        query_maps_(with_none(call.query)),
        key_maps_(with_none(call.key)) {
    for (const PartTensors& part : plan_.parts) {
      TORCH_CHECK_VALUE(
          form_ != AttentionForm::kernel || part.counts.size(0) == plan_.sources[part.queries].rows,
          "[equivariant_attention] plan: expected one of form kernel, got one of "
          "form softmax");
    }
    for (const SourceTensors& source : plan_.sources) light_.emplace_back(source, call.x);
  }

  at::Tensor forward() {
    std::vector<at::Tensor> out;
    for (const int64_t source : plan_.outputs) {
      std::optional<at::Tensor> own;
      for (const PartTensors& part : plan_.parts) {
        if (part.queries != source) continue;
        const at::Tensor rows = class_.forward(class_call(part, rows_of(part)));
        class_.add_product(own, rows.flatten(1), call_.output.select(0, part.number));
      }
      out.push_back(own ? *own : call_.x.new_zeros({light_[source].rows(), call_.output.size(2)}));
    }
    if (out.empty()) return call_.x.new_zeros({0, call_.output.size(2)});
    return at::cat(out).index_select(0, plan_.output_places);
  }

  AttentionGradients backward(const at::Tensor& grad_out) {
    const at::Tensor rows =
        at::zeros_like(plan_.output_places)
            .scatter(0, plan_.output_places,
                     at::arange(plan_.output_places.size(0), plan_.output_places.options()));
    const at::Tensor grad_places = grad_out.index_select(0, rows);
    int64_t place = 0;
    for (const int64_t source : plan_.outputs) {
      const int64_t count = light_[source].rows();
      const at::Tensor grad = grad_places.narrow(0, place, count);
      place += count;
      for (const PartTensors& part : plan_.parts) {
        if (part.queries == source) part_backward(part, grad);
      }
    }
    class_ = Class();  // frees its memory
    std::optional<at::Tensor> grad_x;
    for (const LightProducts<Class>& source : light_) {
      if (const auto own = source.grad_x()) grad_x = grad_x ? *grad_x + *own : *own;
    }
    return {grad_x ? *grad_x : at::zeros_like(call_.x),
            grad_query_.sum(call_.query),
            grad_query_bias_.sum(call_.query_bias),
            grad_key_.sum(call_.key),
            grad_key_bias_.sum(call_.key_bias),
            grad_value_.sum(call_.value),
            grad_output_.sum(call_.output)};
  }

 private:
  // The inputs and the results of the queries, keys and values of a part.
  struct Rows {
    at::Tensor query_matrix, key_matrix, value_matrix;
    at::Tensor query, key, value;             // [rows, H, d or e]
    at::Tensor query_features, key_features;  // the same, or their features
  };

  bool softmax() const { return form_ == AttentionForm::softmax; }

  Rows rows_of(const PartTensors& part) {
    Rows rows;
    rows.query_matrix = map_matrix(query_maps_, part.query_weights);
    rows.key_matrix = map_matrix(key_maps_, part.key_weights);
    rows.value_matrix = call_.value.select(0, part.number);
    LightProducts<Class>&queries = light_[part.queries], &keys = light_[part.keys];
    rows.query = by_head(queries.of_columns(
        class_, ClassRows::queries, call_.query_bias.select(0, part.number), rows.query_matrix));
    rows.key = by_head(keys.of_columns(class_, ClassRows::keys,
                                       call_.key_bias.select(0, part.number), rows.key_matrix));
    rows.value = by_head(keys.of_tuples(class_, ClassRows::values, rows.value_matrix));
    rows.query_features = features(ClassRows::queries, rows.query, part.queries);
    rows.key_features = features(ClassRows::keys, rows.key, part.keys);
    return rows;
  }

  at::Tensor by_head(const at::Tensor& rows) const { return rows.unflatten(1, {call_.heads, -1}); }

  at::Tensor features(ClassRows which, const at::Tensor& x, int64_t source) {
    if (softmax()) return x;
    // Without a normaliser, nothing would cancel a factor.
    FeatureShift shift{.none = !call_.normalise};
    if (which == ClassRows::keys) shift.graphs = plan_.sources[source].graphs;
    return class_.features(which, map_, x, *call_.directions, shift);
  }

  // The gradient [rows, H d] of queries or keys x from that of their features.
  at::Tensor features_backward(const at::Tensor& x, const at::Tensor& features,
                               const at::Tensor& grad) {
    return softmax() ? class_.flat_rows(grad, x.scalar_type())
                     : class_.features_backward(map_, x, *call_.directions, features, grad);
  }

  ClassCall class_call(const PartTensors& part, const Rows& rows) const {
    return {plan_,
            part,
            form_,
            call_.normalise,
            1 / std::sqrt(static_cast<double>(rows.query.size(-1))),
            rows.query_features,
            rows.key_features,
            rows.value};
  }

  void part_backward(const PartTensors& part, const at::Tensor& grad) {
    const Rows rows = rows_of(part);
    const at::Tensor grad_rows = class_.product(ClassRows::grad_out, std::nullopt, grad,
                                                call_.output.select(0, part.number).t());
    const ClassGradients own = class_.backward(class_call(part, rows), by_head(grad_rows));
    // at::tensor() would write into memory, which no tensor has inside a transform.
    const at::Tensor number = at::full({1}, part.number, part.query_weights.options());
    grad_output_.add(number, class_.transposed_product(own.out.flatten(1), grad));

    LightProducts<Class>&queries = light_[part.queries], &keys = light_[part.keys];
    const at::Tensor query = features_backward(rows.query, rows.query_features, own.query);
    grad_query_bias_.add(number, query.sum(0));
    grad_query_.add(part.query_weights, queries.columns_backward(class_, rows.query_matrix, query));
    const at::Tensor key = features_backward(rows.key, rows.key_features, own.key);
    grad_key_bias_.add(number, key.sum(0));
    grad_key_.add(part.key_weights, keys.columns_backward(class_, rows.key_matrix, key));
    const at::Tensor value = class_.flat_rows(own.value, rows.value.scalar_type());
    grad_value_.add(number, keys.tuples_backward(class_, rows.value_matrix, value));
  }

  const AttentionCall& call_;
  PlanTensors plan_;
  AttentionForm form_;
  FeatureMap map_;
  at::Tensor query_maps_, key_maps_;
  Class class_;
  std::vector<LightProducts<Class>> light_;  // per source
  WeightGradient grad_query_, grad_query_bias_, grad_key_, grad_key_bias_, grad_value_,
      grad_output_;
};

}  // namespace nsimplex::equivariant
