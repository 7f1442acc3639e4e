"""The guides for users of other libraries: every argument of torch's functions has a row, and the
rows say the truth."""

import inspect
import os
import re
import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F

import nsimplex

PAGES = "flash-attn", "sdpa", "simplicial-attention"


def page_text(root, page):
    return (root / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")


def blocks(root, page):
    return re.findall(r"```python\n(.*?)```", page_text(root, page), re.DOTALL)


def run(root, page, containing):
    """The names that the page's only block with this text leaves."""
    (block,) = [block for block in blocks(root, page) if containing in block]
    names = {}
    exec(compile(block, f"{page}.md", "exec"), names)
    return names


def section(root, page, heading):
    """The text below a heading, up to the next one of any level."""
    return re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", page_text(root, page), re.M | re.S
    )[1]


def run_mixed_orders(root, steps=None):
    """The names that the blocks of the page leave, which go on from one another."""
    pytest.importorskip("transformers")
    program = "\n".join(blocks(root, "mixed-orders"))
    if steps is not None:
        program, replaced = re.subn(r"^STEPS = \d+$", f"STEPS = {steps}", program, flags=re.M)
        assert replaced == 1
    names = {"__name__": "mixed_orders"}
    exec(compile(program, "mixed-orders.md", "exec"), names)
    return names


def test_the_guide_of_mixed_orders_runs(root):
    names = run_mixed_orders(root, steps=2)
    assert names["answer"] in range(13)


@pytest.mark.slow
def test_mixed_orders_learn_sums_of_three_numbers(root):
    ordinary, mixed = run_mixed_orders(root)["scores"]
    assert mixed > ordinary + 0.05


