"""The figure of a language model's training."""

from __future__ import annotations

import matplotlib

from .data import LanguageRun, number
from .figure import SERIES, STYLE, finish, label, new_axes, svg


def loss_curves(run: LanguageRun) -> str:
    """Training and validation loss over steps."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        curves = [("training", "train_loss", SERIES[0]), ("validation", "val_loss", SERIES[1])]
        ends = []
        for name, key, color in curves:
            points = [(row["step"], number(row, key)) for row in run.metrics]
            points = [(step, loss) for step, loss in points if loss is not None]
            if not points:
                continue
            steps, losses = zip(*points)
            marker = "o" if key == "val_loss" else None
            axes.plot(steps, losses, color=color, marker=marker, markersize=4.5, alpha=0.95)
            ends.append((steps[-1], losses[-1], name, color))
        # Two curves often end together: the lower name goes below, the upper one above.
        ends.sort(key=lambda end: end[1])
        for index, (step, loss, name, color) in enumerate(ends):
            shift = 0 if len(ends) == 1 else (-7, 7)[index]
            label(axes, step, loss, name, color, shift)
        finish(axes, "training steps", "loss, nats per token")
        return svg(figure, f"loss-{run.name}", "Training and validation loss over training steps")
