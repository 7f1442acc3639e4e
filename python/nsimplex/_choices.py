"""The names that options take, as types: an editor lists them, and a type checker finds a wrong
one.

The library itself checks the names, for every language. A test compares those here with the ones
that its messages list.
"""

from __future__ import annotations

from typing import Literal

# Attention
Distinct = Literal["none", "axes", "with_query"]
Form = Literal["product", "determinant"]
Normalizer = Literal["softmax", "softmax_sink", "sigmoid", "relu"]
Reduce = Literal["product", "sum", "mean"]
Unbounded = Literal["gather", "ring"]

# Lists of tuples, selection and features
FeatureName = Literal["elu", "relu", "random"]
LearnedReduce = Literal["product", "sum", "mean", "mlp", "mlp_symmetric"]
Pattern = Literal["list", "product", "path"]
Scores = Literal["relu", "softmax"]
SetPattern = Literal["product", "path"]

# Equivariant layers
ClassSet = Literal["all", "light"]
EquivariantEncoderForm = Literal["standard", "paper"]
EquivariantFeatures = Literal["relu", "exponential"]
EquivariantForm = Literal["softmax", "kernel", "decoupled"]
EquivariantKeys = Literal["paper", "node"]
EquivariantMlp = Literal["automatic", "lightweight", "pointwise"]
PlanForm = Literal["softmax", "kernel"]
Pooling = Literal["mean", "sum"]
Symmetry = Literal["ordered", "loop_free", "undirected"]

# Layers and models
Activation = Literal["swiglu", "gelu"]
Aggregate = Literal["mean", "max", "cls"]
Backbone = Literal["softmax", "performer", "simplicial"]
FeatureEncoding = Literal["none", "sinusoidal", "learned", "additive", "relative", "rotary"]
FeaturePreset = Literal["paper-scbert", "paper-scgpt"]
FeatureValues = Literal["bins", "linear", "periodic", "general"]
FlowMethod = Literal["euler", "rk4"]
IndexerSource = Literal["light", "reuse"]
LanguageSelection = Literal[
    "window",
    "topk",
    "path",
    "linear",
    "window+sinks",
    "window+topk",
    "sinks+topk",
    "window+sinks+topk",
]
ModelSelection = Literal["window", "window+sinks"]
Norm = Literal["none", "qk", "qkv"]
ScaleName = Literal["standard", "unit"]
WidthRecipe = Literal["muon", "mup"]

# Graphs and their models
Directions = Literal["given", "both", "undirected"]
Duplicates = Literal["same", "first", "mean", "sum"]
GraphKernel = Literal["gcn", "gin", "gat"]
GraphLoss = Literal["", "squared", "soft_f1"]
GraphTarget = Literal["number", "binary", "classes", "labels"]
GraphTask = Literal["graph", "node", "edge", "hyperedge"]
Level = Literal["", "graph", "node", "edge"]
LearningSchedule = Literal["cosine", "linear", "constant"]
ListedDirections = Literal["", "given", "both", "undirected"]
LogWriter = Literal["tensorboard", "wandb", "mlflow"]
MoleculeDirections = Literal["both", "undirected"]
PairSymmetry = Literal["ordered", "undirected"]
PairTask = Literal["graph", "node", "edge"]
ReadOut = Literal["", "softmax", "kernel", "decoupled"]
TupleSymmetry = Literal["", "ordered", "undirected"]
TupleTarget = Literal["binary", "labels"]
TupleTask = Literal["edge", "hyperedge"]

# Causal structure
ColumnKind = Literal["continuous", "binary", "count", "category"]
Dangling = Literal["uniform", "eigenvector"]
Estimator = Literal[
    "auto", "order", "logdet", "paper", "paper-lowrank", "lowrank", "notears", "spectral"
]
GraphModel = Literal["er", "sf"]
LipschitzForm = Literal["printed", "proof", "all_factors"]
Mechanism = Literal["linear", "mlp", "gp"]
Missing = Literal["refuse", "rows", "means", "likelihood"]
Noise = Literal["gaussian", "exponential", "gumbel"]
Optimiser = Literal["tangent", "radam", "rsgd"]
PairWeight = Literal["paths", "direct"]
Resampling = Literal["halves", "bootstrap"]
ScreenBy = Literal["correlation", "variance"]
Side = Literal["both", "causes"]
