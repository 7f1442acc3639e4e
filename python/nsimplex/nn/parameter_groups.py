"""Groups of parameters whose learning rates fit models of every width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from .._arguments import checked, describe
from .._choices import WidthRecipe
from .checks import require, require_name, require_positive
from .language_model import LanguageModel

__all__ = ["ParameterGroups", "parameter_groups"]

_AT = "[parameter_groups] "


class ParameterGroups(NamedTuple):
    """Groups for two optimizers. Each is a dict with ``params``, ``lr`` and ``weight_decay``, and
    with the ``names`` of the parameters."""

    muon: list[dict[str, Any]]  #: for ``torch.optim.Muon``; empty with the recipe "mup"
    adamw: list[dict[str, Any]]  #: for ``torch.optim.AdamW``


@checked
def parameter_groups(
    model: nn.Module,
    base: nn.Module | None = None,
    *,
    recipe: WidthRecipe = "muon",
    lr: float = 0.02,
    adamw_lr: float | None = None,
    weight_decay: float = 0.0,
    outputs: Sequence[str] = ("head", "lm_head"),
) -> ParameterGroups:
    r"""Learning rates for a model that is wider than the one at which ``lr`` was found.

    .. math::
        \mathrm{AdamW}\!: \quad \mathrm{lr}_W &= \mathrm{lr}_a\, / \,g_W \\
        \mathrm{Muon}\!: \quad \Delta W &= -\mathrm{lr} \sqrt{n_\mathrm{out} / n_\mathrm{in}}\;
            U V^\top, \qquad U \Sigma V^\top = \text{momentum of the gradient}

    :math:`g_W` is the growth of the number of inputs of W since ``base``. Biases, gains and
    embeddings have g = 1. Parameters without entries, such as those of classes that a layer does
    not have, go to AdamW.

    "mup" gives all weights to AdamW. "muon" gives the matrices of the hidden layers to Muon:
    weights with two axes of modules of any class, except embeddings, norms and the outputs. They
    are read as [n_out, n_in], or [n_in, n_out] for ``Conv1D`` of Transformers' GPT-2. A parameter
    whose name does not have "weight" in it is a matrix if both of its axes are larger than in
    ``base``. Stacks of matrices go to AdamW. Muon's step is a matrix of one fixed spectral norm
    relative to :math:`\sqrt{n_\mathrm{out} / n_\mathrm{in}}`, so that it changes unit inputs by lr
    at every width. No rule depends on the order N: attention keeps its size as heads widen if the
    layers have ``scale="unit"``.

    The rates suppose that the first weights of the outputs shrink with the width: divide them by
    their g, or set them to 0.

    Args:
        model: the model to train. Parameters without ``requires_grad`` are left out.
        base: the model at which the rates were found, with the same parameters in smaller shapes.
            It may be on the device "meta". None: the model itself, so that every g is 1.
        recipe: "muon" or "mup".
        lr: of Muon, and of AdamW unless ``adamw_lr`` is given.
        adamw_lr: lr_a, the rate of AdamW for g = 1.
        weight_decay: decoupled, for weights with two or more axes that are not embeddings. It is
            divided by the group's rate relative to ``lr``, so that a step multiplies every such
            weight by 1 - lr weight_decay at all widths.
        outputs: the last parts of the names of output layers.

    Returns:
        :class:`ParameterGroups`. Groups for Muon name the rule for their rate, "original", by
        ``adjust_lr_fn``: Muon then multiplies it by :math:`\sqrt{\max(1, n_\mathrm{out} /
        n_\mathrm{in})}`, and ``lr`` of the group holds the rest.

    Raises:
        ValueError: rates that are not positive, other parameters in ``base``, or an output that
            shares its weight with an embedding, for which no rate fits both.

    Sources: Yang et al., "Tensor Programs V", arXiv 2203.03466, table 3 (mup); Yang, Simon,
        Bernstein, "A Spectral Condition for Feature Learning", arXiv 2310.17813, condition 1;
        Jordan et al., "Muon" (2024), kellerjordan.github.io/posts/muon.

    Complexity: no arithmetic on weights.

    Example:
        >>> options = dict(layers=2, heads=2, order=2, scale="unit", tied=False)
        >>> base, model = (
        ...     nn.LanguageModel(nn.LanguageModelOptions(dim=dim, **options)) for dim in (32, 128)
        ... )
        >>> model.head.weight.data /= 128 / 32
        >>> groups = nn.parameter_groups(model, base, lr=0.02)
        >>> optimizers = [torch.optim.Muon(groups.muon), torch.optim.AdamW(groups.adamw)]
    """
    require(
        isinstance(model, nn.Module),
        f"{_AT}model: expected a torch.nn.Module, got {describe(model)}",
    )
    require_name(_AT, "recipe", recipe, ("muon", "mup"))
    adamw_lr = lr if adamw_lr is None else adamw_lr
    require_positive(_AT, lr=lr, adamw_lr=adamw_lr)
    fits = isinstance(weight_decay, (int, float)) and math.isfinite(weight_decay)
    require(
        fits and weight_decay >= 0,
        f"{_AT}weight_decay: expected 0 or more, got {describe(weight_decay)}",
    )
    _require_untied(model)
    owners = {
        id(weight): (name, module)
        for name, module in model.named_modules()
        for weight in module.parameters(recurse=False)
    }
    shapes = _shapes_of_base(model, model if base is None else base)
    made: dict[tuple[bool, float, float], dict[str, Any]] = {}
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        path, owner = owners[id(weight)]
        own, inputs = name.split(".")[-1], _input_axis(owner)
        hidden = path.split(".")[-1] not in outputs and own not in outputs
        by_muon = recipe == "muon" and hidden and _is_matrix(own, owner, weight.shape, shapes[name])
        if by_muon:
            rate = lr * _step_of_muon(weight, 1 if inputs is None else inputs)
        else:
            rate = adamw_lr / _growth(weight, shapes[name], inputs)
        decays = weight.dim() > 1 and not isinstance(owner, nn.Embedding)
        whole = lr if by_muon else adamw_lr
        decay = weight_decay * whole / rate if decays else 0.0
        group = made.setdefault(
            (by_muon, rate, decay), dict(params=[], names=[], lr=rate, weight_decay=decay)
        )
        group["params"].append(weight)
        group["names"].append(name)
    muon = [group | {"adjust_lr_fn": "original"} for (own, *_), group in made.items() if own]
    return ParameterGroups(muon, [group for (own, *_), group in made.items() if not own])


def _require_untied(model: nn.Module) -> None:
    """Check that no weight is both an embedding, whose rate is fixed, and an output."""
    tied = isinstance(model, LanguageModel) and model.options.tied
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    shared = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    require(
        not tied and not any(id(layer.weight) in shared for layer in layers),
        f"{_AT}model: expected an output with weights of its own (tied=False), got those of the "
        "embedding",
    )


def _shapes_of_base(model: nn.Module, base: nn.Module) -> dict[str, list[int]]:
    require(
        isinstance(base, nn.Module),
        f"{_AT}base: expected None or a torch.nn.Module, got {describe(base)}",
    )
    shapes = {name: [*weight.shape] for name, weight in base.named_parameters()}
    for name, weight in model.named_parameters():
        require(name in shapes, f"{_AT}base: expected a parameter {name}, found none")
        own, other = [*weight.shape], shapes[name]
        require(
            len(own) == len(other) and all(bool(a) == bool(b) for a, b in zip(own, other)),
            f"{_AT}base: expected {name} with {len(own)} axes, empty only where the model's are, "
            f"got shape {other} for {own}",
        )
    return shapes


def _input_axis(owner: nn.Module) -> int | None:
    """The axis of a weight along which a module's inputs are; None: it is not known."""
    if any(kind.__name__ == "Conv1D" for kind in type(owner).__mro__):  # of Transformers' GPT-2
        return 0
    return 1 if isinstance(owner, nn.Linear) else None


