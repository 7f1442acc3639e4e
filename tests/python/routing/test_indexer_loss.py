"""The alignment loss: the definition, gradients and what they reach."""

import math

import pytest
import torch

import nsimplex


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def index_scores(query, key, weights, scores, causal, scale):
    """[B, Tq, T] from the formula, with gradients; and the admissible pairs [Tq, T]."""
    key = key.repeat_interleave(query.size(1) // key.size(1), 1)
    queries, keys = query.size(2), key.size(2)
    admissible = torch.ones(queries, keys, dtype=torch.bool)
    admissible = admissible.tril(keys - queries) if causal else admissible
    logits = query @ key.mT * (query.size(-1) ** -0.5 if scale is None else scale)
    logits = logits.masked_fill(~admissible, -torch.inf)
    act = logits.relu() if scores == "relu" else logits.softmax(-1)
    return (act if weights is None else act * weights[..., None]).sum(1), admissible


def tuples_mask(table, order, path, batch, queries, length):
    """bool [B, 1, Tq, T, .., T] of a table's product or paths."""
    listed = (
        nsimplex.path_list(table, order, queries=queries)
        if path
        else nsimplex.product_list(table, order)
    )
    mask = torch.zeros(table.size(0), queries, *[length] * order, dtype=torch.bool)
    for b in range(table.size(0)):
        for i in range(queries):
            for row in listed[0][listed[1][b, 0, i] : listed[1][b, 0, i + 1]].tolist():
                mask[(b, i, *row)] = True
    return mask[:, None].expand(batch, 1, *mask.shape[1:])


def definition(
    query_index,
    key_index,
    query,
    keys,
    *,
    weights=None,
    scores="relu",
    causal=False,
    scale=None,
    indices=None,
    pattern="product",
    form="product",
    logit_scale=None,
):
    order, batch, queries, length = len(keys), query.size(0), query.size(2), key_index.size(2)
    score, admissible = index_scores(query_index, key_index, weights, scores, causal, scale)
    admissible = admissible.expand(batch, -1, -1)
    options = {"causal": causal}
    if indices is not None:
        path = pattern == "path"
        options = {"mask": tuples_mask(indices, order, path, batch, queries, length)}
        own = indices[:, indices.size(1) - queries :].expand(batch, -1, -1)
        admissible = torch.zeros(batch, queries, length + 1, dtype=torch.bool)
        admissible = admissible.scatter(2, own.masked_fill(own < 0, length), True)[..., :length]
    raw = nsimplex.attention_weights(
        query, keys, form=form, scale="standard" if logit_scale is None else logit_scale, **options
    ).detach()
    mass = sum(
        raw.sum([3 + other for other in range(order) if other != m]) if order > 1 else raw
        for m in range(order)
    )
    target = (mass / order).mean(1).masked_fill(~admissible, 0)
    target = target / target.sum(-1, keepdim=True)
    score = score.masked_fill(~admissible, -torch.inf if scores == "relu" else 0)
    p = score.softmax(-1) if scores == "relu" else score / score.sum(-1, keepdim=True)
    losses = []
    for b in range(batch):
        for i in range(queries):
            if target[b, i].isnan().any():
                continue  # no admissible key
            t, q = target[b, i][target[b, i] > 0], p[b, i][target[b, i] > 0]
            losses.append((t * (t.log() - q.log())).sum())
    return torch.stack(losses).mean()


CASES = {
    "warm-up": dict(order=1),
    "warm-up causal": dict(order=2, causal=True, weights=True),
    "warm-up softmax": dict(order=2, causal=True, scores="softmax", weights=True),
    "warm-up order 3": dict(order=3, queries=4, keys=4),
    "late queries": dict(order=2, queries=3, keys=9, causal=True, weights=True),
    "early keys": dict(order=2, queries=9, keys=4, causal=True),
    "determinant": dict(order=2, form="determinant", logit_scale=0.7, scale=1.3),
    "chosen": dict(order=1, k=3, causal=True, weights=True),
    "chosen pairs": dict(order=2, k=3, causal=True, weights=True),
    "chosen softmax": dict(order=2, k=3, causal=True, scores="softmax", weights=True),
    "chosen for all": dict(order=2, k=3, shared=True),
    "paths": dict(order=2, k=3, causal=True, pattern="path", weights=True),
    "paths of one": dict(order=1, k=3, causal=True, pattern="path"),
    "paths order 3": dict(order=3, k=2, causal=True, pattern="path", scores="softmax"),
    "late paths": dict(order=2, queries=4, keys=8, k=3, causal=True, pattern="path"),
    "paths determinant": dict(order=2, k=3, form="determinant", pattern="path"),
}


def make(name, dtype=torch.float64):
    """(differentiable inputs, (query, keys), options) of a case."""
    case = dict(CASES[name])
    order, queries, keys = case.pop("order"), case.pop("queries", 7), case.pop("keys", 7)
    k, shared, weighted = case.pop("k", 0), case.pop("shared", False), case.pop("weights", False)
    inputs = [draw(2, 4, queries, 4, dtype=dtype), draw(2, 2, keys, 4, seed=1, dtype=dtype)]
    if weighted:
        weights = draw(2, 4, queries, seed=2, dtype=dtype)
        inputs.append(weights.abs() if case.get("scores") == "softmax" else weights)
    inputs = [t.requires_grad_() for t in inputs]
    layer = (
        draw(2, 4, queries, 6, seed=3, dtype=dtype),
        [draw(2, 2, keys, 6, seed=4 + m, dtype=dtype) for m in range(order)],
    )
    if k:
        rows = keys if case.get("pattern") == "path" else queries
        chooser = draw(1 if shared else 2, 1, rows, 4, seed=9)
        chosen = nsimplex.topk_keys(
            chooser, draw(chooser.size(0), 1, keys, 4, seed=10), k, causal=case.get("causal", False)
        )
        chosen[0, -1, 1:] = -1
        case["indices"] = chosen
    return inputs, layer, case


def call(function, inputs, layer, options):
    named = options | ({"weights": inputs[2]} if len(inputs) == 3 else {})
    return function(*inputs[:2], *layer, **named)


@pytest.mark.parametrize("name", CASES)
def test_definition(name):
    inputs, layer, options = make(name)
    exact = call(definition, inputs, layer, options)
    ours = call(nsimplex.indexer_loss, inputs, layer, options)
    assert ours.shape == () and ours > 0
    torch.testing.assert_close(ours, exact)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(exact, inputs)):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    "dtype, error", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)]
)
@pytest.mark.parametrize("name", ["warm-up causal", "chosen softmax", "paths"])
def test_low_precision(name, dtype, error):
    inputs, layer, options = make(name, dtype)
    exact_inputs = [t.detach().double().requires_grad_() for t in inputs]
    exact_layer = layer[0].double(), [key.double() for key in layer[1]]
    exact = call(nsimplex.indexer_loss, exact_inputs, exact_layer, options)
    ours = call(nsimplex.indexer_loss, inputs, layer, options)
    assert ours.dtype == torch.float32
    assert abs(ours.item() - exact.item()) <= error * exact.item()
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(exact, exact_inputs)):
        assert a.dtype == dtype and (a.double() - b).norm() <= error * b.norm()


