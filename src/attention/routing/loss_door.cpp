// The checks of indexer_loss.

#include <ATen/ATen.h>

#include "attention/dense/dense_door.h"
#include "attention/routing/loss_call.h"
#include "attention/routing/topk_call.h"

namespace nsimplex::routing {
namespace {

using at::Tensor;
using dense::holds;

void check_layer(const LossCall& call) {
  dense::check(dense::Call{call.query, call.keys, call.keys,
                           plain_options(call.causal, call.form, call.logit_scale)});
  TORCH_CHECK_VALUE(call.query.device() == call.query_index.device(),
                    "[indexer_loss] query: expected the device of query_index, ",
                    call.query_index.device(), ", got ", call.query.device());
  for (const int64_t d : {0, 2}) {
    TORCH_CHECK_VALUE(holds(call.query.sym_size(d).sym_eq(call.query_index.sym_size(d))),
                      "[indexer_loss] query: expected batch and length of query_index, ",
                      call.query_index.sym_sizes(), ", got ", call.query.sym_sizes());
  }
  for (size_t m = 0; m < call.keys.size(); ++m) {
    TORCH_CHECK_VALUE(holds(call.keys[m].sym_size(2).sym_eq(call.key_index.sym_size(2))),
                      "[indexer_loss] keys[", m, "]: expected the length of key_index, ",
                      call.key_index.sym_size(2), ", got ", call.keys[m].sym_size(2));
  }
}

void check_indices(const LossCall& call) {
  TORCH_CHECK_VALUE(call.path() || call.pattern == "product",
                    "[indexer_loss] pattern: expected 'product' or 'path', got '", call.pattern,
                    "'");
  if (!call.indices) {
    TORCH_CHECK_VALUE(!call.path(), "[indexer_loss] pattern: 'path' needs indices");
    return;
  }
  const Tensor& indices = *call.indices;
  TORCH_CHECK_TYPE(indices.scalar_type() == at::kLong,
                   "[indexer_loss] indices: expected int64, got ", indices.scalar_type());
  TORCH_CHECK_VALUE(indices.device() == call.query_index.device(),
                    "[indexer_loss] indices: expected the device of query_index, ",
                    call.query_index.device(), ", got ", indices.device());
  const c10::SymInt batch = call.query_index.sym_size(0), length = call.key_index.sym_size(2);
  const c10::SymInt rows = call.path() ? length : call.query_index.sym_size(2);
  TORCH_CHECK_VALUE(
      indices.dim() == 3 && holds(indices.sym_size(1).sym_eq(rows)) &&
          holds(indices.sym_size(2).sym_ge(1)) &&
          holds(indices.sym_size(0).sym_eq(1).sym_or(indices.sym_size(0).sym_eq(batch))),
      "[indexer_loss] indices: expected shape [1 or ", batch, ", ", rows,
      ", k] with k at least 1, got ", indices.sym_sizes());
  TORCH_CHECK_VALUE(!call.path() || holds(length.sym_ge(call.query_index.sym_size(2))),
                    "[indexer_loss] query_index: expected at most the ", length,
                    " keys with pattern 'path', got ", call.query_index.sym_size(2), " queries");
}

}  // namespace

void check_values(const LossCall& call) {
  if (!call.indices || call.indices->numel() == 0) return;
  const auto [low, high] = at::aminmax(*call.indices);
  const int64_t last = call.key_index.size(2) - 1;
  TORCH_CHECK_VALUE(low.item<int64_t>() >= -1 && high.item<int64_t>() <= last,
                    "[indexer_loss] indices: expected -1 to ", last, ", got ", low.item<int64_t>(),
                    " to ", high.item<int64_t>());
}

void check_index(const LossCall& call) {
  check(Call{call.query_index, call.key_index, 1, call.weights, call.scores, call.causal,
             call.scale, call.lse, kNone, kNone, kNone, "indexer_loss", "query_index",
             "key_index"});
}

void check(const LossCall& call) {
  check_index(call);
  TORCH_CHECK_VALUE(!call.softmax() || call.lse,
                    "[indexer_loss] lse: expected one with scores 'softmax'");
  check_layer(call);
  check_indices(call);
}

}  // namespace nsimplex::routing
