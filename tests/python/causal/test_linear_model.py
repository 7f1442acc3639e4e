"""The regressions of columns on their causes."""

import torch

from nsimplex.causal.linear_model import log_likelihood, regress, residuals


def drawn():
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(80, 4, generator=generator, dtype=torch.float64) + 3
    graph = torch.zeros(4, 4, dtype=torch.float64)
    graph[0, 2] = graph[1, 2] = graph[2, 3] = 1
    values[:, 2] += 2 * values[:, 0] - values[:, 1]
    values[:, 3] += values[:, 2]
    return values, graph


def expected(values, causes, effect):
    design = torch.cat([values[:, causes], torch.ones(len(values), 1, dtype=torch.float64)], 1)
    return torch.linalg.lstsq(design, values[:, effect, None]).solution.flatten()


def test_each_column_is_regressed_on_its_causes():
    values, graph = drawn()
    model = regress(values, graph)
    want = expected(values, [0, 1], 2)
    torch.testing.assert_close(model.coefficients[:2, 2], want[:2])
    torch.testing.assert_close(model.intercepts[2], want[2])
    assert model.coefficients[graph == 0].count_nonzero() == 0
    noise = residuals(values, model)
    torch.testing.assert_close(model.variances, noise.square().mean(0))
    assert log_likelihood(values, model).shape == (80,)


def test_groups_targets_and_gaps():
    values, graph = drawn()
    groups = [row % 2 for row in range(80)]
    moved = values + 10 * torch.tensor(groups, dtype=torch.float64)[:, None]
    centred = values.clone()
    for group in (0, 1):
        centred[group::2] -= values[group::2].mean(0)
    model = regress(moved, graph, groups)
    torch.testing.assert_close(model.coefficients[:2, 2], expected(centred, [0, 1], 2)[:2])

    targets = [[2] if row < 30 else [] for row in range(80)]
    model = regress(values, graph, targets=targets)
    torch.testing.assert_close(model.coefficients[:2, 2], expected(values[30:], [0, 1], 2)[:2])
    torch.testing.assert_close(model.coefficients[2, 3], expected(values, [2], 3)[0])

    gaps = values.clone()
    gaps[:25, 1] = torch.nan
    model = regress(gaps, graph)
    torch.testing.assert_close(model.coefficients[:2, 2], expected(values[25:], [0, 1], 2)[:2])
    torch.testing.assert_close(model.coefficients[2, 3], expected(values, [2], 3)[0])
