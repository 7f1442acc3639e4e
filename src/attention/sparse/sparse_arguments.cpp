#include "attention/sparse/sparse_arguments.h"

#include "attention/dense/dense_arguments.h"

namespace nsimplex::sparse {
namespace {

// Enumerators by name, in the order of the public enums.
constexpr std::string_view kPatterns[] = {"list", "product", "path"};
constexpr std::string_view kReducers[] = {"product", "sum", "mean", "mlp", "mlp_symmetric"};

}  // namespace

TuplePattern pattern_of(const Options& options) {
  return static_cast<TuplePattern>(
      dense::index_of("sparse_attention", "pattern", options.pattern, kPatterns));
}

TupleReduce reduce_of(const Options& options) {
  return static_cast<TupleReduce>(
      dense::index_of("sparse_attention", "reduce", options.reduce, kReducers));
}

std::string_view name_of(TuplePattern pattern) { return kPatterns[static_cast<int>(pattern)]; }

std::string_view name_of(TupleReduce reduce) { return kReducers[static_cast<int>(reduce)]; }

const at::Tensor& rows_of(const Call& call, TuplePattern pattern) {
  return pattern == TuplePattern::list ? *call.offsets : call.indices;
}

Settings settings_of(const Call& call) {
  const Options& options = call.options;
  Settings settings;
  settings.order = static_cast<int>(call.keys.size());
  settings.pattern = pattern_of(options);
  settings.form = dense::form_named("sparse_attention", options.form);
  settings.reduce = reduce_of(options);
  settings.scale.logit = options.logit_scale.value_or(Scale::standard(call.query.size(3)).logit);
  settings.scale.output = options.output_scale.value_or(1.0);
  const at::Tensor& rows = rows_of(call, settings.pattern);
  settings.list_entries = rows.size(0);
  settings.list_groups = rows.size(1);
  return settings;
}

std::array<c10::SymInt, 4> output_sizes(const Call& call) {
  return {call.query.sym_size(0), call.query.sym_size(1), call.query.sym_size(2),
          call.values[0].sym_size(3)};
}

}  // namespace nsimplex::sparse