@pytest.mark.slow
def test_the_program_of_many_machines_runs_under_torchrun(root, tmp_path):
    program = tmp_path / "train.py"
    program.write_text("\n".join(blocks(root, "many-machines")), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([*command, program], env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("attention: sent") >= 2


#: Arguments of flash-attn 2.8 and simplicial-attention 0.1.6, by the heading of their tables.
ARGUMENTS = {
    "flash-attn": {
        "flash_attn_func": "q k v dropout_p softmax_scale causal window_size softcap alibi_slopes "
        "deterministic return_attn_probs",
        "flash_attn_varlen_func": "q k v cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k "
        "dropout_p softmax_scale causal window_size softcap alibi_slopes deterministic "
        "return_attn_probs block_table",
        "flash_attn_with_kvcache": "q k_cache v_cache k v rotary_cos rotary_sin cache_seqlens "
        "cache_batch_idx cache_leftpad block_table softmax_scale causal window_size softcap "
        "rotary_interleaved alibi_slopes num_splits return_softmax_lse",
    },
    "simplicial-attention": {
        "Functions": "q keys values w1 w2 causal pad_to_multiple_of k v use_signed_determinant "
        "k1 k2 t rot qk1 v1 qk2 v2 qk3 v3 mask1 mask2 mask3 qkvs masks",
        "Modules": "dim causal dim_head dim_head_values heads key_value_heads "
        "number_key_value_sets qk_rmsnorm prenorm postnorm attend head_first_dim tokens w1 w2 "
        "depth ff_expansion two_simplicial_attn_every attn_kwargs two_simplicial_attn_kwargs "
        "final_norm",
    },
}


def without_rows(root, page, heading, arguments):
    firsts = re.findall(r"^\| (.*?) \|", section(root, page, heading), re.M)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", " ".join(firsts)))))
    return [name for name in arguments if name not in named]


@pytest.mark.parametrize("page", ARGUMENTS)
def test_every_argument_has_a_row(root, page):
    for heading, arguments in ARGUMENTS[page].items():
        assert without_rows(root, page, heading, arguments.split()) == [], heading


def test_every_argument_of_torch_has_a_row(root):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    signature = F.scaled_dot_product_attention.__doc__.split(")")[0].partition("(")[2]
    ours = {
        "scaled_dot_product_attention": re.findall(r"(\w+)(?:=[^,]*)?(?:,|$)", signature),
        "flex_attention": list(inspect.signature(flex.flex_attention).parameters),
        "mask_mod and block_mask": list(inspect.signature(flex.create_block_mask).parameters),
        "nn.MultiheadAttention": [
            *inspect.signature(torch.nn.MultiheadAttention).parameters,
            *list(inspect.signature(torch.nn.MultiheadAttention.forward).parameters)[1:],
        ],
    }
    assert len(ours["scaled_dot_product_attention"]) == 8
    for heading, arguments in ours.items():
        assert without_rows(root, "sdpa", heading, arguments) == [], heading


def test_options_in_the_tables_exist(root):
    """`name=...` in the right column is an option of something public."""
    known = {"max"}  # of clamp
    for owner in (
        nsimplex.attention,
        nsimplex.sparse_attention,
        nsimplex.rotary,
        nsimplex.StaticCache.attend,
        nsimplex.nn.SimplicialAttention,
        nsimplex.nn.SimplicialAttention.forward,
    ):
        known |= set(inspect.signature(owner).parameters)
    for page in PAGES:
        for row in re.findall(r"^\|.*\|$", page_text(root, page), re.M):
            right = row.rsplit(" | ", 1)[1]
            for code in re.findall(r"`([^`]*)`", right):
                assert set(re.findall(r"\b([a-z]\w*)=", code)) <= known, row


# flash-attn


def flash_attention(q, k, v, causal, left, right, scale=None, chunk=None):
    """What flash-attn documents: query i of Tq stands at p = i + Tk - Tq and sees the keys from
    p - left to p + right; -1 is no limit; a query without keys gives 0. [B, T, H, D]."""
    groups = q.size(2) // k.size(2)
    k, v = (x.repeat_interleave(groups, 2) for x in (k, v))
    logits = torch.einsum("bihd,bjhd->bhij", q, k) * (scale or q.size(-1) ** -0.5)
    place = torch.arange(q.size(1))[:, None] + k.size(1) - q.size(1)
    key = torch.arange(k.size(1))
    seen = torch.ones(q.size(1), k.size(1), dtype=torch.bool)
    if causal:
        seen &= key <= place
    if left >= 0:
        seen &= key >= place - left
    if right >= 0:
        seen &= key <= place + right
    if chunk:
        seen &= key // chunk == place // chunk
    weights = logits.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num(0.0)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


@pytest.mark.parametrize("queries, keys", [(20, 20), (5, 20), (20, 8)])
def test_the_function_of_flash_attn(root, queries, keys):
    function = run(root, "flash-attn", "def flash_attn_func")["flash_attn_func"]
    q = torch.randn(2, queries, 4, 8, dtype=torch.float64)
    k, v = torch.randn(2, 2, keys, 2, 8, dtype=torch.float64)
    for causal in (False, True):
        for window in ((-1, -1), (0, 0), (3, 2), (6, -1), (-1, 4)):
            for scale in (None, 0.2):
                expected = flash_attention(q, k, v, causal, *window, scale=scale)
                out = function(q, k, v, causal=causal, softmax_scale=scale, window_size=window)
                torch.testing.assert_close(out, expected)


def test_sequences_of_different_lengths_in_slots():
    """cache_seqlens: the new queries of a sequence stand behind what its slots hold."""
    q = torch.randn(2, 3, 4, 8, dtype=torch.float64)
    k, v = torch.randn(2, 2, 16, 2, 8, dtype=torch.float64)
    lengths = torch.tensor([5, 11])  # with the keys of the three queries: 8 and 14
    for window in (4, -1):
        out = nsimplex.attention(
            q, [k], [v], layout="bthd", causal=True, window=window, query_positions=lengths
        )
        for b, length in enumerate(lengths.tolist()):
            alone = q[b : b + 1], k[b : b + 1, : length + 3], v[b : b + 1, : length + 3]
            expected = flash_attention(*alone, True, window - 1 if window > 0 else -1, 0)
            torch.testing.assert_close(out[b : b + 1], expected)


def test_packed_queries_and_keys_of_different_lengths_are_padded():
    """cu_seqlens_q and cu_seqlens_k that differ: aligned at the ends of the documents."""
    q = torch.randn(2, 4, 2, 8, dtype=torch.float64)
    k, v = torch.randn(2, 2, 9, 2, 8, dtype=torch.float64)
    queries, keys = torch.tensor([4, 2]), torch.tensor([6, 9])
    out = nsimplex.attention(
        q,
        [k],
        [v],
        layout="bthd",
        causal=True,
        key_lengths=keys,
        query_positions=keys - queries,
    )
    for b in range(2):
        alone = q[b : b + 1, : queries[b]], k[b : b + 1, : keys[b]], v[b : b + 1, : keys[b]]
        expected = flash_attention(*alone, True, -1, -1)
        torch.testing.assert_close(out[b : b + 1, : queries[b]], expected)


def test_chunks_of_flash_attn_are_documents():
    q, k, v = torch.randn(3, 1, 10, 2, 8, dtype=torch.float64)
    chunks = torch.arange(0, 10 + 4, 4).clamp(max=10)
    out = nsimplex.attention(q, [k], [v], layout="bthd", causal=True, cu_seqlens=chunks)
    torch.testing.assert_close(out, flash_attention(q, k, v, True, -1, -1, chunk=4))


def test_qv_is_more_channels():
    """softmax(s (q k + qv v)) v, which flash-attn calls qv."""
    q, k = torch.randn(2, 1, 2, 9, 4, dtype=torch.float64)
    qv, v = torch.randn(2, 1, 2, 9, 8, dtype=torch.float64)
    logits = q @ k.transpose(-1, -2) + qv @ v.transpose(-1, -2)
    expected = (logits * 12**-0.5).softmax(-1) @ v
    out = nsimplex.attention(torch.cat([q, qv], -1), [torch.cat([k, v], -1)], [v])
    torch.testing.assert_close(out, expected)


def test_a_learned_sink_counts_in_the_denominator_and_in_lse():
    q, k, v = torch.randn(3, 1, 2, 9, 8, dtype=torch.float64)
    sink = torch.tensor([0.5, -1.0], dtype=torch.float64)
    logits = torch.cat(
        [q @ k.transpose(-1, -2) * 8**-0.5, sink.view(1, 2, 1, 1).expand(1, 2, 9, 1)], -1
    )
    out, lse = nsimplex.attention(
        q, [k], [v], normalizer="softmax_sink", sink=sink, return_lse=True
    )
    torch.testing.assert_close(out, logits.softmax(-1)[..., :-1] @ v)
    torch.testing.assert_close(lse, logits.logsumexp(-1))


def test_chosen_keys_are_a_product_of_one_set():
    q, k, v = torch.randn(3, 2, 2, 9, 8, dtype=torch.float64)
    chosen = torch.rand(2, 9, 9).topk(4).indices
    seen = torch.zeros(2, 9, 9, dtype=torch.bool).scatter_(2, chosen, True)
    out = nsimplex.sparse_attention(q, [k], [v], chosen.int(), pattern="product")
    torch.testing.assert_close(
        out, F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None])
    )


