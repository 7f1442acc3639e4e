"""Whatever a public function is given, it says what is wrong in one line that names an argument."""

from __future__ import annotations

import inspect

import pytest
import torch
from impostors import complaints_about
from public_calls import CALLS, MODULES, public_functions

import nsimplex
from nsimplex import causal, distributed
from nsimplex.causal.pipeline import CausalPipeline

FUNCTIONS = public_functions()
_LONGEST = 300
#: Optional packages of functions.
NEEDS = {
    "causal.read_h5ad": "anndata",
    "causal.to_causal_learn": "causallearn",
    "causal.to_igraph": "igraph",
    "causal.to_pgmpy": "pgmpy",
    "graph.to_dgl": "dgl",
    "graph.to_pyg": "torch_geometric",
    "graph.from_networkx": "networkx",
    "graph.to_networkx": "networkx",
}
#: Functions whose cases name no file that exists.
FILES = ("nsimplex.read_", "causal.read_", "graph.read_", "graph.write_", "text.")
_RAW = (
    "Expected a value of type",
    "schema",
    "Schema",
    "tensor(",
    "Traceback",
    "0x",
    "c10::",
    "at::",
)


class Frame:
    """Like a data frame: an array with names, and no tensor."""

    columns = ["a", "b"]
    shape = (3, 2)

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array([["x", "y"]] * 3, dtype=object)


def wrong_values(good: object) -> dict[str, object]:
    """What stands in for an argument, by name."""
    import numpy

    values = {
        "str": "nonsense",
        "none": None,
        "float": 3.7,
        "int": -3,
        "big": 2**63,
        "list": [1.0, "a"],
        "empty": [],
        "object": object(),
        "array": numpy.zeros((2, 3)),
        "frame": Frame(),
        "bytes": b"\xff",
        "dict": {"a": 1},
        "scalar tensor": torch.tensor(1.0),
        "nan": float("nan"),
    }
    if isinstance(good, torch.Tensor):
        values |= {
            "rank": good.new_zeros((1, 1, 1, 1, 1, 1, 1)),
            "vector": good.new_zeros(3),
            "void": good.new_zeros(0),
            "complex": good.to(torch.complex64),
            "bool": good.to(torch.bool),
            "int16": good.to(torch.int16),
            "float16": good.to(torch.float16),
            "meta": good.to("meta"),
            "sparse": good.to_sparse(),
            "wider": torch.cat([good, good], -1),
            "tensors": [good],
        }
    if isinstance(good, (list, tuple)) and good and isinstance(good[0], torch.Tensor):
        values |= {
            "tensor": good[0],
            "one less": list(good[1:]),
            "a none": [None, *good[1:]],
            "a float": [3.7, *good[1:]],
            "a meta": [good[0].to("meta"), *good[1:]],
            "a sparse": [good[0].to_sparse(), *good[1:]],
            "a wider": [torch.cat([good[0], good[0]], -1), *good[1:]],
            "a vector": [good[0].new_zeros(3), *good[1:]],
            "a bool": [good[0].to(torch.bool), *good[1:]],
            "an array": [numpy.zeros((2, 3)), *good[1:]],
        }
    return values


def arguments_of(name: str) -> list[str | int]:
    positional, keyword = CALLS[name]()
    return [*range(len(positional)), *keyword]


def test_every_public_function_has_a_case():
    assert set(CALLS) == set(FUNCTIONS)


@pytest.mark.parametrize("name", CALLS)
def test_the_case_itself_works(name):
    positional, keyword = CALLS[name]()
    if name.startswith(FILES):
        return
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    FUNCTIONS[name](*positional, **keyword)


