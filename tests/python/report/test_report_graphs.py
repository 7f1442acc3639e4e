"""Sections of the report about models on sets and graphs."""

import re

import pytest
from report_page import charts_of, read, write_lines

from nsimplex.report.graph_sections import mean_curve
from nsimplex.report.trained_graphs import class_in_words


def graph_rows(models, seeds=(1, 2)):
    """Lines as `nsimplex lab chains` writes them: a figure for each model."""
    rows = [{"task": "chains", "model": "majority", "seed": seed, "f1": 0.25} for seed in seeds]
    for model, figure in models:
        for seed in seeds:
            rows += [
                {
                    "task": "chains",
                    "model": model,
                    "seed": seed,
                    "epoch": epoch,
                    "step": 3 * epoch,
                    "loss": 0.5,
                    "validation_f1": figure / 2,
                    "seconds": 1.5,
                }
                for epoch in (1, 2)
            ]
            rows.append(
                {
                    "task": "chains",
                    "model": model,
                    "seed": seed,
                    "f1": figure,
                    "last_f1": figure - 0.1,
                    "validation_f1": figure,
                    "best_epoch": 1,
                    "epochs": 2,
                    "seconds": 3.5,
                    "parameters": 77,
                }
            )
        rows.append(
            {
                "task": "chains",
                "model": model,
                "seeds": len(seeds),
                "f1_mean": figure,
                "f1_deviation": 0.015,
                "last_f1_mean": figure - 0.1,
                "last_f1_deviation": 0.02,
                "published_f1": 0.91,
            }
        )
    rows.append({"task": "chains", "model": "elsewhere", "published_f1": 0.42})
    return rows


def test_models_of_ones_own_are_shown_without_the_columns_that_they_lack(tmp_path):
    """Lines as `nsimplex graph train --models gcn,gin --seeds 2` writes them."""
    own = {"task": "node", "kind": "graph_result", "best_epoch": 1, "epochs": 2, "parameters": 77}
    rows = []
    for model, figure in (("gcn", 0.5), ("gin", 0.75)):
        for seed in (1, 2):
            curve = dict(model=model, seed=seed, epoch=1, loss=0.5, validation_accuracy=figure)
            rows.append({"kind": "graph_point", "task": "node", **curve})
            rows.append(own | dict(model=model, seed=seed, accuracy=figure))
        mean = dict(model=model, seeds=2, accuracy_mean=figure, accuracy_deviation=0.0125)
        rows.append({"kind": "graph_mean", "task": "node", **mean})
    write_lines(tmp_path / "metrics.jsonl", rows)
    text, page = read(tmp_path)
    assert page.tags.count("svg") == 1 and "of the last" not in text
    assert "A target of every node, models compared" in text and "0.7500 ± 0.0125" in text
    header = re.search(r"<tr>.*?>accuracy</th>.*?</tr>", text, re.DOTALL)
    assert header and re.findall(r"<th[^>]*>([^<]+)", header[0]) == [
        "accuracy",
        "seeds",
        "parameters",
    ]


def test_models_on_graphs_are_shown_with_the_papers_figures(tmp_path):
    write_lines(
        tmp_path / "metrics.jsonl", graph_rows([(f"model{i}", 0.5 + i / 100) for i in range(9)])
    )
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 1
    for words in (
        "A label at the end of a chain",
        "0.5300 ± 0.0150",
        "last f1",
        "0.9100",
        "0.2500",
        "elsewhere (paper)",
        "3.5 s",
    ):
        assert words in page.text, words


