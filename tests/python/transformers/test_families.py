"""Each family of models that can be converted, with each property that a model of it keeps."""

import gc

import pytest
import torch
from tiny_models import (
    build,
    generate,
    logits_in_steps,
    padded,
    positions_of,
    tokens,
    transformers,
)

from nsimplex.nn import HigherOrderPart
from nsimplex.transformers import convert
from nsimplex.transformers.families import FAMILIES, layers_of

SLIDES = dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)
#: Families, and what their configs say where some of their layers see the last tokens alone.
CASES = {kind: (kind, {}) for kind in FAMILIES} | {
    "mistral, sliding": ("mistral", dict(sliding_window=5)),
    "mixtral, sliding": ("mixtral", dict(sliding_window=5)),
    "phi3, sliding": ("phi3", dict(sliding_window=5)),
    "qwen2, sliding": ("qwen2", SLIDES),
    "qwen3, sliding": ("qwen3", SLIDES),
    "qwen3_moe, sliding": ("qwen3_moe", SLIDES),
    "smollm3, sliding": ("smollm3", SLIDES),
    "gemma2, sliding": (
        "gemma2",
        dict(sliding_window=5, layer_types=["sliding_attention", "full_attention"]),
    ),
    "gemma3_text, sliding": (
        "gemma3_text",
        dict(sliding_window=5, layer_types=["sliding_attention", "full_attention"]),
    ),
}
every_case = pytest.mark.parametrize("case", CASES)


def made(case, **options):
    kind, own = CASES[case]
    model = build(kind, num_hidden_layers=2, **{"gain": 3.0, **own, **options})
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:  # norms and biases, which are all alike at the start
                weight.add_(torch.randn_like(weight) * 0.2)
    return model


def parts_of(model):
    return [module for module in model.modules() if isinstance(module, HigherOrderPart)]


def converted(case, bias=-2.0, **options):
    """A model whose tuples take part in every layer."""
    model = convert(made(case, **options), every=1, window=(4, 9))
    with torch.no_grad():
        for part in parts_of(model):
            part.start.fill_(bias)
    return model


def places(model, mask):
    """Positions of padded tokens, for models that do not count them themselves."""
    return dict(attention_mask=mask, position_ids=positions_of(mask))


def logits(model, ids, **options):
    with torch.no_grad():
        return model(ids, **options).logits


def close(own, expected):
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=3e-5)


def attention_of(model):
    layers, name = layers_of(model)
    return [getattr(layer, name) for layer in layers]


def positions_given(model):
    """The word of the table for the positions that a model's layers get."""
    given, attention = [], attention_of(model)
    for each in attention:
        each.register_forward_pre_hook(
            lambda _, args, options: given.append(options.get("position_embeddings")),
            with_kwargs=True,
        )
    logits(model, tokens())
    if given[0] is None:
        return "learned"
    if not all(getattr(each, "use_rope", True) for each in attention):
        return "rotary, not in every layer"
    return "rotary, on a part of a head" if given[0][0].size(-1) < 8 else "rotary"


def norm_of(model):
    norms = [each for name, each in attention_of(model)[0].named_children() if name in NORMS]
    if not norms:
        return "none"
    return "a head" if norms[0].weight.shape[-1] == 8 else "all heads together"


NORMS = ("q_norm", "q_layernorm")
ASKED = dict(cohere="use_qk_norm", phi="qk_layernorm")


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_table_says_what_the_layers_have(kind):
    row, model = FAMILIES[kind], made(kind)
    assert positions_given(model) == row.positions
    assert norm_of(model) == row.norm.removesuffix(", if asked for")
    if kind in ASKED:
        assert norm_of(made(kind, **{ASKED[kind]: False})) == "none" and "if asked" in row.norm
    sliding = CASES.get(f"{kind}, sliding", (kind, SLIDES))
    slides = logits(made(kind, **sliding[1]), tokens())
    assert torch.equal(slides, logits(model, tokens())) != row.slides