@pytest.mark.parametrize(
    "name, argument", [(name, argument) for name in CALLS for argument in arguments_of(name)]
)
def test_wrong_arguments_get_one_line(name, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # functions that write take some of the values for a path
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    function = FUNCTIONS[name]
    parameters = [*inspect.signature(function).parameters]
    positional, keyword = CALLS[name]()
    good = positional[argument] if isinstance(argument, int) else keyword[argument]
    own = parameters[argument] if isinstance(argument, int) else argument
    known = {*parameters, *keyword, "cannot read"}
    complaints = []
    for kind, value in wrong_values(good).items():
        positional, keyword = CALLS[name]()
        if isinstance(argument, int):
            positional[argument] = value
        else:
            keyword[argument] = value
        try:
            function(*positional, **keyword)
        except Exception as error:
            fault = fault_of(error, known)
            if fault:
                complaints.append(
                    f"{own}={kind}: {fault}: {type(error).__name__}: {str(error)[:400]!r}"
                )
    assert not complaints, "\n".join(complaints)


def fault_of(error: Exception, parameters: set[str]) -> str | None:
    """What is wrong with how an argument was refused."""
    text = str(error)
    ours = isinstance(error, RuntimeError) and text.startswith("[")
    if not (ours or isinstance(error, (ValueError, TypeError, NotImplementedError))):
        return "class"
    if "\n" in text or len(text) > _LONGEST:
        return "length"
    if any(raw in text for raw in _RAW):
        return "raw"
    if not any(name in text for name in parameters):
        return "no name"
    return None


def _called(name: str, argument: str | int | None = None, value: object = None) -> object:
    """What the case of a function returns, with another value for one of its arguments."""
    torch.manual_seed(3)
    positional, keyword = CALLS[name]()
    if isinstance(argument, int):
        positional[argument] = value
    elif argument is not None:
        keyword[argument] = value
    return FUNCTIONS[name](*positional, **keyword)


@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith(FILES)])
def test_an_argument_is_what_its_type_says(name, tmp_path, monkeypatch):
    """An impostor means what the honest value means, or is refused in one line."""
    monkeypatch.chdir(tmp_path)
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    torch.manual_seed(3)
    positional, keyword = CALLS[name]()
    known = {*inspect.signature(FUNCTIONS[name]).parameters, *keyword, "cannot read"}
    complaints = complaints_about(
        [*enumerate(positional), *keyword.items()],
        lambda argument, value: _called(name, argument, value),
        _called(name),
        lambda error: fault_of(error, known),
    )
    assert not complaints, "\n".join(complaints)


def _columns() -> torch.Tensor:
    """A table whose columns cause each other against their order."""
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(60, 3, dtype=torch.float64, generator=draw)
    x[:, 1] += 2 * x[:, 2]
    x[:, 0] += 2 * x[:, 1]
    return x


#: Parameters of CausalGraph, and arguments of its fit, that change the answer.
PARAMETERS = dict(
    estimator="order",
    nonlinear=False,
    standardise=True,
    threshold=0.1,
    sparsity=None,
    rank=40,
    sample=False,
    orient_by_noise=False,
    soft=False,
    missing="refuse",
    drop=True,
    screen=3,
    screen_by="variance",
    confidence=2,
    resampling="halves",
    min_frequency=0.5,
    n_jobs=1,
    seed=1,
)
FIT = dict(
    names=["a", "b", "c"],
    forbidden=[(0, 1)],
    required=[(2, 1)],
    tiers=[2, 1, 0],
    groups=[row % 2 for row in range(60)],
    targets=[-1, 1, 2] * 20,
)


@pytest.mark.parametrize("cls", [causal.CausalGraph, CausalPipeline])
def test_estimators_take_parameters_and_rows_for_what_they_are(cls):
    quick = dict(steps=2) if cls is CausalPipeline else {}

    def fitted(options, arguments, table=None):
        x = _columns() if table is None else table
        found = cls(**(PARAMETERS | quick | options)).fit(x, **(FIT | arguments))
        return found.adjacency_, found.frequencies_, torch.as_tensor(found.transform(x))

    def with_one(name, value):
        if name == "X":
            return fitted({}, {}, value)
        return fitted({name: value}, {}) if name in PARAMETERS else fitted({}, {name: value})

    complaints = complaints_about(
        [*PARAMETERS.items(), *FIT.items(), ("X", _columns())],
        with_one,
        fitted({}, {}),
        lambda error: fault_of(error, {*PARAMETERS, *FIT, "X"}),
    )
    assert not complaints, "\n".join(complaints)


def _public_classes() -> dict[str, type]:
    modules = {**MODULES, "nn": nsimplex.nn, "distributed": distributed}
    return {
        f"{prefix}.{name}": value
        for prefix, module in modules.items()
        for name in module.__all__
        if inspect.isclass(value := getattr(module, name))
    }


#: Records that operators and readers fill; what takes them looks at their fields.
FILLED = {
    "nsimplex.EquivariantAttentionClass",
    "nsimplex.EquivariantAttentionPlan",
    "nsimplex.EquivariantClass",
    "nsimplex.EquivariantEncoderPlan",
    "nsimplex.EquivariantPlan",
    "analysis.LayerReport",
    "causal.FitInterrupted",
    "distributed.Traffic",
    "graph.GraphData",
    "graph.TupleBatch",
    "nn.GraphInputs",
    "nn.TrainingState",
}


