"""Encoders of higher-order transformers: what the theorems of their paper say, and the C++ modules'
arithmetic."""

import pytest
import torch
from equivariant_definition import draw
from equivariant_lists import KINDS, batch, some_of

import nsimplex
from nsimplex import equivariant_encoder_plan, equivariant_linear_sparse, equivariant_plan
from nsimplex.graph import complete_tuples, edge_tuples, tuple_batch
from nsimplex.nn import EquivariantEncoder, RandomFeatures

ORDERS = [(k, l) for k in range(4) for l in range(4) if 1 <= k + l <= 6 and (k, l) != (0, 0)]


def lists(k, l, share=0.6, nodes=(3, 4), symmetry="ordered"):
    kinds = KINDS[symmetry](k), KINDS[symmetry](l)
    own = [
        batch(
            kind, [some_of(kind, n, share, seed + 3 * side) for seed, n in enumerate(nodes)], nodes
        )
        for side, kind in enumerate(kinds)
    ]
    return kinds, own


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("k, l", ORDERS)
@pytest.mark.parametrize(
    "form, normalise", [("softmax", True), ("kernel", True), ("kernel", False)]
)
def test_theorem_1_a_linear_layer_is_an_encoder(k, l, form, normalise):
    """Q = K = 0, attention to one linear map and an MLP that is a bias: L_{k->l}, by mean or,
    unnormalised, by sum."""
    (input, output), own = lists(k, l, share=0.6 if k + l < 5 else 0.2)
    layer = EquivariantEncoder(
        input,
        output,
        3,
        2,
        head_dim=4,
        form=form,
        normalise=normalise,
        encoder="paper",
        mlp="pointwise",
    )
    plan = equivariant_encoder_plan(*own, form=form, mlp="pointwise")
    attention = layer.attention
    with torch.no_grad():
        for name in ("query_weight", "query_bias", "key_weight", "key_bias"):
            getattr(attention, name).zero_()
        layer.mlp_out.weight.zero_()
        layer.mlp_out.bias.normal_()
        # phi(0) = 1e-3: coefficients of 1.
        scale = 1.0
        if not normalise:
            scale = 1 / (attention.features.directions.size(1) * 1e-6)
        classes = nsimplex.equivariant_classes(input, output)
        weight = torch.empty(len(classes), 3, 2)
        light = iter(attention.light.weight)
        attends = iter(zip(attention.value_weight, attention.output_weight))
        for to, each in zip(weight, classes):
            if each.light:
                to.copy_(next(light))
            else:
                value, out = next(attends)
                out *= scale
                to.copy_(value @ out / scale)
    wanted = equivariant_linear_sparse(
        x := draw(own[0].tuples.size(0), 3),
        weight,
        layer.mlp_out.bias,
        equivariant_plan(*own),
        pooling="mean" if normalise else "sum",
    )
    torch.testing.assert_close(layer(x, plan), wanted)


def test_theorem_2_message_passing_is_an_encoder():
    """One step x_i <- U(x_i, sum over edges (i, j) of M(x_i, x_j, e_ij)) with M and U
    one-hidden-layer ReLU MLPs."""
    channels, hidden = 2, 5
    generator = torch.Generator().manual_seed(0)
    edges = torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1], [0, 3], [3, 0], [3, 1]])
    graph = edge_tuples(edges, 5, both_directions=False, loops=True).batch
    i, j = graph.tuples.T
    x, e = (torch.randn(n, channels, generator=generator) for n in (5, len(graph.tuples)))
    loop = i == j
    e[loop] = 0
    rows = torch.cat([x[i], x[j], e], 1)
    width = rows.size(1)

    def mlp(inputs):
        return [
            torch.randn(a, b, generator=generator)
            for a, b in ((inputs, hidden), (hidden, channels))
        ]

    (m1, m2), (u1, u2) = mlp(3 * channels), mlp(2 * channels)
    link = ~loop
    messages = torch.zeros(5, channels).index_add(0, i[link], torch.relu(rows[link] @ m1) @ m2)
    wanted = torch.relu(torch.cat([x, messages], 1) @ u1) @ u2

    options = dict(encoder="paper", form="kernel", normalise=False, mlp="pointwise", hidden=hidden)
    plan = equivariant_encoder_plan(graph, graph, form="kernel", mlp="pointwise")
    light = [each.name for each in nsimplex.equivariant_classes(2, 2, "light")]
    attending = [each.own.name for each in nsimplex.equivariant_attention_classes(2, 2)]
    loops, links = 0, 1  # patterns of a pair
    # The first encoder keeps what a pair has, and its MLP adds the message of a link.
    first = EquivariantEncoder(2, 2, width, width + channels, **options)
    # The second keeps x at a loop and sums the messages of its links with q . k = 1; its MLP adds U
    # of both.
    second = EquivariantEncoder(2, 2, width + channels, 3 * channels, **options)
    with torch.no_grad():
        for parameter in (*first.parameters(), *second.parameters()):
            parameter.zero_()
        for own in ("{i1 j1}{i2 j2}", "{i1 i2 j1 j2}"):
            first.attention.light.weight[light.index(own), :, :width] = torch.eye(width)
        first.mlp_in.weight[links, :width] = m1
        first.mlp_out.weight[links, :, width:] = m2
        second.attention.light.weight[light.index("{i1 i2 j1 j2}"), :channels, :channels] = (
            torch.eye(channels)
        )
        local = attending.index("{i1 j1 j2}{i2}")
        second.attention.value_weight[local, width:, channels : 2 * channels] = torch.eye(channels)
        features = second.attention.features.directions.size(1)
        second.attention.output_weight[local] = torch.eye(3 * channels) / (
            features * 1e-6
        )  # phi(0) = 1e-3
        second.mlp_in.weight[loops, : 2 * channels] = u1
        second.mlp_out.weight[loops, :, 2 * channels :] = u2
    out = second(first(rows, plan), plan)
    torch.testing.assert_close(out[loop][:, 2 * channels :], wanted[i[loop]])


