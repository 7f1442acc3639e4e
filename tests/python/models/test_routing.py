"""Modules that choose keys and tokens."""

import pytest
import torch
from torch.autograd import gradcheck

import nsimplex
from nsimplex.nn import ExpertChoice, Indexer, IndexSource, SimplicialAttention


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def choice(tokens=3, sigmoid=False, **layer):
    torch.manual_seed(1)
    return ExpertChoice(
        SimplicialAttention(12, 2, **layer), tokens=tokens, sigmoid=sigmoid
    ).double()


@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_expert_choice_by_hand(sigmoid, order):
    module, x = choice(sigmoid=sigmoid, order=order), draw(2, 8, 12)
    y = module(x)
    scores = module.router(x)[..., 0]
    for b in range(2):
        chosen = scores[b].topk(3).indices.sort().values
        weight = scores[b, chosen].sigmoid() if sigmoid else scores[b, chosen]
        expected = x[b].index_add(
            0, chosen, module.attention(x[b : b + 1, chosen])[0] * weight[:, None]
        )
        torch.testing.assert_close(y[b], expected)


def test_equal_scores_go_to_the_earlier_token():
    module = choice(tokens=2)
    torch.nn.init.zeros_(module.router.weight)
    assert module.choose(module.router(draw(1, 6, 12))[..., 0])[0].tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "tokens, kept",
    [(2, [2, 2, 1, 0]), (0.4, [3, 2, 1, 0]), (1.0, [7, 4, 1, 0]), (99, [7, 4, 1, 0])],
)
def test_padding_is_never_chosen(tokens, kept):
    module, x, lengths = choice(tokens=tokens), draw(4, 7, 12), torch.tensor([7, 4, 1, 0])
    padding = torch.arange(7) >= lengths[:, None]
    clean = module(x, lengths)
    dirty = module(x.masked_fill(padding[..., None], torch.nan), lengths)
    assert torch.equal(dirty[~padding], clean[~padding]) and dirty[padding].isnan().all()
    assert ((clean != x).any(-1).sum(-1)).tolist() == kept
    dirty[~padding].sum().backward()
    assert all(p.grad.isfinite().all() for p in module.parameters())


def test_shares_are_rounded_up_as_decimals_are():
    """One rule with lengths and without: K of n hundredths or thousandths of T tokens, which the
    layer then takes."""
    lengths = torch.arange(0, 2001)
    for parts in (100, 1000):
        for n in range(1, parts + 1, 1 if parts == 100 else 7):
            module = ExpertChoice.__new__(ExpertChoice)
            torch.nn.Module.__init__(module)
            module.tokens = n / parts
            exact = (lengths * n + parts - 1) // parts
            assert torch.equal(module._count(lengths), exact)
            assert [module._count(int(t)) for t in lengths[:: 1 if n == 7 else 97]] == exact[
                :: 1 if n == 7 else 97
            ].tolist()