def test_interleaved_channels_turn_like_halves(root):
    """GPT-NeoX's rotation of channel c with channel c + D / 2, by its own formula."""
    names = run(root, "flash-attn", "def interleave")
    q, k = names["q"].double(), names["k"].double()
    angle = torch.arange(10).double()[:, None] * 10000.0 ** (-torch.arange(16).double() / 16)

    def halves(x):
        a, b = x.chunk(2, -1)
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    expected = halves(q) @ halves(k).transpose(-1, -2)
    turned = [nsimplex.rotary(names["interleave"](x)) for x in (q, k)]
    torch.testing.assert_close(turned[0] @ turned[1].transpose(-1, -2), expected)
    tables = torch.atan2(angle.sin(), angle.cos())  # as cos and sin of a model give them
    turned = [nsimplex.rotary(names["interleave"](x), angles=tables) for x in (q, k)]
    torch.testing.assert_close(turned[0] @ turned[1].transpose(-1, -2), expected)


def test_alibi_in_channels_works_for_pairs_too():
    q, k1, k2, v1, v2 = torch.randn(5, 1, 2, 12, 8, dtype=torch.float64)
    slopes = torch.tensor([0.5, 0.25], dtype=torch.float64).view(1, 2, 1, 1).expand(1, 2, 12, 1)
    place = torch.arange(12, dtype=torch.float64).view(1, 1, 12, 1).expand(1, 2, 12, 1)
    one, scale = torch.ones_like(place), 8**-0.5
    out = nsimplex.attention(
        torch.cat([q, slopes / scale, slopes / scale], -1),
        [torch.cat([k1, place, one], -1), torch.cat([k2, one, place], -1)],
        [v1, v2],
        causal=True,
        scale=scale,
    )
    ago = (torch.arange(12)[:, None] - torch.arange(12)).abs().double()
    bias = -slopes[..., None] * (ago[:, :, None] + ago[:, None])
    expected = nsimplex.attention(q, [k1, k2], [v1, v2], causal=True, mask=bias)
    torch.testing.assert_close(out, expected)


