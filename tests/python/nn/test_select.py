"""Selections of tuples against dense attention under the mask of the same tuples."""

import copy
import itertools
import subprocess
import sys

import pytest
import torch
from layer_cases import (
    DIM,
    EDGES,
    HEADS,
    SELECTIONS,
    T,
    graph,
    heads_by_hand,
    joined_by_hand,
    layer,
    loss_of,
    tokens,
)

import nsimplex
from nsimplex import nn

LOOPS = torch.eye(T, dtype=torch.bool)
CAUSAL = torch.ones(T, T).tril().bool()


def mask_of(*pairs):
    """bool, [B, 1, T, T_1, .., T_N] of one table of pairs [B, T, T] per axis."""
    mask = torch.ones((), dtype=torch.bool)
    for axis, pair in enumerate(pairs):
        shape = [*pair.shape[:2]] + [1] * len(pairs)
        shape[2 + axis] = pair.size(2)
        mask = mask & pair.reshape(shape)
    return mask.unsqueeze(1)


def pairs_of(table):
    """The flags [B, T, T] of a table of keys."""
    flags = torch.zeros(*table.shape[:2], T + 1, dtype=torch.bool)
    return flags.scatter(2, table.masked_fill(table < 0, T), True)[..., :T]


def by_mask(module, x, *pairs):
    q, keys, values = heads_by_hand(module, x)
    pairs = pairs * (module.order if len(pairs) == 1 else 1)
    return joined_by_hand(module, nsimplex.attention(q, keys, values, mask=mask_of(*pairs)))


def window(left):
    place = torch.arange(T)
    return (place > place[:, None] - left)[None] & CAUSAL


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("loops", [True, False])
def test_neighbours_are_the_dense_mask(order, loops):
    linked = graph() | LOOPS if loops else graph()
    x = tokens()
    for given in (graph(), graph()[None], graph().to_sparse_csr(), EDGES, EDGES.repeat(2, 1)):
        module = nn.SimplicialAttention(
            DIM, HEADS, order=order, select=nn.Neighbours(given, self_loops=loops), bias=True
        ).double()
        torch.testing.assert_close(module(x), by_mask(module, x, linked[None]))
        assert "neighbours" not in module.state_dict()
        late = nn.SimplicialAttention(
            DIM, HEADS, order=order, select=nn.Neighbours(self_loops=loops), bias=True
        ).double()
        late.load_state_dict(module.state_dict())
        torch.testing.assert_close(late(x, adjacency=given), module(x))


def test_a_graph_per_sequence():
    module, x = layer("neighbours", causal=False), tokens()
    linked = torch.rand(2, T, T, generator=torch.Generator().manual_seed(1)) > 0.6
    torch.testing.assert_close(module(x, adjacency=linked), by_mask(module, x, linked | LOOPS))
    with pytest.raises(ValueError, match=r"adjacency: expected bool of shape \[7, 7\]"):
        module(x, adjacency=linked.expand(2, T, T).repeat(2, 1, 1)[:3])


def test_a_causal_layer_sees_earlier_neighbours():
    module, x = layer("neighbours", causal=True), tokens()
    linked = (graph() | LOOPS) & CAUSAL
    torch.testing.assert_close(module(x), by_mask(module, x, linked[None]))


def test_edges_of_more_nodes_than_named():
    select = nn.Neighbours(torch.tensor([[0, 1], [2, 0]]), nodes=T)
    module = nn.SimplicialAttention(DIM, HEADS, select=select).double()
    linked = torch.zeros(T, T, dtype=torch.bool)
    linked[0, 1] = linked[2, 0] = True
    torch.testing.assert_close(module(tokens()), by_mask(module, tokens(), (linked | LOOPS)[None]))
    with pytest.raises(ValueError, match="adjacency: expected nodes 0 to 6, got 0 to 9"):
        module(tokens(), adjacency=torch.tensor([[0, 9]]))