def _is_matrix(name: str, owner: nn.Module, shape: Sequence[int], base: Sequence[int]) -> bool:
    """Whether a parameter, by its own name, is a matrix from inputs to outputs: a weight with two
    axes, or a parameter by another name that grew along both."""
    kinds = " ".join(kind.__name__ for kind in type(owner).__mro__)
    vectors = "Embed" in kinds or "Norm" in kinds or "bias" in name
    if len(shape) != 2 or 0 in shape or vectors:
        return False
    return "weight" in name or all(size > other for size, other in zip(shape, base))


def _step_of_muon(weight: Tensor, inputs: int) -> float:
    """What makes the step's spectral norm sqrt(n_out / n_in): Muon itself multiplies it by
    sqrt(max(1, rows / columns))."""
    wanted = math.sqrt(weight.size(1 - inputs) / weight.size(inputs))
    return wanted / math.sqrt(max(1.0, weight.size(0) / weight.size(1)))


def _growth(weight: Tensor, base: list[int], inputs: int | None) -> float:
    """The growth of the number of inputs: that of the axis of inputs of a linear layer, and the
    second largest one of other weights, which is 1 if only one axis grows."""
    grown = [size / other if other else 1.0 for size, other in zip(weight.shape, base)]
    if inputs is not None and len(grown) == 2 and 0 not in weight.shape:
        return grown[inputs]
    return sorted(grown)[-2] if len(grown) > 1 else 1.0
