// Checks the options of an attention layer, and names those that do not go together.

#include <algorithm>
#include <cmath>

#include "attention/common/attention_check.h"
#include "kernels/common/attention_problem.h"
#include "nn/attention_layer.h"
#include "support/require.h"

namespace nsimplex::detail {
namespace {

using Options = SimplicialAttentionOptions;

const char* const kReducers[] = {"product", "sum", "mean", "mlp", "mlp_symmetric"};

void check_sizes(Options& o, const std::string& at) {
  require(o.dim > 0, at, "dim: expected a positive width, got ", o.dim);
  require(o.heads > 0, at, "heads: expected at least 1, got ", o.heads);
  require(o.order >= 1 && o.order <= kernels::kMaxOrder, at, "order: expected 1 to ",
          kernels::kMaxOrder, ", got ", o.order);
  require(o.head_dim >= 0, at, "head_dim: expected a positive width, got ", o.head_dim);
  if (o.head_dim == 0) {
    require(o.dim % o.heads == 0, at, "heads: expected a divisor of dim ", o.dim, ", got ",
            o.heads);
    o.head_dim = o.dim / o.heads;
  }
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  require(o.kv_heads > 0 && o.heads % o.kv_heads == 0, at, "kv_heads: expected a divisor of heads ",
          o.heads, ", got ", o.kv_heads);
}

void check_windows(const Options& o, const std::string& at) {
  const auto axes = static_cast<size_t>(o.order);
  require(o.window.size() <= 1 || o.window.size() == axes, at, "window: expected 0, 1 or ", axes,
          " entries, got ", o.window.size());
  for (const Window& w : o.window) {
    require(w.left == -1 || w.left >= 1, at, "window: expected left >= 1 or -1, got ", w.left);
    require(w.right >= -1, at, "window: expected right >= 0 or -1, got ", w.right);
  }
}

void check_augment(const Options& o, const std::string& at) {
  for (const int64_t axis : o.augment) {
    require(axis >= 0 && axis < o.order, at, "augment: expected axes 0 to ", o.order - 1, ", got ",
            axis);
    require(std::count(o.augment.begin(), o.augment.end(), axis) == 1, at,
            "augment: expected each axis once, got ", axis, " again");
  }
}

// The other options of the heads of one order are checked by their layer.
void check_orders(Options& o, const std::string& at) {
  require(std::ssize(o.orders) == o.heads, at, "orders: expected one order for each of ", o.heads,
          " heads, got ", o.orders.size());
  const int64_t shared = o.heads / o.kv_heads;
  for (int64_t head = 0; head < o.heads; ++head) {
    const int64_t order = o.orders[head], first = o.orders[head / shared * shared];
    require(order >= 1 && order <= kernels::kMaxOrder, at, "orders: expected 1 to ",
            kernels::kMaxOrder, ", got ", order);
    require(order == first, at, "orders: expected one order for the ", shared,
            " heads of a key head, got ", first, " and ", order);
  }
  require(o.context_dims.empty(), at, "context_dims: expected none beside orders, got ",
          o.context_dims.size());
  o.order = *std::max_element(o.orders.begin(), o.orders.end());
  check_windows(o, at);
  check_augment(o, at);
}

void check_axes(const Options& o, const std::string& at) {
  const auto axes = static_cast<size_t>(o.order);
  require(o.context_dims.empty() || o.context_dims.size() == axes, at,
          "context_dims: expected 0 or ", axes, " entries, got ", o.context_dims.size());
  for (const int64_t width : o.context_dims) {
    require(width > 0, at, "context_dims: expected positive widths, got ", width);
  }
  check_windows(o, at);
  check_augment(o, at);
}

void check_scores(const Options& o, const std::string& at) {
  if (const Scale* scale = std::get_if<Scale>(&o.scale)) {
    require(std::isfinite(scale->logit) && std::isfinite(scale->output), at,
            "scale: expected finite factors, got ", scale->logit, " and ", scale->output);
  }
  const std::string fault = dense::softcap_fault(o.softcap);
  require(fault.empty(), at, fault);
  require(o.form == Form::product || o.head_dim % (o.order + 1) == 0, at,
          "head_dim: expected a multiple of order + 1 = ", o.order + 1,
          " for form determinant, got ", o.head_dim);
  require(o.dropout >= 0 && o.dropout < 1, at, "dropout: expected a share in [0, 1), got ",
          o.dropout);
  require(o.augment.empty() || o.form == Form::product, at,
          "augment: expected none with form determinant, got ", o.augment.size(), " axes");
  if (o.face) {
    require(o.normalizer == Normalizer::softmax, at, "normalizer: expected softmax beside face");
    require(o.augment.empty(), at, "augment: expected none beside face, got ", o.augment.size(),
            " axes");
  }
  if (!o.rotary) return;
  require(o.context_dims.empty(), at, "rotary: positions of different contexts do not compare");
  require(rotary_is_relative(o) || o.allow_non_invariant, at, "rotary: form product of order ",
          o.order,
          " does not depend on relative positions alone; set allow_non_invariant to use it all "
          "the same");
  require(o.head_dim % 2 == 0 || o.form == Form::determinant, at,
          "rotary: expected an even head_dim, got ", o.head_dim);
  require(o.rotary_base > 0 && std::isfinite(o.rotary_base), at,
          "rotary_base: expected a positive number, got ", o.rotary_base);
}

void check_indexer(double loss, const std::string& at) {
  require(loss >= 0 && std::isfinite(loss), at, "loss: expected 0 or more, got ", loss);
}

void check_top_k(const TopK& part, int64_t order, const std::string& at) {
  const size_t numbers = part.k.size();
  require(numbers == 1 || std::ssize(part.k) == order, at, "select: expected 1 or ", order,
          " numbers k of TopK, got ", numbers);
  for (const int64_t k : part.k) require(k >= 1, at, "k: expected at least 1, got ", k);
  check_indexer(part.loss, at);
}

void check_union(const Union& select, int64_t order, const std::string& at) {
  require(!select.parts.empty(), at, "parts: expected selections in Union, got none");
  int64_t chosen = 0, graphs = 0;
  for (const UnionPart& part : select.parts) {
    if (const auto* window = std::get_if<Window>(&part)) {
      require(window->left >= 1 && window->right >= 0, at,
              "select: expected a Window with left >= 1 and right >= 0, got ", window->left,
              " and ", window->right);
    } else if (const auto* sinks = std::get_if<Sinks>(&part)) {
      require(sinks->count >= 1, at, "count: expected at least 1, got ", sinks->count);
    } else if (const auto* best = std::get_if<TopK>(&part)) {
      check_top_k(*best, order, at);
      ++chosen;
    } else {
      ++graphs;
    }
  }
  require(chosen <= 1, at, "parts: expected at most one TopK, got ", chosen);
  require(graphs <= 1, at, "parts: expected at most one Neighbours, got ", graphs);
}

void check_select(const Options& o, const std::string& at) {
  const bool learned = !plain_reduce(o);
  if (std::holds_alternative<std::monostate>(o.select) ||
      std::holds_alternative<Linear>(o.select)) {
    require(!learned, at, "reduce: expected product, sum or mean, got ",
            kReducers[static_cast<size_t>(tuple_reduce(o))],
            ", which needs select TopK, Path, Neighbours or Union");
  }
  if (std::holds_alternative<std::monostate>(o.select)) return;
  const std::string beside = " beside select " + select_name(o.select);
  require(o.context_dims.empty(), at, "context_dims: expected none", beside, ", got ",
          o.context_dims.size());
  require(!o.face, at, "face: expected false", beside);
  require(o.augment.empty(), at, "augment: expected none", beside, ", got ", o.augment.size(),
          " axes");
  require(o.dropout == 0, at, "dropout: expected none", beside, ", got ", o.dropout);
  require(o.distinct == Distinct::none, at, "distinct: expected none", beside);
  require(!o.softcap, at, "softcap: expected none", beside, ", got ", o.softcap.value_or(0));
  if (std::holds_alternative<Linear>(o.select)) {
    require(o.form == Form::product, at, "form: expected product, the one that separates");
    require(plain_reduce(o) == Reduce::product, at,
            "reduce: expected product, the one that separates");
    require(o.normalizer == Normalizer::softmax, at, "normalizer: expected softmax", beside);
    return;
  }
  require(o.normalizer == Normalizer::softmax || o.normalizer == Normalizer::softmax_sink, at,
          "normalizer: expected softmax or softmax_sink", beside);
  require(o.window.empty(), at, "window: expected none beside chosen keys, got ", o.window.size(),
          "; a Union with a Window has both");
  const auto* preset = std::get_if<ScalePreset>(&o.scale);
  require(!learned || preset == nullptr || *preset != ScalePreset::unit, at,
          "scale: expected standard or numbers with a learned reduce, got unit");
  if (const auto* best = std::get_if<TopK>(&o.select)) check_top_k(*best, o.order, at);
  if (const auto* path = std::get_if<Path>(&o.select)) {
    require(path->k >= 1, at, "k: expected at least 1, got ", path->k);
    check_indexer(path->loss, at);
  }
  if (const auto* parts = std::get_if<Union>(&o.select)) check_union(*parts, o.order, at);
}

template <class Part>
const Part* part_of(const Select& select) {
  if (const auto* whole = std::get_if<Part>(&select)) return whole;
  const auto* parts = std::get_if<Union>(&select);
  if (parts == nullptr) return nullptr;
  for (const UnionPart& each : parts->parts) {
    if (const auto* part = std::get_if<Part>(&each)) return part;
  }
  return nullptr;
}

}  // namespace

SimplicialAttentionOptions complete(SimplicialAttentionOptions o, const std::string& at) {
  check_sizes(o, at);
  if (!o.orders.empty()) {
    check_orders(o, at);
    return o;
  }
  check_axes(o, at);
  check_scores(o, at);
  check_select(o, at);
  return o;
}

std::string select_name(const Select& select) {
  static const char* const kKinds[] = {"", "TopK", "Path", "Neighbours", "Linear", "Union"};
  return kKinds[select.index()];
}

const TopK* top_k(const Select& select) { return part_of<TopK>(select); }

const Neighbours* graph_of(const Select& select) { return part_of<Neighbours>(select); }

bool chooses_keys(const Select& select) {
  return !std::holds_alternative<std::monostate>(select) && !std::holds_alternative<Linear>(select);
}

std::optional<Reduce> plain_reduce(const SimplicialAttentionOptions& options) {
  if (const auto* reduce = std::get_if<Reduce>(&options.reduce)) return *reduce;
  switch (std::get<TupleReduce>(options.reduce)) {
    case TupleReduce::product:
      return Reduce::product;
    case TupleReduce::sum:
      return Reduce::sum;
    case TupleReduce::mean:
      return Reduce::mean;
    case TupleReduce::mlp:
    case TupleReduce::mlp_symmetric:
      break;
  }
  return std::nullopt;
}

TupleReduce tuple_reduce(const SimplicialAttentionOptions& options) {
  if (const auto* reduce = std::get_if<TupleReduce>(&options.reduce)) return *reduce;
  switch (std::get<Reduce>(options.reduce)) {
    case Reduce::sum:
      return TupleReduce::sum;
    case Reduce::mean:
      return TupleReduce::mean;
    case Reduce::product:
      break;
  }
  return TupleReduce::product;
}

}  // namespace nsimplex::detail