# SDPA and FlexAttention


def test_the_table_from_scaled_dot_product_attention():
    """Grouped heads, a scale, and PyTorch's top-left causal mask where ours is aligned
    bottom-right."""
    query, key, value = torch.randn(1, 4, 6, 8), torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8)
    theirs = F.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=0.3, enable_gqa=True
    )
    ours = nsimplex.attention(query, [key], [value], causal=True, scale=0.3)
    torch.testing.assert_close(ours, theirs)

    few, first = query[:, :, -2:], torch.zeros(1, dtype=torch.int64)
    theirs = F.scaled_dot_product_attention(few, key, value, is_causal=True, enable_gqa=True)
    ours = nsimplex.attention(few, [key], [value], causal=True, query_positions=first)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        nsimplex.attention(few, [key], [value], causal=True),
        nsimplex.attention(query, [key], [value], causal=True)[:, :, -2:],
    )


QUERY, KEY = torch.arange(12)[:, None], torch.arange(12)
PLACES = QUERY - KEY
LENGTHS, OFFSET = torch.tensor([7, 12]), torch.tensor([3, -2])
PRESENT = torch.rand(2, 12, generator=torch.Generator().manual_seed(0)) < 0.6
DOCUMENT = torch.tensor([0] * 5 + [1] * 7)
MASKS = {
    "causal": (PLACES >= 0, dict(causal=True)),
    "offsets": (QUERY + OFFSET.view(2, 1, 1, 1) >= KEY, dict(causal=True, query_positions=OFFSET)),
    "band": ((PLACES >= 0) & (PLACES < 4), dict(causal=True, window=4)),
    "two-sided band": (PLACES.abs() <= 3, dict(window=[(4, 3)])),
    "documents": (DOCUMENT[:, None] == DOCUMENT, dict(cu_seqlens=torch.tensor([0, 5, 12]))),
    "chunks": (QUERY // 5 == KEY // 5, dict(cu_seqlens=torch.arange(0, 17, 5).clamp(max=12))),
    "lengths": (LENGTHS.view(2, 1, 1, 1) > KEY, dict(key_lengths=LENGTHS)),
    "padding": (PRESENT[:, None, None], dict(key_masks=[PRESENT])),
    "any": (PLACES % 3 != 1, dict(mask=PLACES % 3 != 1)),
    "added": (PLACES * 0.1, dict(mask=PLACES * 0.1)),
    "per key": ((KEY * 0.1).view(1, 1, 1, 12), dict(mask=(KEY * 0.1).view(1, 1, 1, 12))),
    "both": (
        (PLACES >= 0) & PRESENT[:, None, None],
        dict(causal=True, key_masks=[PRESENT]),
    ),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_scaled_dot_product_attention_are_options(name):
    theirs, ours = MASKS[name]
    query, key, value = torch.randn(3, 2, 4, 12, 8, dtype=torch.float64)
    if theirs.is_floating_point():
        theirs = theirs.double()
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=theirs)
    if theirs.dtype == torch.bool:
        empty = ~theirs.expand(2, 4, 12, 12).any(-1, keepdim=True)
        expected = expected.masked_fill(empty, 0.0)
    torch.testing.assert_close(nsimplex.attention(query, [key], [value], **ours), expected)


def test_a_mask_of_pairs_names_its_axis():
    query, k1, k2, v1, v2 = torch.randn(5, 1, 2, 12, 8, dtype=torch.float64)
    pair, past, free = PLACES >= 0, (-1, 0), -1
    for mask, window in ((pair[:, :, None], [past, free]), (pair[:, None, :], [free, past])):
        torch.testing.assert_close(
            nsimplex.attention(query, [k1, k2], [v1, v2], mask=mask),
            nsimplex.attention(query, [k1, k2], [v1, v2], window=window),
        )


@pytest.mark.parametrize("zero", [False, True])
def test_masks_of_multihead_attention_mean_the_opposite(zero):
    """Its attn_mask too; a key and value of zeros is a sink of logit 0."""
    theirs = torch.nn.MultiheadAttention(16, 2, bias=False, batch_first=True, add_zero_attn=zero)
    sink = dict(normalizer="softmax_sink") if zero else {}
    ours = nsimplex.nn.SimplicialAttention(16, 2, order=1, **sink)
    weights = dict(theirs.state_dict())
    renamed = {
        "qkv.weight": weights["in_proj_weight"],
        "output.weight": weights["out_proj.weight"],
    }
    ours.load_state_dict(renamed, strict=not zero)
    x, past = torch.randn(2, 12, 16), PLACES >= 0
    present = PRESENT.clone()
    present[:, 0] = True  # a query without keys is NaN there
    expected, _ = theirs(x, x, x, key_padding_mask=~present, attn_mask=~past)
    torch.testing.assert_close(ours(x, key_masks=present, mask=past), expected)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_score_mods_of_flex_attention():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    query, key, value = torch.randn(3, 1, 2, 12, 8, dtype=torch.float64)
    bias = torch.randn(2, 12, 12, dtype=torch.float64)
    table = torch.randn(2, 23, dtype=torch.float64)
    heat = torch.tensor([0.5, 2.0], dtype=torch.float64)
    rows = [
        (
            lambda s, b, h, q, k: s + bias[h, q, k] + table[h, q - k + 11],
            query,
            dict(mask=bias + table[:, PLACES + 11]),
        ),
        (lambda s, b, h, q, k: s + bias[h, 0, k], query, dict(mask=bias[None, :, :1, :])),
        (
            lambda s, b, h, q, k: torch.where(q >= k, s * heat[h], -torch.inf),
            query * heat.view(1, 2, 1, 1),
            dict(causal=True),
        ),
    ]
    for score_mod, turned, options in rows:
        theirs, aux = flex.flex_attention(
            query, key, value, score_mod=score_mod, scale=0.4, return_aux=flex.AuxRequest(lse=True)
        )
        ours, lse = nsimplex.attention(
            turned, [key], [value], scale=0.4, return_lse=True, **options
        )
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(lse, aux.lse.to(lse.dtype), rtol=1e-5, atol=1e-5)


def test_an_and_of_masks_is_options_and_an_or_is_a_merge():
    query, key, value = torch.randn(3, 1, 2, 12, 8, dtype=torch.float64)
    near, far = (PLACES >= 0) & (PLACES < 3), PLACES >= 8
    parts = [
        nsimplex.attention(query, [key], [value], return_lse=True, **options)
        for options in (dict(causal=True, window=3), dict(mask=far))
    ]
    out, _ = nsimplex.merge(*zip(*parts))
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=near | far)
    torch.testing.assert_close(out, expected)