@pytest.mark.parametrize(
    "share, length, kept",
    [(0.07, 100, 7), (0.15, 100, 15), (0.29, 100, 29), (0.1, 30, 3), (1e-9, 5, 1)],
)
def test_a_share_with_and_without_lengths(share, length, kept):
    module, x = choice(tokens=share), draw(1, length, 12)
    out = module(x)
    torch.testing.assert_close(out, module(x, torch.tensor([length])))
    assert int((out != x).any(-1).sum()) == kept


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_residual_keeps_its_dtype_under_autocast(dtype):
    module, x = choice(tokens=3, order=2).float(), draw(2, 6, 12, dtype=torch.float32)
    with torch.autocast("cpu", dtype=dtype):
        out = module(x, torch.tensor([6, 4]))
    assert out.dtype == torch.float32 and torch.equal(out[1, 4:], x[1, 4:])
    torch.testing.assert_close(out, module(x, torch.tensor([6, 4])), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("lengths", [None, torch.tensor([6, 3])])
def test_gradients_with_the_choice_held(lengths):
    """Small steps do not change who is chosen."""
    module, x = (
        choice(rotary=True, form="determinant", window=[(3, 1)] * 2),
        draw(2, 6, 12).requires_grad_(),
    )
    assert gradcheck(
        lambda x, w: torch.func.functional_call(module, {"router.weight": w}, (x, lengths)),
        (x, module.router.weight.detach().clone().requires_grad_()),
    )


def test_chosen_tokens_keep_window_and_adjacency():
    x = draw(1, 9, 12)
    module = choice(tokens=5, window=[(3, 2), (2, 0)])
    layer, scores = module.attention, module.router(x)[..., 0]
    flags = draw(9, 9, seed=3) > -0.5
    chosen = scores[0].topk(5).indices.sort().values
    place = torch.arange(9)
    first = (place > place[:, None] - 3) & (place <= place[:, None] + 2) & flags
    second = (place > place[:, None] - 2) & (place <= place[:, None]) & flags
    mask = first[chosen][:, chosen, None] & second[chosen][:, None, chosen]
    heads = nsimplex.attention(*layer._heads_of(x[:, chosen]), mask=mask)
    out = layer.output(heads.transpose(1, 2).flatten(2))
    expected = x.index_add(1, chosen, out * scores[:, chosen, None])
    torch.testing.assert_close(module(x, adjacency=flags), expected)
    batched = module(torch.cat([x, x]), adjacency=torch.stack([flags, flags]))
    torch.testing.assert_close(batched[1:], expected)


@pytest.mark.parametrize(
    "layer, given, says",
    [
        ("own", dict(adjacency=torch.ones(3, 9, 9).bool()), "adjacency: expected one matrix or 2"),
        (
            "other",
            dict(positions=torch.arange(9).expand(2, 9)),
            "positions: expected None, because",
        ),
        ("other", dict(adjacency=torch.ones(9, 9).bool()), "adjacency: expected None, because"),
    ],
)
def test_what_the_layer_does_not_take_is_refused(layer, given, says):
    module = choice(tokens=5)
    if layer == "other":
        module = nsimplex.nn.ExpertChoice(torch.nn.Linear(12, 12).double(), tokens=5, dim=12)
    with pytest.raises(ValueError) as caught:
        module(draw(2, 9, 12), **given)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_causal_layers_are_refused():
    layer = SimplicialAttention(12, 2, causal=True)
    with pytest.raises(ValueError, match="allow_leak"):
        ExpertChoice(layer, tokens=2)
    leaking = ExpertChoice(layer, tokens=2, allow_leak=True).double()
    x = draw(1, 6, 12)
    chosen = leaking.choose(leaking.router(x)[..., 0])[0][0]
    # Among the chosen the mask still holds: the first of them sees itself alone.
    first = x[:, chosen[:1]]
    torch.testing.assert_close(
        leaking(x)[:, chosen[:1]], first + leaking.router(first) * layer(first)
    )


@pytest.mark.parametrize("tokens", [0, -1, 0.0, 1.5])
def test_bad_numbers_of_tokens(tokens):
    with pytest.raises(ValueError, match="tokens: expected an int of at least 1 or a share"):
        ExpertChoice(SimplicialAttention(12, 2), tokens=tokens)


def test_light_indexer_is_the_composed_call():
    torch.manual_seed(2)
    indexer, x = Indexer(12, 3, index_dim=4, rotary=True).double(), draw(2, 9, 12)
    query = nsimplex.rotary(indexer.query(x).view(2, 9, 3, 4).transpose(1, 2))
    key = nsimplex.rotary(indexer.key(x)[:, None])
    weights = indexer.weight(x).transpose(1, 2)
    assert torch.equal(
        indexer(x, 4, causal=True), nsimplex.topk_keys(query, key, 4, weights=weights, causal=True)
    )


def test_decoding_chooses_what_the_whole_sequence_does():
    """Keys of earlier tokens, kept, and the projections of the new one."""
    indexer, x = Indexer(12, 3, index_dim=4, rotary=True, scores="softmax").double(), draw(2, 9, 12)
    whole, kept = indexer(x, 4, causal=True), []
    for t in range(9):
        query, key, weights, _ = indexer.project(x[:, t : t + 1], first_position=t)
        kept.append(key)
        table = nsimplex.topk_keys(
            query, torch.cat(kept, 2), 4, weights=weights, causal=True, scores="softmax"
        )
        assert torch.equal(table, whole[:, t : t + 1])


@pytest.mark.parametrize("scores", ["relu", "softmax"])
@pytest.mark.parametrize("learned", [False, True])
def test_reuse(scores, learned):
    indexer = Indexer(12, 4, source="reuse", scores=scores, learned=learned).double()
    assert len(list(indexer.parameters())) == learned
    x, query, key = draw(2, 9, 12), draw(2, 4, 9, 6, seed=1), draw(2, 2, 9, 6, seed=2)
    lse = nsimplex.attention(query, [key], [key], causal=True, return_lse=True)[1]
    tables = [
        indexer(x, 3, causal=True, source=IndexSource(query, key, given)) for given in (None, lse)
    ]
    assert torch.equal(*tables)
    if not learned:
        plain = nsimplex.topk_keys(query, key, 3, scores=scores, causal=True)
        assert torch.equal(tables[0], plain)
    with pytest.raises(ValueError, match="a first layer has none"):
        indexer(x, 3)


@pytest.mark.parametrize("scores", ["relu", "softmax"])
@pytest.mark.parametrize("source", ["light", "reuse"])
@pytest.mark.parametrize("chosen", [False, True])
def test_loss_reaches_the_parameters_alone(scores, source, chosen):
    torch.manual_seed(3)
    indexer = Indexer(12, 4, index_dim=4, source=source, scores=scores, learned=True).double()
    x, query, key = (
        t.requires_grad_()
        for t in (draw(2, 9, 12), draw(2, 4, 9, 6, seed=1), draw(2, 4, 9, 6, seed=2))
    )
    given = IndexSource(query, key) if source == "reuse" else None
    indices = indexer(x, 4, causal=True, source=given) if chosen else None
    loss = indexer.loss(x, query, [key, key], causal=True, source=given, indices=indices)
    loss.backward()
    assert all(p.grad.abs().max() > 0 for p in indexer.parameters())
    assert x.grad is None and query.grad is None and key.grad is None


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(dim=0), "dim: expected at least 1, got 0"),
        (dict(heads=0), "heads: expected at least 1, got 0"),
        (dict(index_dim=0), "index_dim: expected at least 1, got 0"),
        (dict(source="other"), "source: expected light or reuse, got 'other'"),
        (dict(scores="dot"), "scores: expected relu or softmax, got 'dot'"),
        (dict(index_dim=3, rotary=True), "expected source light and an even index_dim"),
        (dict(source="reuse", rotary=True), "expected source light and an even index_dim"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError) as error:
        Indexer(**{"dim": 12, **options})
    assert words in str(error.value)