def test_every_public_function_and_method_compares_its_arguments():
    """One place refuses what is of another type: nothing public goes round it."""
    loose = [name for name, function in FUNCTIONS.items() if not hasattr(function, "__wrapped__")]
    for name, cls in _public_classes().items():
        for own, member in vars(cls).items():
            method = getattr(member, "__func__", member)
            public = own == "__init__" or not own.startswith("_")
            if not (public and inspect.isfunction(method)) or hasattr(method, "__wrapped__"):
                continue
            takes = len(inspect.signature(method).parameters) > (
                not isinstance(member, staticmethod)
            )
            if takes and not (own == "__init__" and name in FILLED) and not inspect.isabstract(cls):
                loose.append(f"{name}.{own}")
    assert not loose


def test_the_words():
    q = torch.randn(1, 2, 4, 6)
    for call, error, words in (
        (
            lambda: nsimplex.attention(q, q, q),
            TypeError,
            "[attention] keys: expected a list of tensors, got a torch.float32 tensor of shape "
            "[1, 2, 4, 6]; a single one goes in a list, [keys]",
        ),
        (
            lambda: nsimplex.attention(q, [q], [None]),
            TypeError,
            "[attention] values[0]: expected a tensor, got None",
        ),
        (
            lambda: nsimplex.attention(q, [q], [q], key_lengths=[3]),
            TypeError,
            "[attention] key_lengths: expected a tensor or None, got list [3]",
        ),
        (
            lambda: nsimplex.topk_keys(q, q, 2, scale=torch.tensor(0.5, requires_grad=True)),
            TypeError,
            "[topk_keys] scale: expected a number or None, got a torch.float32 tensor of shape [] "
            "that requires a gradient, which it would not get",
        ),
        (
            lambda: nsimplex.attention_weights(q, [q], causal="no"),
            TypeError,
            "[attention_weights] causal: expected True or False, got 'no'",
        ),
        (
            lambda: nsimplex.reference(q, [q], [q], casual=True),
            TypeError,
            "[reference] casual: no such argument; did you mean causal?",
        ),
        (
            lambda: nsimplex.attention(q.to_sparse(), [q], [q]),
            ValueError,
            "[attention] query: expected a dense tensor, got layout Sparse",
        ),
        (
            lambda: nsimplex.topk_keys(q, q, 2.5),
            TypeError,
            "[topk_keys] k: expected an integer, got 2.5",
        ),
        (
            lambda: nsimplex.feature_map(q, "random", seed=2**63),
            ValueError,
            "[feature_map] seed: expected an integer from -2^63 to 2^63 - 1, got "
            "9223372036854775808",
        ),
        (
            lambda: nsimplex.graph.edge_tuples([[0, 1]], 2),
            TypeError,
            "[edge_tuples] edges: expected a tensor, got list",
        ),
        (
            lambda: nsimplex.graph.edge_tuples(torch.tensor([[0, 1]], device="meta"), 2),
            ValueError,
            "[edge_tuples] edges: expected a tensor on the CPU, got one on meta",
        ),
        (
            lambda: nsimplex.KeyValueCache(4),
            TypeError,
            "[KeyValueCache] window: expected a list of integers, got 4",
        ),
    ):
        with pytest.raises(error) as raised:
            call()
        assert str(raised.value) == words
        assert raised.value.__cause__ is None and raised.value.__suppress_context__ is False


def test_arguments_of_other_libraries_are_told_by_ours():
    """By the call: an argument of another library, and how the message ends."""
    q, x = torch.randn(1, 2, 4, 6), torch.randn(1, 4, 8)
    layer = nsimplex.nn.SimplicialAttention(8, 2)
    takes_part = "did you mean key_masks, True where a key takes part?"
    own_position = "did you mean window, which counts the query's own position?"
    attention = lambda **options: nsimplex.attention(q, [q], [q], **options)
    make = lambda **options: nsimplex.nn.SimplicialAttention(8, **options)
    sparse = lambda **options: nsimplex.nn.SparseAttention(8, 2, **options)
    for call, name, ending in (
        (attention, "is_causal", "did you mean causal?"),
        (attention, "attn_mask", "did you mean mask?"),
        (attention, "attn_bias", "did you mean mask?"),
        (attention, "softmax_scale", "did you mean scale?"),
        (attention, "key_padding_mask", takes_part),
        (attention, "window_size", own_position),
        (attention, "num_heads", "elsewhere in nsimplex it is called heads"),
        (make, "is_causal", "did you mean causal?"),
        (make, "softmax_scale", "did you mean scale?"),
        (make, "num_heads", "did you mean heads?"),
        (make, "num_kv_heads", "did you mean kv_heads?"),
        (make, "embed_dim", "did you mean dim?"),
        (make, "window_size", own_position),
        (make, "attn_mask", "elsewhere in nsimplex it is called mask"),
        (sparse, "is_causal", "did you mean causal?"),
        (sparse, "num_kv_heads", "did you mean kv_heads?"),
        (lambda **given: layer(x, **given), "key_padding_mask", takes_part),
        (lambda **given: layer(x, **given), "attention_mask", takes_part),
        (lambda **given: layer(x, **given), "attn_mask", "did you mean mask?"),
        (
            lambda **given: layer(x, **given),
            "is_causal",
            "elsewhere in nsimplex it is called causal",
        ),
    ):
        with pytest.raises(TypeError) as raised:
            call(**{name: None})
        _, _, words = str(raised.value).partition("] ")
        assert words == f"{name}: no such argument; {ending}"