def test_chunks_are_parts_of_one_mean():
    """Many chunks of queries: 6 M elements at 4 M a chunk."""
    inputs = [draw(1, 4, 1200, 4).float(), draw(1, 1, 1200, 4, seed=1).float()]
    layer = draw(1, 2, 1200, 6, seed=2).float(), [draw(1, 2, 1200, 6, seed=3).float()]
    exact = [t.double().requires_grad_() for t in inputs]
    inputs = [t.requires_grad_() for t in inputs]
    ours = nsimplex.indexer_loss(*inputs, *layer, causal=True)
    score, admissible = index_scores(*exact, None, "relu", True, None)
    weights = nsimplex.attention_weights(layer[0].double(), [layer[1][0].double()], causal=True)
    target = weights.mean(1)
    log_p = score.masked_fill(~admissible, -torch.inf).log_softmax(-1).masked_fill(~admissible, 0)
    expected = (torch.special.xlogy(target, target) - target * log_p).sum(-1).mean()
    assert ours.item() == pytest.approx(expected.item(), rel=1e-5)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(expected, exact)):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-8)


def test_it_is_zero_where_the_indexer_is_right():
    """One head of order 1 whose layer is the indexer itself, with softmax scores."""
    query, key = draw(2, 1, 9, 6).requires_grad_(), draw(2, 1, 9, 6, seed=1).requires_grad_()
    for indices in (None, nsimplex.topk_keys(query, key, 4, causal=True)):
        loss = nsimplex.indexer_loss(
            query, key, query, [key], scores="softmax", causal=True, indices=indices
        )
        assert abs(loss.item()) < 1e-12
        for gradient in torch.autograd.grad(loss, (query, key)):
            assert gradient.abs().max() < 1e-12


def test_the_layer_gets_no_gradient():
    inputs, (query, keys), options = make("chosen pairs")
    query.requires_grad_()
    keys[0].requires_grad_()
    loss = call(nsimplex.indexer_loss, inputs, (query, keys), options)
    assert torch.autograd.grad(loss, (query, keys[0]), allow_unused=True) == (None, None)