@every_case
def test_it_starts_as_the_same_function(case):
    ids, (rows, mask, _) = tokens(), padded()
    model = made(case, gain=1.5)
    expected = logits(model, ids), logits(model, rows, **places(model, mask))[mask.bool()]
    names = {*model.state_dict()}
    convert(model, every=1, window=(4, 9), sample=rows)
    own = logits(model, ids), logits(model, rows, **places(model, mask))[mask.bool()]
    torch.testing.assert_close(own, expected, rtol=0, atol=1e-6)
    assert names < {*model.state_dict()}
    model(ids, labels=ids).loss.backward()
    for part in parts_of(model):
        assert (part.order_bias.grad != 0).all() and (part.proj.weight.grad != 0).any()


@every_case
def test_caches_give_the_logits_of_the_whole_text(case):
    model, ids = converted(case), tokens()
    whole = logits(model, ids)
    assert (whole - logits(made(case), ids)).abs().max() > 0.01
    for cache in (
        transformers.DynamicCache(config=model.config),
        transformers.StaticCache(config=model.config, max_cache_len=40),
    ):
        with torch.no_grad():
            close(logits_in_steps(model, ids, cache), whole)


@every_case
def test_padded_rows_and_beams_are_those_alone(case):
    model = converted(case)
    ids, mask, rows = padded()
    own = logits(model, ids, **places(model, mask))
    for i, row in enumerate(rows):
        close(own[i, -row.size(1) :], logits(model, row)[0])
    texts = [
        generate(model, ids, mask, new=4, num_beams=2, **options)
        for options in ({}, dict(cache_implementation="static"), dict(use_cache=False))
    ]
    assert torch.equal(texts[0], texts[1]) and torch.equal(texts[0], texts[2])


@pytest.mark.parametrize("case", [case for case in CASES if case != "opt"])  # which knows none
def test_packed_documents_are_those_alone(case):
    model = converted(case)
    documents = [tokens(1, length, length) for length in (7, 1, 11)]
    positions = torch.cat([torch.arange(each.size(1)) for each in documents])[None]
    own = logits(model, torch.cat(documents, 1), position_ids=positions, use_cache=False)
    close(own[0], torch.cat([logits(model, each)[0] for each in documents]))


@pytest.mark.parametrize("case", [case for case in CASES if "sliding" in case])
def test_a_sliding_layer_obeys_any_mask_and_takes_back_tokens(case):
    model, ids = made(case), tokens(1, 9)
    mask = torch.full((1, 1, 9, 9), torch.finfo(torch.float32).min).triu(1)
    mask[:, :, 5:, 2] = mask.min()  # later tokens do not see this one
    expected = logits(model, ids, attention_mask=mask, use_cache=False)
    convert(model, every=1, window=(4, 9))
    close(logits(model, ids, attention_mask=mask, use_cache=False), expected)
    text, model = tokens(1, 12).repeat(1, 2), converted(case)
    assert torch.equal(generate(model, text), generate(model, text, prompt_lookup_num_tokens=3))


#: The other cases are slow.
COMPILED = ["gpt_neox", "qwen2, sliding"]


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[] if c in COMPILED else pytest.mark.slow) for c in CASES]
)
def test_it_compiles_whole(case):
    model = converted(case)
    ids, mask, _ = padded()
    options = dict(use_cache=False, **places(model, mask))
    graphs = []

    def counting(graph, _):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    own = logits(torch.compile(model, fullgraph=True, backend=counting), ids, **options)
    assert len(graphs) == 1
    close(own[mask.bool()], logits(model, ids, **options)[mask.bool()])


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        ids = tokens(1, 9, i % 2)[0]
        return dict(input_ids=ids, labels=ids)


@every_case
def test_the_trainer_trains_adapters_and_tuples(case, tmp_path, monkeypatch):
    monkeypatch.setattr(gc, "collect", lambda: 0)  # which takes half a second after a training
    peft = pytest.importorskip("peft")
    pytest.importorskip("accelerate")
    model = converted(case, bias=-1.0)
    config = peft.LoraConfig(target_modules="all-linear", r=2, modules_to_save=["higher"])
    tuned = peft.get_peft_model(model, config)
    before = {n: w.clone() for n, w in tuned.named_parameters() if w.requires_grad}
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=2,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    transformers.Trainer(model=tuned, args=options, train_dataset=Texts()).train()
    after = dict(tuned.named_parameters())
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name.rpartition(".")[0] for name in moved if "higher" in name}
    assert any("lora_B" in name for name in moved)
    expected = logits(tuned.eval().base_model.model, tokens())
    close(logits(tuned.merge_and_unload(), tokens()), expected)