def test_edges_of_pytorch_geometric():
    """Rows of sources and targets: a target attends to its sources."""
    x, index = tokens(), EDGES.flip(1).t()
    late = nn.SimplicialAttention(DIM, HEADS, select=nn.Neighbours()).double()
    expected = by_mask(late, x, (graph() | LOOPS)[None])
    block = nn.TransformerBlock(late, nn.FeedForward(DIM).double()).double()
    for given in (index, index.int()):
        torch.testing.assert_close(late(x, edge_index=given), expected)
        torch.testing.assert_close(
            block(x, edge_index=given), block(x, adjacency=graph()), rtol=1e-9, atol=1e-9
        )
        select = nn.Neighbours(edge_index=given, nodes=T)
        assert torch.equal(select.adjacency, EDGES) and select.edge_index is None
        early = nn.SimplicialAttention(DIM, HEADS, select=select).double()
        early.load_state_dict(late.state_dict())
        torch.testing.assert_close(copy.deepcopy(early)(x), expected)
    two = torch.tensor([[0, 1], [2, 3]])  # only the argument's name tells the two forms apart
    assert nn.Neighbours(two).adjacency.tolist() == [[0, 1], [2, 3]]
    assert nn.Neighbours(edge_index=two).adjacency.tolist() == [[2, 0], [3, 1]]
    hint = r"\[2, 9\]; \[2, E\] of PyTorch Geometric is the argument edge_index"
    for call in (lambda: nn.Neighbours(index), lambda: late(x, adjacency=index)):
        with pytest.raises(ValueError, match=hint):
            call()
    for call, words in (
        (lambda: nn.Neighbours(graph(), edge_index=index), "given beside adjacency"),
        (lambda: late(x, adjacency=graph(), edge_index=index), "given beside adjacency"),
        (lambda: nn.Neighbours(edge_index=EDGES), r"expected int64 \[2, E\], got "),
        (lambda: nn.Neighbours(edge_index=index.double()), r"expected int64 \[2, E\], got "),
    ):
        with pytest.raises(ValueError, match=rf"\] edge_index: {words}"):
            call()


@pytest.mark.parametrize("name", ["topk", "topk per axis", "path", "union", "union per axis"])
@pytest.mark.parametrize("batch, length", [(2, 0), (0, T), (0, 0)])
def test_no_tokens(name, batch, length):
    module = layer(name)
    x = tokens(batch, length=length).requires_grad_()
    out = module(x)
    (out.sum() + module.auxiliary_loss).backward()
    assert out.shape == (batch, length, DIM) and x.grad.shape == x.shape
    assert module.auxiliary_loss == 0


@pytest.mark.parametrize("name", ["topk", "topk per axis", "union", "union per axis"])
def test_chosen_keys_are_the_dense_mask(name):
    module, x = layer(name), tokens()
    select = module.select
    parts = select.parts if isinstance(select, nn.Union) else [select]
    fixed = torch.zeros(1, T, T, dtype=torch.bool)
    ks = None
    for part in parts:
        if isinstance(part, nn.Window):
            fixed = fixed | window(part.left)
        elif isinstance(part, nn.Sinks):
            fixed = fixed | ((torch.arange(T) < part.count) & CAUSAL)
        else:
            ks = [part.k] * 2 if isinstance(part.k, int) else part.k
    chosen = module.indexer(x, max(ks), causal=True)
    pairs = [fixed | pairs_of(chosen[..., :k]) for k in ks]
    torch.testing.assert_close(module(x), by_mask(module, x, *pairs))
    module(x).square().sum().backward()
    ours = module.qkv.weight.grad.clone()
    module.zero_grad()
    by_mask(module, x, *pairs).square().sum().backward()
    torch.testing.assert_close(ours, module.qkv.weight.grad)


def test_a_union_with_a_graph_both_ways():
    torch.manual_seed(1)
    select = nn.Neighbours(graph()) | nn.Window(2, 1)
    module, x = nn.SimplicialAttention(DIM, HEADS, order=3, select=select).double(), tokens()
    place = torch.arange(T)
    near = (place > place[:, None] - 2) & (place <= place[:, None] + 1)
    pairs = (graph() | LOOPS | near)[None]
    torch.testing.assert_close(module(x), by_mask(module, x, pairs))
    other = torch.rand(2, T, T, generator=torch.Generator().manual_seed(1)) > 0.6
    torch.testing.assert_close(module(x, adjacency=other), by_mask(module, x, other | LOOPS | near))


@pytest.mark.parametrize("name", ["topk", "path", "neighbours", "union", "union per axis"])
def test_padding_is_not_seen(name):
    """Key lengths, or a key mask of the same keys: the real rows are those of the short one."""
    lengths = torch.tensor([T, 4])
    module, x = layer(name, causal=name != "neighbours"), tokens()
    adjacency = graph()
    for given in (
        dict(key_lengths=lengths),
        dict(key_masks=torch.arange(T) < lengths[:, None]),
    ):
        padded = module(
            x.masked_fill(torch.arange(T)[:, None] >= lengths[:, None, None], 7), **given
        )
        short = x[1:, :4]
        graph_of = dict(adjacency=adjacency[:4, :4]) if name == "neighbours" else {}
        torch.testing.assert_close(padded[:1], module(x[:1]))
        torch.testing.assert_close(padded[1:, :4], module(short, **graph_of))