def test_hyperedges_have_a_curve_for_each_area(tmp_path):
    areas = {"auc": 0.95, "aupr": 0.8}
    rows = [
        {"task": "hyperedges", "model": model, "seed": 1, "epoch": epoch, "seconds": 2.0 * epoch}
        | {f"validation_{name}": value - 0.01 / epoch for name, value in areas.items()}
        for model in ("kernel", "hyper-sagnn")
        for epoch in (1, 2, 3)
    ]
    result = {
        "task": "hyperedges",
        "model": "kernel",
        "seed": 1,
        "best_epoch": 3,
        "seconds": 6.0,
        "parameters": 77,
    }
    rows.append(result | areas | {"auc_unseen": 0.75})
    rows.append(
        {
            "task": "hyperedges",
            "model": "kernel",
            "seeds": 1,
            "auc_mean": 0.95,
            "aupr_mean": 0.8,
            "auc_unseen_mean": 0.75,
            "published_aupr": 0.804,
        }
    )
    write_lines(tmp_path / "metrics.jsonl", rows)
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 2
    for words in (
        "Which hyperedges exist",
        "0.9500",
        "auc unseen",
        "0.7500",
        "0.8040",
        "the training file has too",
    ):
        assert words in page.text, words
    # A run that has not come to its end has curves of what was validated, and no more.
    write_lines(
        tmp_path / "metrics.jsonl",
        [{k: v for k, v in row.items() if "aupr" not in k} for row in rows[:6]],
    )
    assert read(tmp_path)[1].tags.count("svg") == 1


def test_molecules_are_compared_at_equal_times(tmp_path):
    rows = [
        {
            "task": "molecules",
            "model": model,
            "seed": seed,
            "epoch": epoch,
            "validation_mae": 0.02 / epoch,
            "seconds": step * epoch + seed,
        }
        for model, step in (("kernel", 20), ("gcn", 0.5))
        for seed in (1, 2)
        for epoch in (1, 2, 3)
    ]
    rows.append({"task": "molecules", "model": "median", "seed": 1, "mae": 0.0364})
    rows.append(
        {
            "task": "molecules",
            "model": "kernel",
            "seeds": 2,
            "mae_mean": 0.0071,
            "mae_deviation": 0.0002,
        }
    )
    write_lines(tmp_path / "metrics.jsonl", rows)
    text, page = read(tmp_path)
    assert page.tags.count("svg") == 1 and "seconds of training" in text
    for words in ("Properties of molecules", "0.0071 ± 0.0002", "0.0364", "less is better"):
        assert words in page.text, words
    # At the third epoch the two seeds have trained for 61 and 62 seconds.
    assert mean_curve(rows[:6], "seconds", "validation_mae")[-1] == pytest.approx((61.5, 0.02 / 3))


def test_a_run_that_went_on_is_shown_once(tmp_path):
    """What the part before the interruption wrote of a training, and summed up, gives way to the
    lines of the whole."""
    rows = graph_rows([("mlp", 0.5)])
    before = [
        {**rows[4], "f1": 0.1234, "seconds": 99.5, "stopped": True},
        {**rows[8], "f1_mean": 0.1234},
    ]
    write_lines(tmp_path / "metrics.jsonl", rows)
    _, page = read(tmp_path)
    write_lines(tmp_path / "metrics.jsonl", rows[:4] + before + rows[4:])
    assert read(tmp_path)[1].text == page.text and "0.5000" in page.text


