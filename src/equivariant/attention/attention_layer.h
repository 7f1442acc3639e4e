#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <vector>

#include "equivariant/attention/attention_call.h"
#include "equivariant/attention/class_attention.h"
#include "equivariant/attention/features.h"
#include "equivariant/attention/map_matrix.h"
#include "equivariant/attention/part_rows.h"
#include "equivariant/classes/kinds.h"
#include "equivariant/sparse/sums_call.h"

// The layer around the classes: light sums of the input, products with the weights, attention class
// by class, the output's product. All classes of a list of tuples share one product.

namespace nsimplex::equivariant {

/// `Class` is ReferenceClass, then everything here is differentiable, or the kernels of a device.
template <class Class>
class AttentionLayer {
 public:
  explicit AttentionLayer(const AttentionCall& call)
      : call_(call),
        plan_(PlanTensors::read(call.plan, call.parts)),
        form_(parse_attention_form(call.form, "equivariant_attention")),
        map_(parse_feature_map(call.features, "equivariant_attention")),
        heads_(call.heads),
        sources_(plan_.sources.size()) {
    for (size_t p = 0; p < plan_.parts.size(); ++p) {
      Source& keys = sources_[plan_.parts[p].keys];
      slots_.push_back(std::ssize(keys.parts));
      keys.parts.push_back(p);
    }
  }