@pytest.mark.parametrize("name", ["topk", "path", "union"])
def test_the_loss_ignores_padding(name):
    lengths, x = torch.tensor([4, 4]), tokens()
    module = layer(name)
    module(x[:, :4])
    expected = module.auxiliary_loss
    for warms_up in (False, True):
        module.warms_up = warms_up
        module(x[:, :4])
        expected = module.auxiliary_loss
        module(x, key_lengths=lengths)
        torch.testing.assert_close(module.auxiliary_loss, expected)


@pytest.mark.parametrize("name", ["topk", "path", "union", "neighbours"])
def test_packed_documents_are_alone(name):
    module, x = layer(name, causal=name != "neighbours"), tokens()
    packed = module(x, cu_seqlens=torch.tensor([0, 3, T]))
    if name == "neighbours":
        same = torch.block_diag(torch.ones(3, 3), torch.ones(4, 4)).bool()
        expected = by_mask(module, x, ((graph() | LOOPS) & same)[None])
    else:
        expected = torch.cat([module(x[:, :3]), module(x[:, 3:])], 1)
    torch.testing.assert_close(packed, expected)


@pytest.mark.parametrize("name", ["topk", "union", "path"])
def test_an_adjacency_restricts_the_choice(name):
    module, x = layer(name), tokens()
    linked = (torch.rand(T, T, generator=torch.Generator().manual_seed(4)) > 0.4) | LOOPS
    kept = module(x, adjacency=linked)
    chosen = module.indexer(x, 3, causal=True, adjacency=linked)
    if name == "topk":
        torch.testing.assert_close(kept, by_mask(module, x, pairs_of(chosen)))
        torch.testing.assert_close(module(x, adjacency=linked.to_sparse_csr()), kept)
    elif name == "union":
        table = module.indexer(x, 2, causal=True, adjacency=linked)
        fixed = (window(2) | ((torch.arange(T) < 1) & CAUSAL)) & linked
        torch.testing.assert_close(kept, by_mask(module, x, fixed | pairs_of(table)))
    else:
        q, keys, values = heads_by_hand(module, x)
        out = nsimplex.sparse_attention(q, keys, values, chosen, pattern="path")
        torch.testing.assert_close(kept, joined_by_hand(module, out))


def test_linear_layers_skip_padding():
    x, lengths = tokens(), torch.tensor([T, 4])
    for features in ("elu", "relu", None, torch.exp):
        torch.manual_seed(1)
        module = nn.SimplicialAttention(
            DIM, HEADS, select=nn.Linear(features), causal=True, norm="qk"
        ).double()
        padded = module(x, key_lengths=lengths)
        torch.testing.assert_close(padded[1:, :4], module(x[1:, :4]))
        kept = torch.arange(T) < lengths[:, None]
        torch.testing.assert_close(module(x, key_masks=kept), padded)


@pytest.mark.parametrize("name", SELECTIONS)
def test_among_some_tokens_of_a_sequence(name):
    """The rows at ``positions`` attend as in the sequence with all other tokens masked."""
    module, x = layer(name, causal=name != "neighbours"), tokens()
    positions = torch.tensor([[0, 2, 3, 5], [1, 2, 4, 6]])
    some = x.gather(1, positions[..., None].expand(-1, -1, DIM))
    kept = torch.zeros(2, T, dtype=torch.bool).scatter(1, positions, True)
    if "union" in name:  # the sinks and the window are those of the sequence
        pairs = kept[:, None].expand(-1, T, -1)
        expected = module(x, adjacency=pairs)
    else:
        expected = module(x, key_masks=kept)
    expected = expected.gather(1, positions[..., None].expand(-1, -1, DIM))
    torch.testing.assert_close(module(some, positions=positions), expected)


@pytest.mark.parametrize("name", SELECTIONS)
def test_decoding_is_the_whole_sequence(name):
    module, x = layer(name, causal=True).requires_grad_(False), tokens()
    if name == "neighbours":
        with pytest.raises(ValueError, match="select: Neighbours has no cache"):
            module.make_cache()
        return
    whole = module(x)
    for cuts in ([0, 3, 4, T], [*range(T + 1)], [0, T]):
        cache = module.make_cache()
        steps = [module(x[:, a:b], cache=cache) for a, b in itertools.pairwise(cuts)]
        torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(causal=False), "cache: only causal self-attention"),
        (
            dict(select=nn.Neighbours(graph()) | nn.Window(2)),
            "select: Neighbours has no cache",
        ),
    ],
)
def test_layers_without_a_cache_say_so(options, words):
    module = nn.SimplicialAttention(DIM, HEADS, **dict(causal=True) | options)
    with pytest.raises(ValueError, match=words):
        module.make_cache()


