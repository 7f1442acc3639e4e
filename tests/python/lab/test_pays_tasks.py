"""The tasks of the benchmark of orders: generators against definitions."""

from __future__ import annotations

import itertools

import pytest
import torch
from pays_batches import drawn

from nsimplex.lab.pays import TASKS

HERE = [name for name, task in TASKS.items() if not task.missing()]


@pytest.mark.parametrize("name", HERE)
def test_a_generator_is_what_its_task_says(name):
    task = TASKS[name]
    for split in ("train", "valid", "test", *(["long"] if task.longer else [])):
        batch = drawn(name, split=split)
        assert batch.fields.shape[:2] == batch.targets.shape
        assert batch.fields.shape[2] == len(task.fields)
        for field, size in enumerate(task.fields):
            codes = batch.fields[..., field]
            assert codes.min() >= 0 and codes.max() < size
        assert (batch.numbers is None) == (task.numbers == 0)
        if task.classes:
            assert batch.targets.dtype == torch.int64
            assert batch.targets.min() >= -1 and 0 <= batch.targets.max() < task.classes
        again = drawn(name, split=split)
        assert torch.equal(batch.fields, again.fields)
        assert torch.equal(batch.targets.nan_to_num(-7), again.targets.nan_to_num(-7))
    assert len(task.reason) > 60 and "\n" not in task.reason


@pytest.mark.parametrize("name", [name for name in HERE if TASKS[name].longer])
def test_longer_inputs_are_longer_or_chains_are(name):
    longer = drawn(name, split="long").fields.shape[1] > drawn(name).fields.shape[1]
    assert longer != (name == "composition")


def test_joint_recall_asks_for_the_value_of_two_keys():
    batch = drawn("joint-recall", 40)
    ambiguous = 0
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        first = {token[3]: token[1] for token in tokens if token[0] == 0}
        stored = [(first[t[3]], t[2], t[4] - 1) for t in tokens if t[0] == 1]
        for token, target in zip(tokens, targets):
            assert (target >= 0) == (token[0] == 2)
            if token[0] == 2:
                assert [v for a, b, v in stored if (a, b) == (token[1], token[2])] == [target]
                ambiguous += len({v for a, b, v in stored if b == token[2]}) > 1
    assert ambiguous > 60


def test_recall_of_one_key_has_unique_keys():
    batch = drawn("single-key-recall")
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        stored = {token[1]: token[2] - 1 for token in tokens if token[0] == 0}
        assert len(stored) == sum(token[0] == 0 for token in tokens)
        for token, target in zip(tokens, targets):
            assert target == (stored[token[1]] if token[0] == 1 else -1)


@pytest.mark.parametrize("split", ["train", "long"])
def test_composition_multiplies_permutations_along_the_chain(split):
    group = list(itertools.permutations(range(3)))
    spans = set()
    batch = drawn("composition", 40, split=split)
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        after = {token[1]: (token[2], group[token[3] - 1]) for token in tokens if token[0] == 0}
        for token, target in zip(tokens, targets):
            if token[0] == 0:
                assert target == -1
                continue
            at, product, span = token[1], (0, 1, 2), 0
            while at != token[2]:
                at, relation = after[at]
                product = tuple(relation[place] for place in product)
                span += 1
            assert group[target] == product
            spans.add(span)
    assert spans == ({4, 5, 6} if split == "long" else {1, 2, 3})


def test_triangles_and_paths():
    batch = drawn("triangles")
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        edges = {tuple(token) for token in tokens}
        assert len(edges) == len(tokens) and all((v, u) in edges for u, v in edges)
        for (u, v), target in zip(tokens, targets):
            assert target == any((u, w) in edges and (w, v) in edges for w in range(12))
    batch = drawn("closure", 40)
    answers = []
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        edges = {(u, v) for kind, u, v in tokens if kind == 0}
        for (kind, u, v), target in zip(tokens, targets):
            reached = {u}
            for _ in range(3):
                reached |= {b for a, b in edges if a in reached}
            assert target == (int(v in reached) if kind else -1)
            answers += [target] if kind else []
    assert 0.35 < sum(answers) / len(answers) < 0.65


def test_sums():
    batch = drawn("three-sums")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        for place, target in enumerate(targets):
            others = [x[i] for i in range(len(x)) if i != place]
            pairs = itertools.combinations(others, 2)
            assert target == any((x[place] + a + b) % 17 == 0 for a, b in pairs)
    batch = drawn("two-sums")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        for place, target in enumerate(targets):
            others = [x[i] for i in range(len(x)) if i != place]
            triples = itertools.permutations(others, 3)
            assert target == any((x[place] + a - b - c) % 31 == 0 for a, b, c in triples)


def test_induction_repeats_what_followed_the_same_two_symbols():
    batch = drawn("induction")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        for place, target in enumerate(targets):
            if target < 0:
                continue
            seen = [j for j in range(1, place) if x[j - 1 : j + 1] == x[place - 1 : place + 1]]
            assert target == x[place + 1] == x[seen[-1] + 1]


def test_brackets_ask_for_the_innermost_open_one():
    batch = drawn("brackets")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):
        stack = []
        for code, target in zip(x, targets):
            if code < 3:
                stack.append(code)
            else:
                assert stack.pop() == code - 3
            assert target == (stack[-1] + 1 if stack else 0)


def test_formulas_and_words_of_the_grammar_have_their_values():
    from nsimplex.lab.pays.sequences import _FUNCTIONS as functions

    batch = drawn("formulas")
    for tokens, targets in zip(batch.fields.tolist(), batch.targets.tolist()):
        nodes = {token[0] + 1: token for token in tokens}

        def value(name, nodes=nodes):
            _, left, right, function, leaf = nodes[name]
            if leaf:
                return leaf - 1
            return int(functions[function - 1, value(left), value(right)])

        for token, target in zip(tokens, targets):
            assert target == (-1 if token[4] else value(token[0] + 1))
    batch = drawn("grammar")
    for x, targets in zip(batch.fields[..., 0].tolist(), batch.targets.tolist()):

        def part(at, x=x):
            if x[at] >= 4:
                return at + 1, x[at] - 4
            middle, a = part(at + 1)
            end, b = part(middle)
            return end, int(functions[x[at], a, b])

        for place, target in enumerate(targets):
            assert target == (-1 if x[place] >= 4 else part(place)[1])
        assert part(0)[0] == len(x)


def test_energies_are_sums_over_pairs_of_neighbours():
    batch = drawn("three-body", 2)
    for places, energies in zip(batch.numbers.double(), batch.targets):
        for i, energy in enumerate(energies.tolist()):
            total = 0.0
            for j, k in itertools.combinations([j for j in range(len(places)) if j != i], 2):
                a, b = places[j] - places[i], places[k] - places[i]
                cosine = (a @ b) / (a.norm() * b.norm())
                total += torch.exp(-2 * (a @ a + b @ b)) * cosine**2
            assert energy == pytest.approx(4 * float(total), rel=1e-3, abs=1e-5)