def test_training_closes_the_gap():
    """Gradient steps on a fixed layer bring the loss down, and with it the mass that is missed."""
    torch.manual_seed(1)
    query, key = torch.randn(1, 2, 64, 8), torch.randn(1, 2, 64, 8)
    query_index = torch.randn(1, 2, 64, 8, requires_grad=True)
    key_index = torch.randn(1, 1, 64, 8, requires_grad=True)
    weights = torch.ones(1, 2, 64, requires_grad=True)
    optimizer = torch.optim.Adam([query_index, key_index, weights], 0.05)
    dense = nsimplex.attention(query, [key], [key], return_lse=True)[1]

    def retained():
        table = nsimplex.topk_keys(query_index, key_index, 8, weights=weights)
        mask = torch.zeros(1, 64, 64, dtype=torch.bool).scatter(2, table, True)[:, None]
        return nsimplex.retained_mass(
            nsimplex.attention(query, [key], [key], mask=mask, return_lse=True)[1], dense
        )

    losses, before = [], retained()
    for _ in range(150):
        loss = nsimplex.indexer_loss(query_index, key_index, query, [key], weights=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0] and retained() > before + 0.1


def test_once_differentiable():
    inputs, layer, options = make("warm-up")
    with pytest.raises(RuntimeError, match="once differentiable"):
        torch.autograd.grad(
            call(nsimplex.indexer_loss, inputs, layer, options), inputs, create_graph=True
        )


def test_nothing_to_attend_to():
    inputs, layer, options = make("chosen")
    options["indices"] = torch.full_like(options["indices"], -1)
    loss = call(nsimplex.indexer_loss, inputs, layer, options)
    assert loss == 0 and all(not g.any() for g in torch.autograd.grad(loss, inputs))
    empty = [torch.zeros(2, 1, 0, 4, requires_grad=True) for _ in range(2)]
    assert nsimplex.indexer_loss(*empty, empty[0].detach(), [empty[1].detach()]) == 0


@pytest.mark.parametrize("scores", ["relu", "softmax"])
def test_extreme_logits(scores):
    """Where softmax scores underflow, KL stays finite."""
    inputs, layer, _options = make("warm-up causal", torch.float32)
    inputs = [(1e3 * t.detach()).requires_grad_() for t in inputs[:2]]
    loss = nsimplex.indexer_loss(*inputs, *layer, scores=scores, causal=True)
    assert math.isfinite(loss.item())
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, inputs))


I, L = torch.zeros(2, 2, 5, 4), torch.zeros(2, 4, 5, 6)


@pytest.mark.parametrize(
    "arguments, options, error, words",
    [
        (
            (I, I[:, :1, :3], L, [L]),
            {},
            ValueError,
            r"keys\[0\]: expected the length of key_index, 3, got 5",
        ),
        (
            (I, I, L[:, :, :4], [L]),
            {},
            ValueError,
            "query: expected batch and length of query_index",
        ),
        ((I, I, L, []), {}, ValueError, "keys: expected 1 to 8"),
        (
            (I, I[..., :2], L, [L]),
            {},
            ValueError,
            r"\[indexer_loss\] key_index: expected the query's channels 4",
        ),
        ((I, I, L, [L]), dict(scores="dot"), ValueError, "scores: expected 'relu' or 'softmax'"),
        ((I, I, L, [L]), dict(lse=I[..., 0]), ValueError, "lse: expected none with scores 'relu'"),
        (
            (I, I, L, [L]),
            dict(pattern="walk"),
            ValueError,
            "pattern: expected 'product' or 'path', got 'walk'",
        ),
        ((I, I, L, [L]), dict(pattern="path"), ValueError, "pattern: 'path' needs indices"),
        ((I, I, L, [L]), dict(indices=torch.zeros(1, 5, 0).long()), ValueError, "k at least 1"),
        (
            (I, I, L, [L]),
            dict(indices=torch.zeros(1, 4, 2).long()),
            ValueError,
            "indices: expected shape",
        ),
        (
            (I, I, L, [L]),
            dict(indices=torch.zeros(1, 5, 2)),
            TypeError,
            "indices: expected int64, got Float",
        ),
        (
            (I, I, L, [L]),
            dict(indices=torch.full((1, 5, 2), 5)),
            ValueError,
            "indices: expected -1 to 4, got 5",
        ),
        ((I, I, L, [L]), dict(form="dot"), ValueError, "form"),
    ],
)
def test_errors(arguments, options, error, words):
    with pytest.raises(error, match=words):
        nsimplex.indexer_loss(*arguments, **options)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    "wanted, name", [([True, True, True, False], "weights"), ([True, True, False, True], "lse")]
)
def test_a_gradient_of_what_was_not_given_is_refused(device, wanted, name):
    own = [tensor.to(device) for tensor in (I, I, L, L)]
    with pytest.raises(ValueError, match=f"output_mask: expected false for {name}"):
        torch.ops.nsimplex.indexer_loss_gradients(
            own[0], own[1], own[2], [own[3]], output_mask=wanted
        )