  at::Tensor forward() {
    std::vector<at::Tensor> out;
    for (const int64_t source : plan_.outputs) {
      const std::vector<size_t> parts = parts_at(source);
      if (parts.empty()) {
        out.push_back(call_.x.new_zeros({plan_.sources[source].rows, call_.output.size(2)}));
        continue;
      }
      const at::Tensor queries = make_queries(source, parts);
      PartRows values = part_rows(source, parts.size(), call_.value);
      for (size_t i = 0; i < parts.size(); ++i) {
        const at::Tensor query = queries.select(0, static_cast<int64_t>(i));
        const Features features = features_of(parts[i], query);
        values.put(i, class_.forward(class_call(parts[i], features), values.place(i)));
      }
      out.push_back(at::mm(values.side_by_side(), output_matrix(parts)));
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
    for (size_t s = 0; s < sources_.size(); ++s) {
      Source& own = sources_[s];
      own.grad_keys = part_rows(static_cast<int64_t>(s), own.parts.size(), call_.key);
      own.grad_values = part_rows(static_cast<int64_t>(s), own.parts.size(), call_.value);
    }
    int64_t place = 0;
    for (const int64_t source : plan_.outputs) {
      const int64_t count = plan_.sources[source].rows;
      const at::Tensor grad = grad_places.narrow(0, place, count);
      place += count;
      const std::vector<size_t> parts = parts_at(source);
      if (!parts.empty()) backward_output(source, parts, grad);
    }
    for (Source& own : sources_) own.keys = own.values = at::Tensor();
    for (size_t s = 0; s < sources_.size(); ++s) backward_source(s);
    return {sum_or_zeros(grad_x_, call_.x),
            sum_or_zeros(grad_query_, call_.query),
            sum_or_zeros(grad_query_bias_, call_.query_bias),
            sum_or_zeros(grad_key_, call_.key),
            sum_or_zeros(grad_key_bias_, call_.key_bias),
            sum_or_zeros(grad_value_, call_.value),
            sum_or_zeros(grad_output_, call_.output)};
  }

 private:
  struct Source {
    std::vector<size_t> parts;  // those whose keys it has
    at::Tensor sums;            // [rows, columns C]
    at::Tensor keys, values;    // [parts, rows, H, d or e]
    PartRows grad_keys, grad_values;
    std::optional<at::Tensor> grad_sums;
  };
  struct Features {
    at::Tensor query, key;        // [rows, H, d]
    at::Tensor of_query, of_key;  // the same, or their features
  };

  bool softmax() const { return form_ == AttentionForm::softmax; }
  int64_t channels() const { return call_.x.size(1); }

  std::vector<size_t> parts_at(int64_t source) const {
    std::vector<size_t> parts;
    for (size_t p = 0; p < plan_.parts.size(); ++p) {
      if (plan_.parts[p].queries == source) parts.push_back(p);
    }
    return parts;
  }

  const at::Tensor& sums(size_t source) {
    at::Tensor& own = sources_[source].sums;
    const SourceTensors& tuples = plan_.sources[source];
    if (!own.defined()) {
      own = dispatch_sums({call_.x, tuples.gather, tuples.gather_parts, /*mean=*/true})
                .view({tuples.rows, tuples.columns * channels()});
    }
    return own;
  }

  // [rows, C]: the input's own row of each key.
  at::Tensor own_rows(size_t source) {
    const SourceTensors& tuples = plan_.sources[source];
    return sums(source).narrow(1, tuples.value_column * channels(), channels());
  }

  // Rows of the weights of all maps and parts, -1 for none.
  at::Tensor weight_rows(const std::vector<size_t>& parts, at::Tensor PartTensors::* which) const {
    std::vector<at::Tensor> rows;
    for (const size_t p : parts) rows.push_back(plan_.parts[p].*which);
    return at::cat(rows);
  }

  at::Tensor class_numbers(const std::vector<size_t>& parts) const {
    std::vector<int64_t> numbers;
    for (const size_t p : parts) numbers.push_back(plan_.parts[p].number);
    return at::tensor(numbers, call_.x.options().dtype(at::kLong));
  }

  // [C, parts H e]
  at::Tensor value_matrix(const std::vector<size_t>& parts) const {
    return call_.value.index_select(0, class_numbers(parts)).transpose(0, 1).flatten(1);
  }
  // [parts H e, D]
  at::Tensor output_matrix(const std::vector<size_t>& parts) const {
    return call_.output.index_select(0, class_numbers(parts)).flatten(0, 1);
  }

  at::Tensor biases(const at::Tensor& bias, const std::vector<size_t>& parts) const {
    return bias.index_select(0, class_numbers(parts)).flatten();
  }

  // Room for rows of as many channels as a weight has.
  PartRows part_rows(int64_t source, size_t parts, const at::Tensor& weight) const {
    return {Class::kWritesTo, plan_.sources[source].rows, parts,
            heads_,           weight.size(2) / heads_,    call_.x.options()};
  }

  // [parts, rows, H, d]
  at::Tensor make_queries(int64_t source, const std::vector<size_t>& parts) {
    const at::Tensor rows = weight_rows(parts, &PartTensors::query_weights);
    return by_head(class_.products(biases(call_.query_bias, parts), sums(source),
                                   map_matrix(call_.query, rows, std::ssize(parts)),
                                   std::ssize(parts)));
  }

  at::Tensor by_head(const at::Tensor& rows) const {
    return rows.unflatten(2, {heads_, rows.size(2) / heads_});
  }

  Source& with_keys(size_t source) {
    Source& own = sources_[source];
    if (own.keys.defined()) return own;
    const int64_t count = std::ssize(own.parts);
    const at::Tensor rows = weight_rows(own.parts, &PartTensors::key_weights);
    own.keys = by_head(class_.products(biases(call_.key_bias, own.parts), sums(source),
                                       map_matrix(call_.key, rows, count), count));
    own.values =
        by_head(class_.products(std::nullopt, own_rows(source), value_matrix(own.parts), count));
    return own;
  }

  std::optional<at::Tensor> graphs(int64_t source) const {
    // Without a normaliser nothing cancels the factor.
    if (!call_.normalise) return std::nullopt;
    return plan_.sources[source].graphs;
  }

  Features features_of(size_t part, const at::Tensor& query) {
    const PartTensors& own = plan_.parts[part];
    const at::Tensor key = with_keys(own.keys).keys.select(0, slots_[part]);
    if (softmax()) return {query, key, query, key};
    const at::Tensor& directions = *call_.directions;
    return {query, key,
            class_.features(ClassSide::queries, map_, query, directions, graphs(own.queries)),
            class_.features(ClassSide::keys, map_, key, directions, graphs(own.keys))};
  }

  ClassCall class_call(size_t part, const Features& features) {
    const PartTensors& own = plan_.parts[part];
    return {plan_,
            own,
            form_,
            call_.normalise,
            1 / std::sqrt(static_cast<double>(features.query.size(-1))),
            features.of_query,
            features.of_key,
            sources_[own.keys].values.select(0, slots_[part])};
  }

  void add_grad_sums(size_t source, const at::Tensor& grad) {
    auto& sum = sources_[source].grad_sums;
    sum = sum ? *sum + grad : grad;
  }

  void backward_output(int64_t source, const std::vector<size_t>& parts, const at::Tensor& grad) {
    at::Tensor queries = make_queries(source, parts);
    const at::Tensor matrices = call_.output.index_select(0, class_numbers(parts));
    PartRows out = part_rows(source, parts.size(), call_.value);
    PartRows grad_queries = part_rows(source, parts.size(), call_.query);
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto number = static_cast<int64_t>(i);
      const Features features = features_of(parts[i], queries.select(0, number));
      // For one part at a time: nobody wants them side by side.
      const at::Tensor grad_out = at::mm(grad, matrices.select(0, number).t());
      const ClassGradients own = class_.backward(class_call(parts[i], features),
                                                 grad_out.unflatten(1, {heads_, -1}), out.place(i));
      out.put(i, own.out);
      Source& keys = sources_[plan_.parts[parts[i]].keys];
      const auto slot = static_cast<size_t>(slots_[parts[i]]);
      keys.grad_values.put(slot, own.value);
      put_gradient(grad_queries, i, features.query, features.of_query, own.query);
      put_gradient(keys.grad_keys, slot, features.key, features.of_key, own.key);
    }
    // What only the classes read is given back before more is asked for.
    class_ = Class();
    queries = at::Tensor();
    add_to_classes(grad_output_, call_.output, parts, at::mm(out.side_by_side().t(), grad));
    out = PartRows();
    const at::Tensor grad_query = grad_queries.side_by_side();
    add_to_classes(grad_query_bias_, call_.query_bias, parts, grad_query.sum(0));
    maps_backward(source, parts, &PartTensors::query_weights, call_.query, grad_query, grad_query_);
  }