# lucidrains/simplicial-attention: its definitions, restated


def two_simplicial(q, keys, values, causal=False, windows=(-1, -1), determinant=False):
    """One softmax over all pairs (j, k) for each query, [B, H, T, D]."""
    groups = q.size(1) // keys[0].size(1)
    k1, k2, v1, v2 = (x.repeat_interleave(groups, 1) for x in (*keys, *values))
    if determinant:
        q3, a3, b3 = (x.unflatten(-1, (-1, 3)) for x in (q, k1, k2))
        cross = torch.linalg.cross(a3[:, :, :, None], b3[:, :, None])  # [B, H, j, k, chunk, 3]
        logits = torch.einsum("bhicr,bhjkcr->bhijk", q3, cross)
    else:
        logits = torch.einsum("bhid,bhjd,bhkd->bhijk", q, k1, k2)
    place = torch.arange(q.size(2))
    seen = torch.ones(logits.shape[2:], dtype=torch.bool)
    for axis, window in enumerate(windows):
        ago = (place[:, None] - place).unsqueeze(2 - axis)
        if causal:
            seen = seen & (ago >= 0)
        if window >= 0:
            seen = seen & (ago < window)
    weights = (logits * q.size(-1) ** -0.5).masked_fill(~seen, -torch.inf).flatten(3).softmax(-1)
    return torch.einsum("bhijk,bhjd,bhkd->bhid", weights.view_as(logits), v1, v2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("determinant", [False, True])
def test_the_two_simplicial_function(causal, determinant):
    q = torch.randn(2, 4, 9, 6, dtype=torch.float64)
    k1, k2, v1, v2 = torch.randn(4, 2, 2, 9, 6, dtype=torch.float64)
    form = "determinant" if determinant else "product"
    torch.testing.assert_close(
        nsimplex.attention(q, [k1, k2], [v1, v2], causal=causal, form=form),
        two_simplicial(q, (k1, k2), (v1, v2), causal, determinant=determinant),
    )


def test_its_windows_hold_w1_keys_of_the_first_axis_and_w2_of_the_second():
    q, k1, k2, v1, v2 = torch.randn(5, 1, 9, 2, 6, dtype=torch.float64)
    out = nsimplex.attention(q, [k1, k2], [v1, v2], layout="bthd", causal=True, window=[5, 2])
    q, k1, k2, v1, v2 = (x.transpose(1, 2) for x in (q, k1, k2, v1, v2))
    expected = two_simplicial(q, (k1, k2), (v1, v2), True, (5, 2))
    torch.testing.assert_close(out.transpose(1, 2), expected)


def test_third_order_and_modalities():
    q, k1, k2, k3, v1, v2, v3 = torch.randn(7, 1, 2, 5, 6, dtype=torch.float64)
    logits = torch.einsum("bhid,bhjd,bhkd,bhld->bhijkl", q, k1, k2, k3) * 6**-0.5
    weights = logits.flatten(3).softmax(-1).view_as(logits)
    expected = torch.einsum("bhijkl,bhjd,bhkd,bhld->bhid", weights, v1, v2, v3)
    torch.testing.assert_close(nsimplex.attention(q, [k1, k2, k3], [v1, v2, v3]), expected)


def test_every_modality_attends_to_pairs_of_the_others(root):
    names = run(root, "simplicial-attention", "from_sound")
    text, image, sound = (names[name] for name in ("text", "image", "sound"))
    a, b, c = names["values"]
    logits = torch.einsum("bhid,bhjd,bhkd->bhijk", text, image, sound) * 16**-0.5
    masked = logits.masked_fill(~names["present"].view(1, 1, 1, 1, 9), -torch.inf)
    for weights, left, right, out in (
        (masked, b, c, "from_text"),
        (logits.transpose(2, 3), a, c, "from_image"),
        (logits.movedim(4, 2), a, b, "from_sound"),
    ):
        weights = weights.flatten(3).softmax(-1).view_as(weights)
        expected = torch.einsum("bhijk,bhjd,bhkd->bhid", weights, left, right)
        torch.testing.assert_close(names[out], expected, rtol=1e-4, atol=1e-5)


def test_one_rotation_of_all_chunks_leaves_the_determinant_alone():
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0]
    turn *= torch.linalg.det(turn)  # a rotation, not a reflection
    q, k1, k2, v1, v2 = torch.randn(5, 1, 2, 7, 6, dtype=torch.float64)
    turned = [(x.unflatten(-1, (-1, 3)) @ turn).flatten(-2) for x in (q, k1, k2)]
    torch.testing.assert_close(
        nsimplex.attention(turned[0], turned[1:], [v1, v2], form="determinant"),
        nsimplex.attention(q, [k1, k2], [v1, v2], form="determinant"),
    )


