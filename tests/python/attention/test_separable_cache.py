"""The cache of separable attention: it equals one call, its memory, saving, and its errors."""

import pytest
import torch
from separable import call, problem

import nsimplex


@pytest.mark.parametrize("cuts", [[1] * 20, [7, 1, 1, 5, 6], [20]])
@pytest.mark.parametrize(
    "dtype, error", [(torch.float64, 1e-10), (torch.float32, 1e-4), (torch.bfloat16, 2e-2)]
)
def test_cache_equals_one_call(cuts, dtype, error):
    q, k1, k2, v1, v2 = (
        t.detach()
        for t in problem(2, batch=2, heads=4, kv_heads=2, queries=20, lengths=[20, 20], dtype=dtype)
    )
    cache, outs = nsimplex.SeparableCache([-1, 3], features=None), []
    for part in zip(*(t.split(cuts, 2) for t in (q, k1, k2, v1, v2))):
        outs.append(cache.attend(part[0], part[1:3], part[3:], return_normalizer=True))
    whole = call([q, k1, k2, v1, v2], causal=True, window=[-1, 3])
    assert cache.position == 20 and outs[0][0].dtype == dtype
    for ours, exact in zip((torch.cat(parts, 2) for parts in zip(*outs)), whole):
        torch.testing.assert_close(ours, exact, rtol=error, atol=error)


def test_cache_memory_is_constant_and_survives_save_and_load(tmp_path):
    tokens = [t.detach() for t in problem(2, batch=2, queries=50, lengths=[50, 50])]
    step = lambda cache, t: cache.attend(
        tokens[0][:, :, t : t + 1],
        [k[:, :, t : t + 1] for k in tokens[1:3]],
        [v[:, :, t : t + 1] for v in tokens[3:]],
    )
    cache, sizes = nsimplex.SeparableCache([-1, 3], features=None), []
    for t in range(40):
        step(cache, t)
        sizes.append(cache.nbytes)
    assert len(set(sizes[3:])) == 1
    torch.save(cache.state_dict(), tmp_path / "cache.pt")
    other = nsimplex.SeparableCache([-1, 3], features=None)
    other.load_state_dict(torch.load(tmp_path / "cache.pt", weights_only=True))
    for t in range(40, 50):
        torch.testing.assert_close(step(other, t), step(cache, t), rtol=0, atol=0)
    swapped = nsimplex.SeparableCache([-1, 3], features=None)
    swapped.load_state_dict(cache.state_dict())
    swapped.select(torch.tensor([1, 0, 1]))
    assert swapped.state_dict()["states.0"].size(0) == 3
    torch.testing.assert_close(
        swapped.state_dict()["states.0"][0], cache.state_dict()["states.0"][1]
    )
    with pytest.raises(ValueError, match="keys.0 is missing"):
        nsimplex.SeparableCache([3, 3]).load_state_dict(cache.state_dict())
    cache.reset()
    assert cache.position == 0 and cache.nbytes == 0


def test_cache_refuses_gradients_and_other_shapes():
    inputs = problem(1)
    cache = nsimplex.SeparableCache([-1], features=None)
    with pytest.raises(ValueError, match="inference only"):
        cache.attend(inputs[0], inputs[1:2], inputs[2:])
    q, k, v = (t.detach() for t in inputs)
    cache.attend(q, [k], [v])
    with pytest.raises(ValueError, match=r"axis 0: expected 1 batch entries, 2 heads"):
        cache.attend(q, [k[:, :1]], [v[:, :1]])
    with pytest.raises(ValueError, match="one for each of 1 axes"):
        cache.attend(q, [k, k], [v, v])
