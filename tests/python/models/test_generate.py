"""Texts that a language model continues: alone and in batches, with caches and without, and as the
command line does."""

import json
import re
import subprocess

import pytest
import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions
from nsimplex.nn.generation import Sampling, distribution, uniform
from nsimplex.text import ByteTokenizer

SHAPE = dict(vocabulary=50, layers=4, heads=4, kv_heads=2, dim=32, context=24, every=2, tied=False)
PROMPTS = [[3, 1, 4, 1, 5], [9, 2], [6, 5, 3, 5, 8], [7], [9, 2]]


def model(**options):
    torch.manual_seed(1)
    options = LanguageModelOptions(**{**SHAPE, "window": (3, 6), **options})
    made = LanguageModel(options).double()
    with torch.no_grad():  # larger logits, so that the likeliest token is no close call
        made.head.weight.mul_(60)
    return made


def by_hand(language_model, prompt, count):
    """Greedy, by whole passes."""
    tokens = [*prompt]
    for _ in range(count):
        with torch.no_grad():
            tokens.append(int(language_model(torch.tensor([tokens]))[0, -1].argmax()))
    return tokens


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(every=0),
        dict(sparse="linear"),
        dict(sparse="topk", topk=3),
        dict(sparse="path", topk=2, indexer="light"),
    ],
)
def test_every_prompt_goes_on_as_if_it_were_alone(options):
    language_model = model(**options)
    expected = [by_hand(language_model, prompt, 12) for prompt in PROMPTS]
    assert len({*map(tuple, expected)}) == 4
    for caches in (True, False):
        kept = dict(temperature=0, caches=caches)
        assert language_model.generate(PROMPTS, 12, **kept) == expected
        for prompt, whole in zip(PROMPTS, expected):
            assert language_model.generate(prompt, 12, **kept) == whole


def test_prompts_of_different_lengths_share_their_passes():
    """One pass per step while they stay within the context, and one per length beyond it."""
    language_model, passes = model(), []
    language_model.register_forward_hook(lambda *_: passes.append(1))
    for count, expected in ((19, 19), (20, 3 * 20)):
        passes.clear()
        language_model.generate(PROMPTS, count, temperature=0)
        assert len(passes) == expected


def test_drawn_tokens_do_not_depend_on_the_other_prompts():
    language_model = model()
    how = dict(temperature=1.5, top_k=20, top_p=0.95)
    together = language_model.generate(PROMPTS, 10, seed=5, **how)
    assert together[1] != together[4]  # the same prompt draws with another seed
    for row, prompt in enumerate(PROMPTS):
        assert language_model.generate(prompt, 10, seed=5 + row, **how) == together[row]
    assert language_model.generate(PROMPTS, 10, seed=5, caches=False, **how) == together
    assert language_model.generate(PROMPTS, 10, seed=6, **how)[0] != together[0]
    torch.manual_seed(3)
    first = language_model.generate([1], 10, **how)
    assert language_model.generate([1], 10, **how) != first
    torch.manual_seed(3)
    assert language_model.generate([1], 10, **how) == first


def test_the_result_has_the_form_of_the_prompts():
    language_model = model(vocabulary=256)
    language_model.tokenizer = ByteTokenizer()
    greedy = dict(max_new_tokens=4, temperature=0)
    tokens = language_model.generate([104, 105], **greedy)
    text = bytes(tokens).decode(errors="replace")
    assert tokens[:2] == [104, 105] and len(tokens) == 6
    assert language_model.generate("hi", **greedy) == text
    assert language_model.generate(["hi", "hi"], **greedy) == [text, text]
    assert language_model.generate([(104, 105)], **greedy) == [tokens]
    vector = language_model.generate(torch.tensor([104, 105], dtype=torch.int32), **greedy)
    assert vector.dtype == torch.int64 and vector.tolist() == tokens
    matrix = language_model.generate(torch.tensor([[104, 105]] * 2), **greedy)
    assert matrix.tolist() == [tokens, tokens]
    assert language_model.generate("hi", 0) == "hi"
    assert language_model.generate(["hi", "a"], 0) == ["hi", "a"]


