#pragma once

#include <ATen/core/Tensor.h>

namespace nsimplex::routing {

/// A table of keys with every row in ascending order, -1 behind.
at::Tensor sorted_table(const at::Tensor& table);

/// Queries that one chunk may have so that the gathered rows of `keys` keys each, for
/// [B, H, Tq, D], stay within a fixed number of elements.
int64_t gathered_chunk(const at::Tensor& query, int64_t keys);

/// Rows of key [B, Hk, T, D] by table [B, c, n]: [B, Hk, c, n, D]; row 0 stands for -1.
at::Tensor gather_rows(const at::Tensor& key, const at::Tensor& table);

/// <query_hi, key_j> for every j of query i's row: query [B, H, c, D], key [B, Hk, T, D], table
/// [B, c, n] -> [B, c, H, n]. Entries of -1 are logits of key 0.
at::Tensor gathered_logits(const at::Tensor& query, const at::Tensor& key, const at::Tensor& table);

}  // namespace nsimplex::routing