@pytest.mark.parametrize(
    "options",
    [
        dict(normalizer="softmax_sink"),
        dict(augment=True),
        dict(normalizer="relu"),
        dict(bias=True),
        dict(distinct="with_query", window=3),
        dict(face=True, window=[2, 4]),
        dict(orders=[1, 2, 2, 3], window=[2, 3, 5]),
    ],
    ids=str,
)
def test_options_decode(options):
    module, x = layer("window", **dict(window=[3, 4]) | options).requires_grad_(False), tokens()
    cache = module.make_cache()
    steps = [module(x[:, a:b], cache=cache) for a, b in ((0, 4), (4, 5), (5, T))]
    torch.testing.assert_close(torch.cat(steps, 1), module(x))


def test_dropout_and_a_cache():
    module = layer("window", dropout=0.1).requires_grad_(False)
    cache = module.make_cache()
    with pytest.raises(ValueError, match="dropout: expected evaluation mode with a cache"):
        module(tokens(), cache=cache)
    module.eval()(tokens(), cache=cache)
    with pytest.raises(ValueError, match="key_lengths and mask: not with a cache"):
        module(tokens(), key_lengths=torch.ones(2).long(), mask=graph(), cache=cache)


def test_the_names_of_the_selections():
    """SparseAttention and SeparableAttention are SimplicialAttention with a selection."""
    x = tokens(dtype=torch.float32)
    light = dict(heads=2, index_dim=4)
    for former, select in (
        (nn.SparseAttention(DIM, HEADS, keys=3, indexer=light, loss_weight=0.5), nn.TopK(3, light)),
        (nn.SparseAttention(DIM, HEADS, keys=3, pattern="path", indexer=light), nn.Path(3, light)),
        (nn.SeparableAttention(DIM, HEADS, features="relu"), nn.Linear("relu")),
    ):
        module = nn.SimplicialAttention(DIM, HEADS, select=select)
        module.load_state_dict(former.state_dict())
        assert torch.equal(module(x), former(x))


def test_a_layer_warms_up_under_a_union():
    module, x = layer("union"), tokens()
    module.warms_up = True
    torch.testing.assert_close(module(x), by_mask(module, x, CAUSAL[None]))
    loss_of(module, module(x)).backward()
    assert all(p.grad.abs().max() > 0 for p in module.indexer.parameters())
    module.warms_up, module.measures_mass = False, True
    module(x)
    assert 0 < module.retained_mass < 1
    learned = layer("topk", reduce="mlp")
    learned.warms_up = True
    with pytest.raises(ValueError, match="warms_up: dense attention has no reduce 'mlp'"):
        learned(x)


@pytest.mark.parametrize(
    "select",
    [
        nn.TopK(3),
        nn.TopK((2, 3)),
        nn.Path(2),
        nn.Window(2) | nn.TopK(2),
        nn.Window(2) | nn.Sinks(1) | nn.TopK((2, 1)),
        nn.Neighbours(torch.ones(5, 5, dtype=torch.bool)) | nn.TopK(2),
    ],
    ids=lambda each: f"{each}"[:40],
)
def test_a_batch_may_be_empty(select):
    layer = nn.SimplicialAttention(8, 2, causal=True, select=select)
    mask = torch.ones(0, 5, dtype=torch.bool)
    for more in ({}, dict(key_masks=mask), dict(adjacency=torch.ones(0, 5, 5, dtype=torch.bool))):
        if "adjacency" not in more or "Neighbours" not in repr(select):
            out = layer(torch.randn(0, 5, 8, requires_grad=True), **more)
            assert out.shape == (0, 5, 8)
            out.sum().backward()


def test_a_graph_of_edges_warns_of_nothing(subprocess_env):
    """In a process of its own, since torch warns once."""
    code = (
        "import torch; from nsimplex import nn;"
        "nn.SimplicialAttention(8, 2, select=nn.Neighbours(torch.tensor([[0, 1], [2, 0]])))"
    )
    call = [sys.executable, "-W", "error::UserWarning", "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, env=subprocess_env)
    assert (done.returncode, done.stderr) == (0, "")
