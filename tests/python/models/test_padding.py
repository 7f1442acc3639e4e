"""Padded rows and packed documents: the logits of each are those of the text alone."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from nsimplex.nn import LanguageModel, LanguageModelOptions

SHAPE = dict(vocabulary=50, layers=4, heads=4, kv_heads=2, dim=32, context=24, every=2)
LENGTHS = 9, 4, 12, 1

KINDS = {
    "window": dict(),
    "order 3": dict(order=3, window=(2, 3, 4)),
    "unit": dict(norm="qkv", scale="unit", window=(-1, 4)),
    "ordinary": dict(every=0),
    "linear": dict(sparse="linear"),
    "topk": dict(sparse="topk", topk=4),
    "light": dict(sparse="topk", topk=3, indexer="light", indexer_scores="relu"),
    "path": dict(sparse="path", topk=3),
    "determinant": dict(form="determinant", rotary=True, heads=2, kv_heads=1, dim=36),
    "sink": dict(normalizer="softmax_sink"),
    "augment": dict(normalizer="sigmoid", augment=True),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def model(**options):
    torch.manual_seed(1)
    options = LanguageModelOptions(**{**SHAPE, "window": (3, 6), **options})
    return LanguageModel(options).double()


def texts():
    generator = torch.Generator().manual_seed(2)
    return [torch.randint(50, (length,), generator=generator) for length in LENGTHS]


def padded(rows, side, fill=0):
    """(tokens, mask) of rows with padding on one side."""
    longest = max(map(len, rows))
    tokens = torch.full((len(rows), longest), fill)
    mask = torch.zeros(len(rows), longest, dtype=torch.bool)
    for row, text in enumerate(rows):
        place = slice(longest - len(text), None) if side == "left" else slice(len(text))
        tokens[row, place], mask[row, place] = text, True
    return tokens, mask


@kinds
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_row_is_the_row_alone(kind, side):
    language_model = model(**KINDS[kind])
    tokens, mask = padded(texts(), side)
    other, _ = padded(texts(), side, fill=7)
    with torch.no_grad():
        for given in (mask, mask.long(), mask.to(torch.uint8)):
            logits = language_model(tokens, attention_mask=given)
            assert logits.isfinite().all()
            for row, text in enumerate(texts()):
                torch.testing.assert_close(
                    logits[row, mask[row]], language_model(text[None])[0], rtol=1e-9, atol=1e-9
                )
        fills = language_model(other, attention_mask=mask)
        torch.testing.assert_close(fills[mask], logits[mask], rtol=1e-9, atol=1e-9)


@kinds
def test_packed_documents_do_not_see_each_other(kind):
    language_model = model(**KINDS[kind])
    ends = [0, *itertools.accumulate(LENGTHS)]
    packed = torch.cat(texts())[None].expand(2, -1)
    if kind == "linear":
        with pytest.raises(ValueError, match="cu_seqlens: expected None"):
            language_model(packed, cu_seqlens=torch.tensor(ends))
        return
    with torch.no_grad():
        for dtype in (torch.int32, torch.int64):
            logits = language_model(packed, cu_seqlens=torch.tensor(ends, dtype=dtype))
            for text, (begin, end) in zip(texts(), itertools.pairwise(ends)):
                alone = language_model(text[None])
                for row in (0, 1):
                    torch.testing.assert_close(
                        logits[row, begin:end], alone[0], rtol=1e-9, atol=1e-9
                    )


@pytest.mark.parametrize("kind", ["window", "linear", "determinant", "sink"])
@pytest.mark.parametrize("form", ["left", "right", "packed"])
def test_the_loss_is_that_of_all_texts_alone(kind, form):
    if (kind, form) == ("linear", "packed"):
        pytest.skip("separable layers refuse packed documents")
    language_model = model(**KINDS[kind])
    whole = [text for text in texts() if len(text) > 1]
    inputs, targets = [text[:-1] for text in whole], [text[1:] for text in whole]

    def gradients(loss):
        return [loss.detach(), *torch.autograd.grad(loss, [*language_model.parameters()])]

    alone = sum(
        F.cross_entropy(language_model(x[None])[0], y, reduction="sum")
        for x, y in zip(inputs, targets)
    )
    expected = gradients(alone / sum(map(len, targets)))
    if form == "packed":
        ends = torch.tensor([0, *itertools.accumulate(map(len, inputs))])
        loss = language_model.loss(
            torch.cat(inputs)[None], torch.cat(targets)[None], cu_seqlens=ends
        )
    else:
        tokens, mask = padded(inputs, form)
        wanted, _ = padded(targets, form, fill=-100)
        loss = language_model.loss(tokens, wanted, attention_mask=mask)
    for ours, one in zip(gradients(loss), expected):
        torch.testing.assert_close(ours, one, rtol=1e-8, atol=1e-10)


def test_both_at_once():
    language_model = model()
    tokens = torch.cat(texts())[None]
    mask = torch.ones_like(tokens)
    mask[0, -3:] = 0
    ends = torch.tensor([0, 9, 13, 26])
    logits = language_model(tokens, attention_mask=mask, cu_seqlens=ends)
    alone = language_model(tokens[:, 13:23])
    torch.testing.assert_close(logits[:, 13:23], alone, rtol=1e-9, atol=1e-9)


def test_wrong_masks_are_named():
    language_model = model()
    tokens = torch.zeros(2, 5, dtype=torch.int64)
    for given, words in (
        (dict(attention_mask=torch.ones(2, 4)), "attention_mask: expected bool or integers of sha"),
        (dict(attention_mask=torch.ones(2, 4).long()), "attention_mask: expected bool or integers"),
        (dict(attention_mask=[[1]]), "attention_mask: expected a tensor or None, got list"),
        (
            dict(attention_mask=torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 1, 1]])),
            "attention_mask: expected padding on the left or on the right, got some between the "
            "tokens of row 1",
        ),
        (
            dict(attention_mask=torch.tensor([[1, 1, 2, 2, 0], [1, 1, 1, 1, 1]])),
            "attention_mask: expected 0 and 1, got 0 to 2",
        ),
        (dict(cu_seqlens=torch.tensor([0, 3])), "cu_seqlens: expected"),
        (dict(cu_seqlens=[0, 5]), "cu_seqlens: expected a tensor or None, got list"),
        (
            dict(caches=language_model.make_cache(), attention_mask=tokens),
            "attention_mask and cu_seqlens: expected none with caches",
        ),
    ):
        with pytest.raises((ValueError, TypeError)) as error:
            language_model(tokens, **given)
        assert words in str(error.value) and "\n" not in str(error.value)