def test_converted_weights_give_the_same_layer(root):
    """The module projects to queries, keys and values; keys and values of a head are its axes side
    by side."""
    names = run(root, "simplicial-attention", "def convert")
    state, x = names["state"], torch.randn(2, 11, 48)
    layer = names["convert"](state, dim=48, heads=8, kv_heads=2, head_dim=16, causal=True)
    q, k, v = (x @ state["to_qkv.weight"].T).split([128, 64, 64], -1)
    q = q.unflatten(-1, (8, 16)).transpose(1, 2)
    keys, values = (part.unflatten(-1, (2, 32)).transpose(1, 2).chunk(2, -1) for part in (k, v))
    out = two_simplicial(q, keys, values, causal=True).transpose(1, 2).flatten(2)
    expected = out @ state["combine_heads.weight"].T
    torch.testing.assert_close(layer(x), expected, rtol=1e-3, atol=1e-3 * expected.abs().max())


def test_the_transformer_is_causal_and_has_simplicial_blocks(root):
    names = run(root, "simplicial-attention", "def transformer")
    model = names["model"]
    orders = [block.attention.order for block in list(model)[:-1]]
    assert orders == [1, 1, 1, 2]
    x = torch.randn(1, 48, 64)
    with torch.no_grad():
        later = x.clone()
        later[:, 30:] += 1
        torch.testing.assert_close(model(x)[:, :30], model(later)[:, :30])
        assert (model(x)[:, 30:] - model(later)[:, 30:]).abs().max() > 1e-3
    assert all(weight.grad is not None for weight in model.parameters())