def test_streams_are_the_results_step_by_step():
    language_model = model(vocabulary=256)
    language_model.tokenizer = ByteTokenizer()
    how = dict(max_new_tokens=12, temperature=1.0, seed=4)
    whole = language_model.generate(PROMPTS, **how)
    steps = [*language_model.generate(PROMPTS, stream=True, **how)]
    assert [prompt + [*new] for prompt, new in zip(PROMPTS, zip(*steps))] == whole
    assert [*language_model.generate(PROMPTS[0], stream=True, **how)] == whole[0][5:]
    text = language_model.generate("Grü", **how)
    assert "Grü" + "".join(language_model.generate("Grü", stream=True, **how)) == text
    pieces = [*language_model.generate(["Grü", "ab"], stream=True, **how)]
    assert ["".join(each) for each in zip(("Grü", "ab"), *pieces)] == language_model.generate(
        ["Grü", "ab"], **how
    )
    stream = language_model.generate([1], 10**9, stream=True)  # a step is computed when asked for
    assert isinstance(next(stream), int)


def test_a_prompt_ends_at_eos_and_the_others_go_on():
    language_model = model()
    plain = language_model.generate(PROMPTS, 12, temperature=0)
    new = [whole[len(prompt) :] for whole, prompt in zip(plain, PROMPTS)]
    eos = new[0][3]

    def cut(tokens):
        return tokens[: tokens.index(eos) + 1] if eos in tokens else tokens

    expected = [prompt + cut(tokens) for prompt, tokens in zip(PROMPTS, new)]
    assert len({*map(len, map(cut, new))}) > 1
    for how in (dict(eos=eos), dict(eos=[eos]), dict(eos=eos, caches=False)):
        assert language_model.generate(PROMPTS, 12, temperature=0, **how) == expected
    steps = [*language_model.generate(PROMPTS, 12, temperature=0, eos=eos, stream=True)]
    assert [step[0] for step in steps] == cut(new[0]) + [None] * (len(steps) - len(cut(new[0])))
    same_length = [PROMPTS[0], PROMPTS[2]]
    matrix = language_model.generate(torch.tensor(same_length), 12, temperature=0, eos=eos)
    for row, whole in zip(
        matrix.tolist(), language_model.generate(same_length, 12, temperature=0, eos=eos)
    ):
        assert row[: len(whole)] == whole and set(row[len(whole) :]) <= {eos}
    assert language_model.generate(PROMPTS[0], 12, temperature=0, eos=eos) == expected[0]


def test_a_text_leaves_out_its_eos():
    language_model = model(vocabulary=256)
    language_model.tokenizer = ByteTokenizer()
    tokens = language_model.generate([*b"hi"], 8, temperature=0)
    eos = tokens[5]
    short = tokens[: 2 + tokens[2:].index(eos)]
    text = language_model.generate("hi", 8, temperature=0, eos=eos)
    assert text == bytes(short).decode(errors="replace")
    pieces = language_model.generate("hi", 8, temperature=0, eos=eos, stream=True)
    assert "hi" + "".join(pieces) == text


def test_the_model_is_left_as_it_was():
    language_model = model().train()
    language_model.blocks[0].eval()
    before = [module.training for module in language_model.modules()]
    for _ in language_model.generate([1, 2], 3, stream=True):
        assert [module.training for module in language_model.modules()] == before
        assert torch.is_grad_enabled()


def test_a_long_prompt_is_read_in_chunks_of_the_context():
    language_model = model()
    prompt = torch.randint(50, (60,)).tolist()
    caches = language_model.make_cache()
    with torch.no_grad():
        for begin in range(0, 60, 24):
            logits = language_model(torch.tensor([prompt[begin : begin + 24]]), caches)
    assert language_model.generate(prompt, 1, temperature=0) == [
        *prompt,
        int(logits[0, -1].argmax()),
    ]


def test_probabilities_by_hand():
    logits = torch.tensor([0.0, 2.0, 1.0, 2.0]).log_softmax(0)

    def of(temperature=1.0, top_k=None, top_p=None):
        return distribution(logits, Sampling(temperature, top_k, top_p, frozenset()))

    torch.testing.assert_close(of(), logits.double().exp())
    torch.testing.assert_close(of(temperature=0.5), (2 * logits.double()).softmax(0))
    assert of(temperature=0).tolist() == [0, 1, 0, 0]  # of equals the smaller
    assert of(top_k=1).tolist() == [0, 1, 0, 0] and of(top_k=2).tolist() == [0, 0.5, 0, 0.5]
    e = torch.tensor([0.0, 2.0, 1.0, 2.0], dtype=torch.float64).exp()
    torch.testing.assert_close(of(top_k=3), e * torch.tensor([0, 1, 1, 1]) / (e.sum() - 1))
    assert of(top_p=0.1).tolist() == [0, 1, 0, 0]
    assert of(top_p=0.5).tolist() == [0, 0.5, 0, 0.5]
    torch.testing.assert_close(of(top_p=0.9), e * torch.tensor([0, 1, 1, 1]) / (e.sum() - 1))
    assert of(top_k=2, top_p=0.5).tolist() == [0, 1, 0, 0]