def test_what_ends_a_forward_of_a_checkpoint_is_no_wrong_argument():
    """torch ends the second forward by an exception once it has what it needs."""
    linked = torch.eye(4, dtype=torch.bool).float().to_sparse_csr()
    layer = nsimplex.nn.SimplicialAttention(8, 2, select=nsimplex.nn.Neighbours())
    x = torch.randn(1, 4, 8, requires_grad=True)
    kept = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False, adjacency=linked)
    kept.sum().backward()
    assert x.grad.any()


def test_a_learned_number_is_never_detached_in_silence():
    """torch makes a number of a tensor with one element, and its gradient is gone."""
    q = torch.randn(1, 2, 4, 6)
    for wrong, call in {
        "[attention] scale": lambda s: nsimplex.attention(q, [q], [q], scale=s),
        "[attention] scale[1]": lambda s: nsimplex.attention(q, [q, q], [q, q], scale=(1.0, s)),
        "[attention] dropout_p": lambda s: nsimplex.attention(q, [q], [q], dropout_p=s),
        "[face_attention] scale": lambda s: nsimplex.face_attention(q, [q, q], [q, q], scale=s),
        "[rotary] base": lambda s: nsimplex.rotary(q, base=s),
    }.items():
        number = torch.tensor(0.5)
        with pytest.raises(TypeError) as raised:
            call(number.clone().requires_grad_())
        assert str(raised.value).startswith(wrong) and "\n" not in str(raised.value)
        with pytest.raises(TypeError):
            torch.func.grad(lambda s, call=call: call(s)[0].sum())(number)
        call(number)  # a number that nobody learns


def test_a_function_keeps_its_name_and_signature():
    assert (
        nsimplex.attention.__name__ == "attention"
        and "return_lse" in inspect.signature(nsimplex.attention).parameters
    )


def test_numbers_of_tables_may_be_arrays_and_data_frames():
    import numpy

    class Numeric(Frame):
        columns = ["a", "b", "c"]

        def __init__(self, values):
            self.values, self.shape = values, values.shape

        def __array__(self, dtype=None, copy=None):
            return self.values.astype(dtype or self.values.dtype)

    table = numpy.random.default_rng(0).normal(size=(40, 3))
    table[:, 2] += table[:, 0]
    expected = nsimplex.causal.causal_fit(torch.from_numpy(table)).adjacency
    for given in (table, table.tolist(), Numeric(table)):
        assert torch.equal(nsimplex.causal.causal_fit(given).adjacency, expected)
    assert nsimplex.causal.usable_table(Numeric(table)).names == ["a", "b", "c"]
    assert nsimplex.causal.usable_table(Numeric(table), ["x", "y", "z"]).names == ["x", "y", "z"]
    assert nsimplex.causal.usable_table(table).names == []
    fitted = CausalPipeline(steps=2).fit(Numeric(table))
    assert fitted.names_ == ["a", "b", "c"] and fitted.transform(Numeric(table)).shape == (40, 3)
    whole = nsimplex.causal.causal_embed(numpy.array([[0, 1], [0, 0]]), steps=2)
    assert torch.equal(
        whole.tangents,
        nsimplex.causal.causal_embed(torch.tensor([[0.0, 1], [0, 0]]), steps=2).tangents,
    )


def test_activations_that_are_no_numbers_are_watched_as_such():
    model = torch.nn.Sequential(torch.nn.ModuleList([torch.nn.Identity()])[0])
    for exact in (False, True):
        with nsimplex.analysis.SmoothingMonitor(model, modules=["0"], exact=exact) as monitor:
            x = torch.randn(3, 4, 5)
            x[1, 2, 3], x[2, 0, 0] = torch.nan, torch.inf
            model(x)
        for figure in monitor.layers[0][1:]:
            assert figure.isnan().tolist() == [False, True, True]
