"""2-simplicial attention by hand: windows, gradients, memory that grows with T and not with T^2.

Every query attends to pairs (j1, j2) of keys: j1 among its last 8 positions, j2 among its last 64.
"""

import torch

import nsimplex

torch.manual_seed(0)
batch, heads, length, dim = 1, 4, 512, 32
query = torch.randn(batch, heads, length, dim, requires_grad=True)
# Two query heads share one key head (grouped-query attention follows from the head counts).
keys = [torch.randn(batch, heads // 2, length, dim, requires_grad=True) for _ in range(2)]
values = [torch.randn(batch, heads // 2, length, dim, requires_grad=True) for _ in range(2)]

out, lse = nsimplex.attention(query, keys, values, causal=True, window=[8, 64], return_lse=True)
print("out", tuple(out.shape), "lse", tuple(lse.shape))

# The definition, for the last query of the first head: one softmax over all 8 x 64 pairs.
first, second = (key[0, 0, -window:] for key, window in zip(keys, (8, 64)))
logits = torch.einsum("d,id,jd->ij", query[0, 0, -1], first, second) * dim**-0.5
weights = logits.flatten().softmax(0).view_as(logits)
pairs = [value[0, 0, -window:] for value, window in zip(values, (8, 64))]
by_hand = torch.einsum("ij,id,jd->d", weights, *pairs)
difference = (out[0, 0, -1] - by_hand).abs().max().item()
print(f"difference from the definition: {difference:.1e}")
assert difference < 1e-4

(out.square().mean() + lse.mean()).backward()
print(f"gradient of the first axis's keys: {keys[0].grad.norm():.4f}")
assert all(torch.isfinite(tensor.grad).all() for tensor in (query, *keys, *values))