def test_tokens_come_as_often_as_their_probabilities_say():
    numbers = torch.tensor([uniform(1, n) for n in range(20000)], dtype=torch.float64)
    counts = numbers.histc(10, 0, 1)
    assert (counts - 2000).abs().max() < 5 * 2000**0.5  # five deviations


@pytest.fixture(scope="module")
def old_run(root):
    return root / "tests" / "train" / "files" / "run-0.1"


@pytest.mark.parametrize("prompt", ["", "the ", "a text that is longer than the context of eight"])
@pytest.mark.parametrize(
    "options",
    [
        dict(temperature=0),
        dict(seed=1),  # the same defaults
        dict(temperature=0.8, seed=1),
        dict(temperature=1.3, top_k=40, top_p=0.9, seed=7),
    ],
)
def test_the_command_line_says_the_same(executable, old_run, prompt, options):
    flags = [
        word
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    line = [executable, "lm", "sample", old_run, "--prompt", prompt, "--tokens", "40", "--json"]
    done = subprocess.run([*line, *flags], capture_output=True, check=True)
    # Bytes that are no UTF-8 are replaced there and here, one by one or together.
    said = json.loads(done.stdout.decode(errors="replace"))["text"]
    text = LanguageModel.from_run(old_run).generate(prompt, 40, **options)
    assert re.sub("\ufffd+", "\ufffd", text) == re.sub("\ufffd+", "\ufffd", said)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(prompts=[]), "prompts: expected one or more, got none"),
        (dict(prompts=[[]]), "prompts[0]: expected at least one token, got none"),
        (dict(prompts=torch.zeros(0, 3).long()), "prompts: expected one or more, got none"),
        (dict(prompts=[[1], [2, 50]]), "prompts[1]: expected tokens 0 to 49, got 50"),
        (dict(prompts=[-1]), "prompts[0]: expected tokens 0 to 49, got -1"),
        (dict(prompts=[[1], [2.0]]), "prompts[1]: expected a list of integers, got list"),
        (dict(prompts=[1, True]), "prompts[0]: expected a list of integers, got list"),
        (dict(prompts=torch.zeros(2, 3)), "prompts: expected int64 of shape [B, T] or [T]"),
        (dict(prompts=3), "prompts: expected"),
        (dict(prompts="text"), "prompts: expected token numbers, got text and no tokenizer"),
        (dict(max_new_tokens=-1), "max_new_tokens: expected at least 0, got -1"),
        (dict(max_new_tokens=2.5), "max_new_tokens: expected an integer, got 2.5"),
        (dict(temperature=-0.1), "temperature: expected 0 or more, got -0.1"),
        (dict(temperature=float("nan")), "temperature: expected 0 or more, got nan"),
        (dict(temperature="hot"), "temperature: expected a number, got 'hot'"),
        (dict(top_k=0), "top_k: expected at least 1, got 0"),
        (dict(top_p=0.0), "top_p: expected a number in (0, 1], got 0.0"),
        (dict(top_p=1.1), "top_p: expected a number in (0, 1], got 1.1"),
        (dict(seed=-1), f"seed: expected 0 to {2**64 - 1}, got -1"),
        (dict(seed=2**64), f"seed: expected 0 to {2**64 - 1}, got {2**64}"),
        (dict(eos=50), "eos: expected 0 to 49, got 50"),
        (dict(eos=[1, "x"]), "eos"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_arguments_are_named_at_once(arguments, words, stream):
    language_model = model()
    with pytest.raises((ValueError, TypeError)) as error:
        language_model.generate(
            **{"prompts": [1, 2], "max_new_tokens": 3, "stream": stream, **arguments}
        )
    assert str(error.value).startswith(f"[LanguageModel] {words}"), error.value
    assert "\n" not in str(error.value)


def test_texts_and_numbers_do_not_mix():
    language_model = model(vocabulary=256)
    language_model.tokenizer = ByteTokenizer()
    with pytest.raises(TypeError, match=r"prompts\[1\]: expected a string, got list"):
        language_model.generate(["a", [1]], 3)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("stream", [False, True])
def test_no_token_follows_from_logits_that_are_no_numbers(temperature, stream):
    """The largest of NaN has a place, too: a text of first tokens would look like an answer."""
    language_model = model()
    with torch.no_grad():
        language_model.norm.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"\] logits: expected numbers, got NaN or infinity"):
        list(language_model.generate([1, 2], 3, temperature=temperature, stream=stream))