def test_a_graph_run_that_broke_off_shows_its_curves(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", graph_rows([("mlp", 0.5)])[:4])
    _, page = read(tmp_path)
    assert "majority" in page.text


def cost_rows():
    rows = [
        {
            "task": "scaling",
            "model": model,
            "seed": 1,
            "nodes": n // 5,
            "edges": n,
            "rows": 2 * n,
            "plan_seconds": 1e-4 * n,
            "forward_seconds": 1e-3 * n,
            "backward_seconds": 2e-3 * n,
            "peak_bytes": 1000 * n if model == "kernel" else None,
        }
        for model in ("kernel", "softmax")
        for n in (32, 64, 128)
    ]
    rows.append(
        {
            "task": "scaling",
            "model": "kernel",
            "largest_edges": 128,
            "slope_forward": 1.03,
            "slope_backward": None,
            "slope_memory": 0.97,
        }
    )
    return rows


def test_costs_are_drawn_against_edges(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", cost_rows())
    _, page = read(tmp_path)
    assert page.tags.count("svg") == 3
    assert "1.03" in page.text and "0.97" in page.text and "Cost of a pass" in page.text


def trained_rows():
    """Lines as `nsimplex graph train` writes them."""
    counts = {"graphs": 1, "nodes": 40, "edges": 99, "parameters": 1234}
    parts = {"validation": 16, "test": 4, "constant_accuracy": 0.25, "constant_test_accuracy": 0.5}
    about = {"kind": "graph_data", "task": "node", "model": "gcn", "target": "species"}
    rows = [about | {"target_kind": "classes"} | counts | parts]
    for epoch in (1, 2, 3):
        rows.append({"kind": "graph_epoch", "epoch": epoch, "loss": 1 / epoch, "accuracy": 0.5})
    result = {"epoch": 2, "epochs": 3, "accuracy": 0.8125, "test_accuracy": 0.75}
    heaviest = {
        "kind": "graph_tuples",
        "task": "node",
        "of": {"name": "Ann & Bob"},
        "target": [0],
        "nodes": ["Ann & Bob", "Cora", "Dora", "Emil"],
        "sets": [[0, 1], [1, 2], [0, 2, 3]],
        "drawn": [[[0, 1], 0.75], [[0, 2, 3], 0.5], [[3], 0.25]],
        "tuples": [
            {"nodes": ["Ann & Bob", "Cora"], "weight": 0.75, "among": 3, "class": "{i1}", "head": 1}
        ],
    }
    return [*rows, {"kind": "graph_fit", **result}, heaviest]


def test_a_trained_model_of_graphs_has_its_curve_and_metrics(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", trained_rows())
    text, page = read(tmp_path)
    assert "<h1>A model that predicts species</h1>" in text
    assert "Accuracy 0.75 on 4 test rows; a constant answer reaches 0.5." in page.text
    cells = re.findall(r"<td[^>]*>([^<]*)", text)  # with Wilson's interval
    assert cells[:5] == ["accuracy", "0.812", "0.75 [0.30, 0.95]", "0.25", "0.5"]
    assert "epoch 2, validation, 16 rows" in page.text and "test, 4 rows" in page.text
    assert "So few validation rows and test rows say little about the model." in page.text
    assert "constant answer" in charts_of(text)[0] and "1,234 parameters" in page.text
    assert "if the training loss falls further, the model may be overfitting" in page.text
    assert "accuracy on the validation rows" in text and "target species, 1 graph, 4" in page.text
    many = [rows | {"validation": 160, "test": 1} for rows in trained_rows()[:1]]
    write_lines(tmp_path / "metrics.jsonl", [*many, *trained_rows()[1:]])
    words = read(tmp_path)[1].text
    assert "test, 1 row" in words and "So few test rows say little" in words


FEW, CONSTANT, BRACKETS = "So few", "A constant answer is", "An interval in brackets"


@pytest.mark.parametrize(
    "about, results, header, sentences",
    [
        (
            {"target_kind": "binary", "validation": 50, "constant_auc": 0.5, "test": 0},
            [{"auc": 0.9, "accuracy": 0.8}],
            ["epoch 2, validation, 50 rows", "constant answer, validation"],
            {CONSTANT},
        ),
        (
            {"target_kind": "labels", "validation": 50, "test": 40},
            [{"accuracy": 0.8, "test_accuracy": 0.75}],
            ["epoch 2, validation, 50 rows", "test, 40 rows"],
            set(),
        ),
        (
            {"target_kind": "number", "validation": 50, "test": 20},
            [{"mae": 0.8, "test_mae": 0.75}],
            ["epoch 2, validation, 50 rows", "test, 20 rows"],
            {FEW},
        ),
        (
            {},
            [{"kind": "graph_evaluation", "target_kind": "classes", "rows": 40, "accuracy": 0.75}],
            ["known targets, 40 rows"],
            {BRACKETS},
        ),
        (
            {},
            [{"kind": "graph_evaluation", "target_kind": "labels", "rows": 9, "accuracy": 0.75}],
            ["known targets, 9 rows"],
            {FEW},
        ),
    ],
)
def test_metrics_of_models_come_with_the_sentences_that_they_need(
    tmp_path, about, results, header, sentences
):
    rows = [{"kind": "graph_data", "task": "node", "graphs": 1} | about] if about else []
    rows += [{"kind": "graph_fit", "epoch": 2, "epochs": 3} | result for result in results]
    write_lines(tmp_path / "metrics.jsonl", rows)
    text, page = read(tmp_path)
    assert re.findall(r'<th scope="col">([^<]+)', text) == header
    assert {words for words in (FEW, CONSTANT, BRACKETS) if words in page.text} == sentences
    assert ("0.75 [0.60, 0.86]" in page.text) == (BRACKETS in sentences)
    assert ("The epoch is chosen by" in page.text) == bool(about)
    assert ("the test rows are read at the end" in page.text) == bool(about.get("test"))


def test_a_constant_answer_of_the_training_is_beside_every_metric(tmp_path):
    about = {"kind": "graph_data", "task": "node", "graphs": 1, "target": "odd", "test": 40}
    constants = {"constant_test_auc": 0.5, "constant_test_aupr": 0.25}
    epochs = [{"kind": "graph_epoch", "epoch": epoch, "auc": 0.75} for epoch in (1, 2)]
    fit = {"kind": "graph_fit", "epoch": 2, "auc": 0.75, "test_auc": 0.7, "test_aupr": 0.6}
    write_lines(tmp_path / "metrics.jsonl", [about | constants, *epochs, fit])
    text, page = read(tmp_path)
    assert "AUC 0.7 on 40 test rows; a constant answer reaches 0.5." in page.text
    # None of the validation is in the lines, and no loss is.
    assert "constant answer" not in charts_of(text)[0] and "overfitting" not in page.text
    write_lines(tmp_path / "metrics.jsonl", [about | {"constant_auc": 0.5}, *epochs, fit])
    text, page = read(tmp_path)
    assert "constant answer" in charts_of(text)[0] and "reaches" not in page.text


@pytest.mark.parametrize(
    "name, words",
    [
        ("{i1}{i2 j1}", "2nd"),
        ("{i1 j1}{i2}", "1st"),
        ("{i1 i2 j1}", "1st and 2nd"),
        ("{i1}{i2}{j1}", "none"),
        ("{i1 j2}{i2 j1}", "1st as 2nd, 2nd as 1st"),
        ("{i1}{i2}", "–"),
        ("other", "other"),
    ],
)
def test_classes_of_tuples_are_told_in_words(name, words):
    assert class_in_words(name) == words


def test_the_heaviest_tuples_of_predictions_are_drawn_and_listed(tmp_path):
    rows = trained_rows()
    lines = [*rows, *(rows[-1] | {"of": {"name": f"node {i}"}} for i in range(9))]
    write_lines(tmp_path / "metrics.jsonl", lines)
    text, page = read(tmp_path)
    assert page.tags.count("svg") == 1 + 6 and "4 more predictions" in page.text
    assert "75.0 %" in page.text and "33.3 %" in page.text and "Ann & Bob, Cora" in page.text
    picture = text[text.index("A graph of 4 nodes with its 3 heaviest tuples") :]
    picture = picture[: picture.index("</svg>")]
    assert picture.count('class="edge"') == picture.count('class="tuple"') == 3
    assert picture.count("<polygon") == 2 and 'r="9"' in picture
    assert "font-size: 12px" in text and "min-width: 330px" in text
    assert "predicted node is" in page.text and "{i1}" not in text


def test_nodes_are_coloured_by_their_classes(tmp_path):
    rows = trained_rows()
    known = {"classes": ["bird", "fish", "", "fish"]}
    write_lines(tmp_path / "metrics.jsonl", [*rows[:-1], rows[-1] | known])
    picture = read(tmp_path)[0].partition("A graph of 4 nodes")[2].partition("</svg>")[0]
    fills = re.findall(r'r="5" style="fill: (var\([\w-]+\))(.*?)"', picture)
    bird, fish, ink = "var(--series-3)", "var(--series-4)", "var(--ink)"
    assert [fill for fill, _ in fills] == [bird, fish, ink, fish, bird, fish]  # nodes, the legend
    assert [bool(ring) for _, ring in fills] == [True] + 5 * [False]  # the prediction
    assert ">bird</text>" in picture and ">fish</text>" in picture
    write_lines(tmp_path / "metrics.jsonl", [*rows[:-1], rows[-1] | {"classes": ["bird"]}])
    assert 'r="5"' not in read(tmp_path)[0]


def test_a_broken_line_of_tuples_is_left_out(tmp_path):
    rows = trained_rows()
    for change in ({"target": [4]}, {"drawn": [[[0, 0], 1]]}, {"sets": [[0]]}, {"nodes": []}):
        write_lines(tmp_path / "metrics.jsonl", [*rows[:-1], rows[-1] | change])
        assert "Heaviest tuples" not in read(tmp_path)[1].text, change