def test_sees_other_components():
    """What no message passing does: a gradient between nodes of two components."""
    graph = edge_tuples(torch.tensor([[0, 1], [2, 3]]), 4, loops=True).batch
    layer = EquivariantEncoder(2, 2, 3, 3)
    x = draw(len(graph.tuples), 3).requires_grad_()
    out = layer(x, equivariant_encoder_plan(graph, graph))
    first = (graph.tuples < 2).all(1)
    (grad,) = torch.autograd.grad(out[first].sum(), x)
    assert (grad[~first].abs().sum(1) > 0).all()


@pytest.mark.parametrize(
    "options", [{}, {"form": "kernel"}, {"mlp": "pointwise"}, {"encoder": "paper"}]
)
def test_renumbering_nodes_renumbers_the_output(options):
    layer = EquivariantEncoder(2, 2, 3, 4, heads=2, **options)
    (_, _), own = lists(2, 2, nodes=(5,))
    kept = {name: value for name, value in options.items() if name in ("form", "mlp")}
    x = draw(own[0].tuples.size(0), 3)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = [tuple_batch(order[each.tuples], 5) for each in own]
    torch.testing.assert_close(
        layer(x, equivariant_encoder_plan(*moved, **kept)),
        layer(x, equivariant_encoder_plan(*own, **kept)),
    )


def test_residual_and_dropout():
    graph = edge_tuples(torch.tensor([[0, 1], [1, 2]]), 3, loops=True).batch
    plan = equivariant_encoder_plan(graph, graph)
    layer = EquivariantEncoder(2, 2, 3, 3, residual=True, encoder="paper", dropout=0.5)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    x = draw(len(graph.tuples), 3)
    assert torch.equal(layer(x, plan), x)
    layer = EquivariantEncoder(2, 2, 3, 3, dropout=0.5)
    assert not torch.equal(layer(x, plan), layer(x, plan))
    layer.eval()
    assert torch.equal(layer(x, plan), layer(x, plan))


def test_random_features():
    features = RandomFeatures(8)
    assert features.directions.shape == (8, 16)  # floor(8 ln 8)
    unit = features.directions[:, :8] / features.directions[:, :8].norm(dim=0)
    torch.testing.assert_close(unit.T @ unit, torch.eye(8))
    before = features.directions.clone()
    features.redraw(torch.Generator().manual_seed(1))
    assert not torch.equal(before, features.directions)
    assert RandomFeatures(1).directions.shape == (1, 1)


BAD = {
    "heads: expected a divisor": lambda: EquivariantEncoder(1, 1, 4, 5, heads=2),
    "dropout: expected": lambda: EquivariantEncoder(1, 1, 4, 4, dropout=1.0),
    "residual: expected": lambda: EquivariantEncoder(1, 1, 4, 5, residual=True),
    "form: expected softmax, kernel or decoupled": lambda: EquivariantEncoder(
        1, 1, 4, 4, form="hard"
    ),
    "encoder: expected standard or paper": lambda: EquivariantEncoder(1, 1, 4, 4, encoder="old"),
    "mlp: expected automatic, lightweight or pointwise": lambda: EquivariantEncoder(
        1, 1, 4, 4, mlp="big"
    ),
    "normalise: expected True": lambda: EquivariantEncoder(1, 1, 4, 4, normalise=False),
    "features: expected directions": lambda: EquivariantEncoder(
        1, 1, 4, 4, form="kernel", features=RandomFeatures(3)
    ),
    "dim: expected at least 1, got 0": lambda: RandomFeatures(0),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_options(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_plans_of_other_layers_are_refused():
    one, two = (complete_tuples(torch.tensor([3]), order) for order in (1, 2))
    layer = EquivariantEncoder(1, 1, 3, 3)
    with pytest.raises(ValueError, match="plan: expected one of"):
        layer(draw(9, 3), equivariant_encoder_plan(two, one))
    with pytest.raises(ValueError, match="plan: expected one for"):
        layer(draw(3, 3), equivariant_encoder_plan(one, one, mlp="pointwise"))