  // The gradient of queries or keys x among those of other parts, from that of what a class takes.
  void put_gradient(PartRows& rows, size_t part, const at::Tensor& x, const at::Tensor& features,
                    const at::Tensor& grad) {
    rows.put(part, softmax() ? grad
                             : class_.features_backward(map_, x, *call_.directions, features, grad,
                                                        rows.place(part)));
  }

  // The gradients of what keys and values of a source are made of, and of the input.
  void backward_source(size_t source) {
    const std::vector<size_t>& parts = sources_[source].parts;
    if (!parts.empty()) {
      const at::Tensor grad_key = sources_[source].grad_keys.side_by_side();
      const at::Tensor grad_value = sources_[source].grad_values.side_by_side();
      add_to_classes(grad_key_bias_, call_.key_bias, parts, grad_key.sum(0));
      maps_backward(source, parts, &PartTensors::key_weights, call_.key, grad_key, grad_key_);
      const at::Tensor own = at::mm(own_rows(source).t(), grad_value);  // [C, parts H e]
      add_to_classes(grad_value_, call_.value, parts,
                     own.view({own.size(0), std::ssize(parts), -1}).transpose(0, 1));
      const int64_t after =
          (plan_.sources[source].columns - plan_.sources[source].value_column - 1) * channels();
      add_grad_sums(source,
                    at::constant_pad_nd(at::mm(grad_value, value_matrix(parts).t()),
                                        {plan_.sources[source].value_column * channels(), after}));
    }
    const std::optional<at::Tensor> grad_sums = std::move(sources_[source].grad_sums);
    sources_[source] = {};
    if (!grad_sums) return;
    const SourceTensors& tuples = plan_.sources[source];
    const at::Tensor grad =
        dispatch_transposed({grad_sums->reshape({tuples.rows * tuples.columns, channels()}),
                             tuples.gather, tuples.gather_parts, /*mean=*/true});
    grad_x_ = grad_x_ ? *grad_x_ + grad : grad;
  }

  // Of a product of light sums with a matrix of maps: its weight's gradient and that of the sums.
  void maps_backward(size_t source, const std::vector<size_t>& parts,
                     at::Tensor PartTensors::* which, const at::Tensor& weight,
                     const at::Tensor& grad, std::optional<at::Tensor>& grad_weight) {
    const at::Tensor rows = weight_rows(parts, which);
    const int64_t count = std::ssize(parts);
    const at::Tensor own = map_matrix_backward(weight, rows, count, at::mm(sums(source).t(), grad));
    grad_weight = grad_weight ? *grad_weight + own : own;
    add_grad_sums(source, at::mm(grad, map_matrix(weight, rows, count).t()));
  }

  // Adds `own`, one matrix a part, to the gradient of a weight with one a class.
  void add_to_classes(std::optional<at::Tensor>& grad, const at::Tensor& weight,
                      const std::vector<size_t>& parts, const at::Tensor& own) const {
    std::vector<int64_t> shape = weight.sizes().vec();
    shape[0] = std::ssize(parts);
    grad = (grad ? *grad : at::zeros_like(weight))
               .index_add(0, class_numbers(parts), own.reshape(shape));
  }

  static at::Tensor sum_or_zeros(const std::optional<at::Tensor>& grad, const at::Tensor& of) {
    return grad ? *grad : at::zeros_like(of);
  }

  const AttentionCall& call_;
  PlanTensors plan_;
  AttentionForm form_;
  FeatureMap map_;
  int64_t heads_;
  Class class_;
  std::vector<Source> sources_;
  std::vector<int64_t> slots_;  // of every part, among those of its keys
  std::optional<at::Tensor> grad_x_, grad_query_, grad_query_bias_, grad_key_, grad_key_bias_,
      grad_value_, grad_output_;
};

}  // namespace nsimplex::equivariant
