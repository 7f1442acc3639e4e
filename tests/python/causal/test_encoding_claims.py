"""What causal angles do to attention scores, and where statements of arXiv 2509.16629 about it
fail."""

import math

import torch

import nsimplex
from nsimplex import causal

C = math.pi / 4


def distance(*ball):
    return causal.hyperbolic_distances(causal.ball_tangents(torch.stack(ball)))[0, 1].item()


def score(query, key, e_query, e_key):
    """q^T R(c (e_key - e_query)) k, by turning both; of many pairs at once."""
    turned = [
        nsimplex.rotary(x[None, None], angles=causal.causal_angles(e))
        for x, e in ((query, e_query), (key, e_key))
    ]
    return (turned[0] * turned[1]).sum(-1)[0, 0]


def vector(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def equal_score(a, b):
    """The score of two equal vectors of length 1 in every plane, over the number of planes."""
    q = torch.ones(1, 2 * len(a), dtype=torch.float64) / math.sqrt(2)
    return (score(q, q, a[None], b[None]) / len(a)).item()


def test_farther_pairs_may_be_attenuated_less():
    """Prop. 4.1: the angles see the gap |e_m - e_n| in the ball, which is no function of the
    distance."""
    near = (vector(0.2, 0), vector(-0.2, 0))
    far = (0.9999 * vector(1, 0), 0.9999 * vector(math.cos(0.1), math.sin(0.1)))
    assert abs(distance(*near) - 0.81) < 0.01 and abs(distance(*far) - 13.8) < 0.1
    assert equal_score(*far) > equal_score(*near)


def test_at_one_distance_scores_rise_towards_the_origin():
    """Prop. 4.2 says they fall; antipodal points are 2 tanh(d / 4) apart, the origin is tanh(d / 2)
    from the other."""
    gaps, scores = [], []
    for share in (0.5, 0.75, 1.0):  # of the distance 3, on the other side of the origin
        m, n = vector(-math.tanh(1.5 * (1 - share)), 0), vector(math.tanh(1.5 * share), 0)
        assert abs(distance(m, n) - 3) < 1e-9
        gaps.append((m - n).norm().item())
        scores.append(equal_score(m, n))
    assert abs(gaps[0] - 1.270) < 1e-3 and abs(gaps[-1] - 0.905) < 1e-3
    assert scores == sorted(scores)


def test_noise_does_not_average_out():
    """Prop. A.9 and A.10: the mean disturbed score is exp(-c^2 sigma^2) times the score, not the
    score."""
    draws, planes, sigma = 200_000, 3, 0.3
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 2 * planes, dtype=torch.float64, generator=generator)
    e = 0.4 * torch.randn(2, planes, dtype=torch.float64, generator=generator)
    noise = sigma * torch.randn(2, draws, planes, dtype=torch.float64, generator=generator)
    clean = score(q, k, e[:1], e[1:])
    disturbed = score(q.expand(draws, -1), k.expand(draws, -1), e[0] + noise[0], e[1] + noise[1])
    error = 5 * disturbed.std() / math.sqrt(draws)
    assert (disturbed.mean() - math.exp(-(C**2) * sigma**2) * clean).abs() < error
    assert (disturbed.mean() - clean).abs() > error


def test_least_accuracy_of_the_approximation():
    """Fig. S1 says at least 93.8 %; at the corner sigma = pi / 12 it is 93.4 %."""
    assert abs(math.exp(-((math.pi / 12) ** 2)) - 0.934) < 5e-4


def test_a_noisy_copy_may_score_below_another_feature():
    """Prop. A.8 drops (Cov_12 - Cov_21) sin from tr(R Cov(q, k)): with it the sign is open."""
    e_m, e_n = vector(0.9, 0), vector(-0.9, 0)
    # E q k^T = [[a, b], [-b, a]] in the first plane: all Cov(q_t, k_t) = a > 0, as A.81 assumes.
    a, b = 0.2, 1.0
    basis = torch.eye(2, dtype=torch.float64)
    covariance = torch.tensor([[a, b], [-b, a]], dtype=torch.float64)
    expected = 0.0
    for i in range(2):
        for j in range(2):
            pad = torch.zeros(1, 2, dtype=torch.float64)
            q, k = (torch.cat([basis[x][None], pad], 1) for x in (i, j))
            expected += covariance[i, j] * score(q, k, e_m[None], e_n[None])
    gap = C * (e_n - e_m)[0]
    torch.testing.assert_close(expected[0], 2 * a * gap.cos() - 2 * b * gap.sin())
    without_sine = 2 * a * gap.cos()
    assert without_sine > 0 and min(expected, 2 * a * gap.cos() + 2 * b * gap.sin()) < 0
