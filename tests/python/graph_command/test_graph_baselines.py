"""``nsimplex graph train`` with the models that judge tuples by their nodes alone."""

import pytest
from graph_sets import predicted, predictions, rings, trained, write

from nsimplex.graph_command.predicting import load
from nsimplex.nn import HyperSAGNN, SetToGraph


@pytest.mark.parametrize("model", ["hyper-sagnn", "s2g", "s2g-plus"])
def test_baselines_of_hyperedges_are_trained_and_predict(tmp_path, model):
    rows = [(i, j, k) for k in range(8) for j in range(k) for i in range(j)]
    text = "".join(f"n{i} n{j} n{k},{int((i + j + k) % 2)}\n" for i, j, k in rows)
    data = write(tmp_path / "sets.csv", "nodes,known\n" + text + "n0 n1,1\nn2 n3,0\n")
    own = dict(data=data, task="hyperedge", target="known", model=model)
    (about,) = trained(**own, folder=tmp_path).of_kind("graph_data")
    assert about["model"] == model
    kept, _ = load(str(tmp_path))
    assert type(kept) is (HyperSAGNN if model == "hyper-sagnn" else SetToGraph)
    if model != "hyper-sagnn":
        assert kept.options["classes"] == {"s2g": "light", "s2g-plus": "all"}[model]
        assert kept.query_sizes == [2, 3]
    predicted(tmp_path, data=data, folder=tmp_path)
    assert len(predictions(tmp_path)) == len(rows) + 2
    edges = write(tmp_path / "edges.csv", "a,b,t\np,q,1\nq,r,0\np,r,1\nr,s,0\ns,t,1\nt,p,0\n")
    pairs = dict(own, data=edges, task="edge", target="t", validation=0.3, test=0.0)
    assert trained(**pairs).of_kind("graph_epoch")
    featured = write(tmp_path / "w.csv", "nodes,known,w\n" + text.replace("\n", ",2.5\n"))
    with pytest.raises(ValueError, match=f"^--model: expected no features of edges for {model}"):
        trained(**{**own, "data": featured})
    with pytest.raises(ValueError, match="^--model: expected no --virtual-node with"):
        trained(**own, virtual_node=True)
    with pytest.raises(ValueError, match="^--task: expected edge or hyperedge, got 'graph'"):
        graphs = rings(tmp_path)
        trained(
            data=graphs[0], nodes=graphs[1], graphs=graphs[2], task="graph", target="size",
            ignore="odd,letter", model=model,
        )  # fmt: skip
