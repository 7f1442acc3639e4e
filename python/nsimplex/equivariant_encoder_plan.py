"""Plans of the look-ups that encoders of higher-order transformers make between two lists of
tuples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ._arguments import checked, describe
from ._choices import EquivariantKeys, EquivariantMlp, PlanForm
from ._pytree import TensorRecord, tensor_record
from .equivariant_attention import EquivariantAttentionPlan, equivariant_attention_plan
from .equivariant_classes import TensorKind, equivariant_classes
from .equivariant_linear import EquivariantPlan, equivariant_plan
from .graph import TupleBatch

__all__ = ["EquivariantEncoderPlan", "equivariant_encoder_plan"]


@tensor_record("attention", "light", "mlp", "pattern_rows")
@dataclass(frozen=True)
class EquivariantEncoderPlan(TensorRecord):
    """See :func:`equivariant_encoder_plan`. A plan is a pytree: compiled and exported programs take
    one as an argument.

    Attributes:
        attention: plan of the classes that sum over the input.
        light: plan of the light classes k -> l.
        mlp: plan of a lightweight MLP, or None.
        pattern_rows: for a pointwise MLP, the rows of every equality pattern of the output tuples.
    """

    attention: EquivariantAttentionPlan
    light: EquivariantPlan
    mlp: EquivariantPlan | None
    pattern_rows: list[Tensor]

    def packed(self) -> EquivariantEncoderPlan:
        """The same plan with packed parts. A program that was compiled or exported with a packed
        plan takes those of other lists as well."""
        light = self.light.packed()
        mlp = light if self.mlp is self.light else self.mlp and self.mlp.packed()
        return replace(self, attention=self.attention.packed(), light=light, mlp=mlp)


@checked
def equivariant_encoder_plan(
    input: TupleBatch,
    output: TupleBatch,
    *,
    form: PlanForm = "softmax",
    keys: EquivariantKeys = "paper",
    global_classes: bool = True,
    input_loops: bool = True,
    output_loops: bool = True,
    mlp: EquivariantMlp = "automatic",
) -> EquivariantEncoderPlan:
    """The plan of encoders from features of one list of tuples to features of another list over the
    same nodes.

    Compute it once per pair of lists, on the CPU. All layers between the two lists use it in every
    step.

    Args:
        input, output: lists of tuples.
        form, keys, global_classes, input_loops, output_loops: as in
            :func:`nsimplex.equivariant_attention_plan`.
        mlp: "lightweight", "pointwise", or "automatic", which is lightweight up to l = 3, and
            pointwise for larger l and for loop-free tuples.

    Raises:
        ValueError: lists over different nodes, a repeated node that the symmetry or
            ``input_loops`` and ``output_loops`` exclude, orders beyond those of
            :func:`nsimplex.equivariant_classes`.
    """
    loops = {"input_loops": input_loops, "output_loops": output_loops}
    attention = equivariant_attention_plan(
        input,
        output,
        form="softmax" if form == "decoupled" else form,
        keys=keys,
        global_classes=global_classes,
        **loops,
    )
    light = equivariant_plan(input, output, classes="light", **loops)
    if not _is_lightweight(mlp, attention.output):
        return EquivariantEncoderPlan(
            attention, light, None, _rows_of_patterns(output, attention.output)
        )
    same = attention.input == attention.output and torch.equal(input.tuples, output.tuples)
    if same and torch.equal(input.tuple_offsets, output.tuple_offsets):
        return EquivariantEncoderPlan(attention, light, light, [])
    own_loops = {"input_loops": output_loops, "output_loops": output_loops}
    return EquivariantEncoderPlan(
        attention, light, equivariant_plan(output, output, classes="light", **own_loops), []
    )


def _is_lightweight(mlp: EquivariantMlp, kind: TensorKind) -> bool:
    if mlp not in ("automatic", "lightweight", "pointwise"):
        raise ValueError(
            "[EquivariantEncoder] mlp: expected automatic, lightweight or pointwise, got "
            f"{describe(mlp)}"
        )
    return mlp == "lightweight" or (
        mlp == "automatic" and kind.order <= 3 and kind.symmetry != "loop_free"
    )


def _rows_of_patterns(batch: TupleBatch, kind: TensorKind) -> list[Tensor]:
    """The rows of every equality pattern of the tuples of a list, in the order of the classes 0 ->
    l."""
    same = batch.tuples[:, :, None] == batch.tuples[:, None, :]
    rows = []
    for each in equivariant_classes(0, kind):
        matches = torch.zeros(len(batch.tuples), dtype=torch.bool)
        for member in each.members:
            own = torch.tensor(member, dtype=torch.int64)
            matches |= (same == (own[:, None] == own[None, :])).flatten(1).all(1)
        rows.append(matches.nonzero().squeeze(1))
    return rows
