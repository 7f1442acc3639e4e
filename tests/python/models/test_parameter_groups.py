"""Groups of parameters whose learning rates fit models of every width."""

import copy
import math

import pytest
import torch

from nsimplex import nn
from nsimplex.nn import parameter_groups

LR, DECAY = 0.02, 0.1


def model(dim=32, order=2, tied=False, **options):
    made = nn.LanguageModelOptions(
        vocabulary=9, layers=1, dim=dim, heads=2, order=order, every=1, tied=tied, mlp_ratio=4,
        mlp="gelu", scale="unit", window=[4], **options,
    )  # fmt: skip
    return nn.LanguageModel(made, torch.Generator().manual_seed(1))


def rates(groups):
    """{name: (rate, decay)}."""
    return {n: (group["lr"], group["weight_decay"]) for group in groups for n in group["names"]}


@pytest.mark.parametrize("width", [32, 96])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_rates_of_mup(width, order):
    groups = parameter_groups(
        model(width, order), model(32, order), recipe="mup", lr=LR, weight_decay=DECAY
    )
    matrix = pytest.approx((LR * 32 / width, DECAY * width / 32))
    assert groups.muon == []
    assert rates(groups.adamw) == {
        "embedding.weight": (LR, 0),
        "blocks.0.attention_norm.weight": (LR, 0),
        "blocks.0.attention.qkv.weight": matrix,
        "blocks.0.attention.output.weight": matrix,
        "blocks.0.mlp_norm.weight": (LR, 0),
        "blocks.0.mlp.up.weight": matrix,
        "blocks.0.mlp.down.weight": matrix,
        "norm.weight": (LR, 0),
        "head.weight": matrix,
    }


@pytest.mark.parametrize("width", [32, 96])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_rates_of_muon(width, order):
    groups = parameter_groups(
        model(width, order), model(32, order), lr=LR, adamw_lr=0.003, weight_decay=DECAY
    )
    assert rates(groups.muon) == {
        "blocks.0.attention.qkv.weight": (LR, DECAY),
        "blocks.0.attention.output.weight": (LR, DECAY),
        "blocks.0.mlp.up.weight": (LR, DECAY),
        "blocks.0.mlp.down.weight": pytest.approx((LR / 2, DECAY * 2)),  # sqrt(1 / 4)
    }
    assert rates(groups.adamw) == {
        "embedding.weight": (0.003, 0),
        "blocks.0.attention_norm.weight": (0.003, 0),
        "blocks.0.mlp_norm.weight": (0.003, 0),
        "norm.weight": (0.003, 0),
        "head.weight": pytest.approx((0.003 * 32 / width, DECAY * width / 32)),
    }


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("width", [16, 64])
def test_a_step_of_muon_has_the_same_spectral_norm_at_every_width(width):
    torch.manual_seed(2)
    made = model(width)
    groups = parameter_groups(made, model(16), lr=LR)
    before = copy.deepcopy(dict(made.named_parameters()))
    optimizers = [torch.optim.Muon(groups.muon, ns_steps=30, ns_coefficients=(1.5, -0.5, 0.0)),
                  torch.optim.AdamW(groups.adamw)]  # fmt: skip
    tokens = torch.randint(9, (8, 33))
    made.loss(tokens[:, :-1], tokens[:, 1:]).backward()
    for each in optimizers:
        each.step()
    for name in groups.muon[0]["names"] + groups.muon[1]["names"]:
        old, new = before[name].detach(), made.get_parameter(name).detach()
        step = torch.linalg.matrix_norm(new - old, 2).item()
        assert step == pytest.approx(LR * math.sqrt(old.size(0) / old.size(1)), rel=0.05), name


