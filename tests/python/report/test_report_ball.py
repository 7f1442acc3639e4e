"""The picture of an embedded graph."""

import math

import numpy as np
import torch
from report_page import read

from nsimplex import causal
from nsimplex.report.ball import geodesic, principal_axes
from nsimplex.report.learned import read_ball

POINTS = "name,generality,radius,e0,e1,e2\n"


def write_folder(folder):
    lines = [
        f"n{at},{0.1 * (at + 1)},{2 * math.atanh(norm)},{norm},0,{0.1 * at if at else 0}"
        for at, norm in enumerate((0.2, 0.5, 0.7))
    ]
    (folder / "ball.csv").write_text(POINTS + "\n".join(lines) + "\n")
    (folder / "edges.tsv").write_text(
        "cause\teffect\tweight\nn0\tn1\t0.5\nn1\tn2\t-2\nn0\tnowhere\t1\nbroken\n"
    )


def test_a_folder_with_points_is_drawn(tmp_path):
    write_folder(tmp_path)
    ball = read_ball(tmp_path)
    assert ball.edges == [(1, 2, -2.0), (0, 1, 0.5)]
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in ("The Poincaré ball", "3 nodes and 2 edges", "3 dimensions", "n2"):
        assert words in page.text, words


def test_what_is_no_ball_is_left_out(tmp_path):
    assert read_ball(tmp_path) is None
    for text in ("", POINTS, POINTS + "a,1,2,x,0,0\n", POINTS + "a,1,2,nan,0,0\n", "a,b\n1,2\n"):
        (tmp_path / "ball.csv").write_text(text)
        assert read_ball(tmp_path) is None, text


def test_edges_are_geodesics():
    """Every point of the arc is on the way: its distances to both ends sum to theirs, and steps are
    equal."""
    tangents = torch.tensor([[1.5, 0.2, 0.0], [-0.3, 2.0, 1.0]], dtype=torch.float64)
    radii = tangents.norm(dim=1)
    arc = geodesic(tuple(radii.tolist()), (tangents / radii[:, None]).numpy(), steps=9)
    ends = causal.ball_points(tangents).numpy()
    np.testing.assert_allclose(arc[[0, -1]], ends, atol=1e-12)
    distances = causal.hyperbolic_distances(causal.ball_tangents(torch.from_numpy(arc)))
    whole = distances[0, -1]
    torch.testing.assert_close(distances[0] + distances[:, -1], whole.expand(9))
    torch.testing.assert_close(distances.diagonal(1), (whole / 8).expand(8))
    np.testing.assert_allclose(
        geodesic((1.0, 1.0), np.array([[1.0, 0.0], [1.0, 0.0]]), 3), [[math.tanh(0.5), 0]] * 3
    )


def test_axes_show_most_of_the_points():
    assert (principal_axes(np.ones((3, 2))) == np.eye(2)).all()
    points = np.array([[0, 0, 0.9, 0], [0, 0.5, 0, 0], [0.01, 0, 0, 0]])
    shown = points @ principal_axes(points)
    np.testing.assert_allclose(np.abs(shown), [[0.9, 0], [0, 0.5], [0, 0]], atol=1e-12)