def test_stacks_of_matrices_inputs_and_frozen_weights():
    def stack(width):
        made = torch.nn.Module()
        made.stack = torch.nn.Parameter(torch.empty(3, width, width))
        made.patterns = torch.nn.Parameter(torch.empty(5, width))
        made.inputs = torch.nn.Linear(7, width)
        made.frozen = torch.nn.Linear(width, width, bias=False).requires_grad_(False)
        return made

    found = parameter_groups(stack(64), stack(16), recipe="mup", lr=LR, weight_decay=DECAY)
    assert rates(found.adamw) == {
        "stack": (LR / 4, DECAY * 4),
        "patterns": (LR, DECAY),
        "inputs.weight": (LR, DECAY),  # its inputs do not grow
        "inputs.bias": (LR, 0),
    }
    assert all(weight.requires_grad for group in found.adamw for weight in group["params"])
    muon = parameter_groups(stack(64), stack(16), outputs=["inputs"])
    assert muon.muon == [] and "inputs.weight" in rates(muon.adamw)


class Hidden(torch.nn.Module):
    """Parameters of a module of one's own."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width, width))
        self.W = torch.nn.Parameter(torch.empty(2 * width, width))
        self.places = torch.nn.Parameter(torch.empty(7, width))
        self.content_bias = torch.nn.Parameter(torch.empty(width, width))


@pytest.mark.parametrize(
    "make, matrices",
    [
        (Hidden, {"weight": LR, "W": LR}),
        (lambda width: torch.nn.MultiheadAttention(width, 4),
         {"in_proj_weight": LR, "out_proj.weight": LR}),
        (lambda width: torch.nn.LSTM(width, width), {"weight_ih_l0": LR, "weight_hh_l0": LR}),
        (lambda width: torch.nn.Embedding(9, width), {}),
        (lambda width: torch.nn.EmbeddingBag(width, width), {}),
        (lambda width: torch.nn.LayerNorm([width, width]), {}),
        (lambda width: torch.nn.Conv1d(width, width, 3), {}),
    ],
)  # fmt: skip
def test_matrices_of_hidden_layers_are_for_muon_whatever_their_module(make, matrices):
    made, narrow = make(64), make(16)
    groups = parameter_groups(made, narrow, lr=LR)
    assert {name: rate for name, (rate, _) in rates(groups.muon).items()} == matrices
    names = {name for name, _ in made.named_parameters()}
    assert rates(groups.adamw).keys() == names - matrices.keys()
    mup = rates(parameter_groups(made, narrow, lr=LR, recipe="mup").adamw)
    assert all(mup[name][0] == LR / 4 for name in matrices)
    alone = rates(parameter_groups(made, lr=LR).muon)  # nothing grew
    assert alone.keys() == matrices.keys() - {"W"}


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
def test_the_matrices_of_gpt2_are_for_muon():
    """Its Conv1D keeps [n_in, n_out]."""
    transformers = pytest.importorskip("transformers")

    def gpt2(width):
        torch.manual_seed(0)
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_embd=width, n_layer=1, n_head=4, vocab_size=9, n_positions=16, bos_token_id=None,
            eos_token_id=None, tie_word_embeddings=False,
        ))  # fmt: skip

    made = gpt2(64)
    groups = parameter_groups(made, gpt2(16), lr=LR, weight_decay=DECAY)
    layer = "transformer.h.0."
    assert rates(groups.muon) == {
        f"{layer}attn.c_attn.weight": pytest.approx((LR * 3**0.5, DECAY / 3**0.5)),  # 64 to 192
        f"{layer}attn.c_proj.weight": (LR, DECAY),
        f"{layer}mlp.c_fc.weight": pytest.approx((LR * 2, DECAY / 2)),  # 64 to 256
        f"{layer}mlp.c_proj.weight": pytest.approx((LR / 4, DECAY * 4)),  # 256 to 64
    }
    assert {"transformer.wte.weight", "transformer.wpe.weight", "lm_head.weight"} < {
        *rates(groups.adamw)
    }
    before = copy.deepcopy(dict(made.named_parameters()))
    muon = [{**group, "weight_decay": 0.0} for group in groups.muon]
    step = torch.optim.Muon(muon, ns_steps=30, ns_coefficients=(1.5, -0.5, 0.0))
    tokens = torch.randint(9, (8, 16))
    made(tokens, labels=tokens).loss.backward()
    step.step()
    for name in rates(groups.muon):
        old, new = before[name].detach(), made.get_parameter(name).detach()
        norm = torch.linalg.matrix_norm(new - old, 2).item()
        assert norm == pytest.approx(LR * math.sqrt(old.size(1) / old.size(0)), rel=0.05), name


def test_a_base_on_the_device_meta():
    made, options = model(64), model(16).options
    with torch.device("meta"):
        base = nn.LanguageModel(options)
    assert base.head.weight.is_meta
    for recipe in ("muon", "mup"):
        own, other = (parameter_groups(made, each, recipe=recipe) for each in (base, model(16)))
        assert rates(own.adamw) == rates(other.adamw)


def graph_models(width):
    """Every model of graphs, in its forms and for its tasks."""
    shape = dict(width=width, layers=1, heads=2)
    for task in ("graph", "node", "edge", "hyperedge"):
        size = dict(order=3) if task == "hyperedge" else {}
        for options in (
            dict(form="softmax"),
            dict(form="kernel"),
            dict(symmetry="undirected"),
            dict(global_classes=False),
            dict(virtual_node=True, laplacian=2, node_channels=2, edge_codes=[3]),
        ):
            yield nn.GraphTransformer(task, "number", **shape, **size, **options)
        for kind in ("gcn", "gin", "gat") if task != "hyperedge" else ():
            yield nn.MessagePassing(task, "number", kind=kind, **shape)
    for task in ("edge", "hyperedge"):
        yield nn.HyperSAGNN(task, "binary", width=width)
        for classes in ("light", "all"):
            yield nn.SetToGraph(task, "binary", width=width, classes=classes)


def language_models(width):
    return (model(width, order) for order in (1, 2, 3))


@pytest.mark.parametrize("recipe", ["muon", "mup"])
@pytest.mark.parametrize("models", [graph_models, language_models])
def test_every_model_has_groups(recipe, models):
    """All parameters once, with positive rates, and the optimizers take the groups; empty
    parameters, of classes that a layer does not have, are no obstacle."""
    empty = 0
    for made, narrow in zip(models(8), models(4), strict=True):
        for base in (None, narrow):
            groups = parameter_groups(made, base, recipe=recipe, weight_decay=DECAY)
            names = [name for group in [*groups.muon, *groups.adamw] for name in group["names"]]
            assert sorted(names) == sorted(name for name, _ in made.named_parameters())
            assert all(
                0 < rate < math.inf for rate, _ in rates(groups.muon + groups.adamw).values()
            )
            assert bool(groups.muon) == (recipe == "muon")
            steps = [torch.optim.AdamW(groups.adamw)]
            steps += [torch.optim.Muon(groups.muon)] if groups.muon else []
            for weight in made.parameters():
                weight.grad = torch.ones_like(weight)
            for each in steps:
                each.step()
        empty += any(weight.numel() == 0 for weight in made.parameters())
    assert (empty > 0) == (models is graph_models)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: parameter_groups(3), r"model: expected a Module, got "),
        (lambda: parameter_groups(model(), 3), r"base: expected a Module or None, got "),
        (lambda: parameter_groups(model(), torch.nn.Linear(2, 2)), r"base: expected a parameter "
         r"embedding.weight, found none"),
        (lambda: parameter_groups(torch.nn.Linear(2, 2), torch.nn.Conv1d(2, 2, 1)),
         r"base: expected weight with 2 axes.* got shape \[2, 2, 1\] for \[2, 2\]"),
        (lambda: parameter_groups(model(tied=True)), r"model: expected an output with weights of "),
        (lambda: parameter_groups(model(), recipe="sgd"), r"recipe: expected muon or mup, got 's"),
        (lambda: parameter_groups(model(), lr=0.0), r"lr: expected a positive number, got 0"),
        (lambda: parameter_groups(model(), adamw_lr=-1), r"adamw_lr: expected a positive"),
        (lambda: parameter_groups(model(), weight_decay=math.nan), r"weight_decay: expected 0 or "),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call, said):
    with pytest.raises((ValueError, TypeError), match=said) as error:
        call()
    assert str(error.value).startswith("[parameter_groups] ") and "\n" not in str(error.value)
