"""The order of the reference of Python: the public names of every module, grouped by use. A test
compares them with the ``__all__`` of the modules."""

from typing import NamedTuple


class Group(NamedTuple):
    """Names that are used together, separated by blanks, and a sentence about them."""

    title: str
    about: str
    names: str


REFERENCE: dict[str, list[Group]] = {
    "nsimplex": [
        Group(
            "Attention",
            "Every query attends to all tuples of keys in its windows, under one softmax.",
            "attention rotary merge attention_weights attention_marginals attention_received"
            " continuous_order face_attention attention_workspace AttentionWorkspace reference",
        ),
        Group(
            "Chosen tuples",
            "Queries attend to the tuples of a list: chosen by scores, or given by a graph.",
            "sparse_attention topk_keys topk_tuples product_list path_list neighbours"
            " hyperedge_list indexer_loss retained_mass sparse_reference topk_keys_reference",
        ),
        Group(
            "Separable attention",
            "A kernel that factors over the axes takes linear time.",
            "separable_attention feature_map separable_reference",
        ),
        Group(
            "Caches",
            "They keep what a model needs of earlier tokens while it generates text.",
            "KeyValueCache StaticCache PagedCache IndexedCache SeparableCache LayerCache"
            " LayerCaches",
        ),
        Group(
            "Equivariant layers",
            "Linear maps and attention from tuples of nodes to tuples of nodes.",
            "equivariant_linear equivariant_linear_sparse equivariant_plan EquivariantPlan"
            " equivariant_classes EquivariantClass TensorKind equivariant_attention"
            " equivariant_attention_plan EquivariantAttentionPlan EquivariantAttentionWeights"
            " equivariant_attention_classes EquivariantAttentionClass"
            " equivariant_attention_coefficients equivariant_encoder_plan EquivariantEncoderPlan"
            " orthogonal_directions",
        ),
        Group(
            "Files",
            "Tables, graphs and tuples from text files and arrays.",
            "read_table TableFile read_edges EdgeFile read_graphs read_tuples TupleFile"
            " ReadingWarning",
        ),
    ],
    "nsimplex.nn": [
        Group(
            "Attention layers",
            "They replace an attention layer of your model.",
            "SimplicialAttention SparseAttention SeparableAttention TransformerBlock FeedForward"
            " RMSNorm",
        ),
        Group(
            "Chosen keys",
            "These objects say to which tuples a layer attends.",
            "Select TopK Path Neighbours Window Sinks Union Linear ExpertChoice Indexer IndexParts"
            " IndexSource auxiliary_loss",
        ),
        Group(
            "Language models",
            "Whole models, and learning rates for wider ones.",
            "LanguageModel LanguageModelOptions ParameterGroups parameter_groups",
        ),
        Group(
            "Upcycling",
            "A trained model gets simplicial layers and stays the same function.",
            "convert calibrate order_shares HigherOrderPart UpcycledAttention",
        ),
        Group(
            "Graph models",
            "Models that predict something of graphs, nodes or tuples, and their training.",
            "GraphTransformer fit_graphs GraphFit TrainingCallback TrainingState TrainingLog"
            " GraphInputs MessagePassing HyperSAGNN SetToGraph graph_loss graph_metrics",
        ),
        Group(
            "Equivariant layers",
            "The layers of which graph transformers are made.",
            "EquivariantLinear EquivariantAttention EquivariantEncoder PatternLinear"
            " RandomFeatures",
        ),
        Group(
            "Models of tables",
            "A transformer whose tokens are the columns of a table.",
            "FeatureTransformer FeatureTransformerOptions",
        ),
    ],
    "nsimplex.graph": [
        Group(
            "Your graphs",
            "From and to other libraries and files.",
            "GraphData from_pyg from_networkx from_dgl to_dgl from_scipy from_edge_index from_dense"
            " from_hyperedges from_hyperedge_index from_incidence read_hif write_hif"
            " read_molecules to_pyg to_networkx ConversionWarning",
        ),
        Group(
            "Batches and splits",
            "Many graphs in one batch, and rows for training and for the test.",
            "collate_graphs split_graphs split_rows Split class_numbers",
        ),
        Group(
            "Encodings of nodes",
            "Features that say where in its graph a node is.",
            "with_laplacian_encodings with_random_walk_encodings laplacian_eigenvectors"
            " LaplacianEigenvectors node_degrees",
        ),
        Group(
            "Tuples of nodes",
            "Lists of tuples, and lists that are derived from others.",
            "TupleBatch tuple_batch edge_tuples complete_tuples negative_tuples all_orders"
            " with_loops project_tuples simplices concatenate_graphs DerivedTuples"
            " derived_features node_and_edge_features check_features split_links LinkSplit",
        ),
        Group(
            "Structure",
            "Neighbours, components, cliques, line graphs and curvatures.",
            "adjacency Adjacency connected_components component_cliques label_cliques line_graph"
            " LineGraph lift_cliques lift_k_hop_sets lift_line_graph edge_curvatures"
            " EdgeCurvatures",
        ),
        Group(
            "Generated graphs",
            "Random and regular graphs for experiments.",
            "barabasi_albert_graph chain_graphs random_point_sets PointSets delaunay_graph",
        ),
        Group(
            "Metrics",
            "How good predictions are.",
            "roc_auc average_precision adjusted_rand_index soft_f1_loss hits_at"
            " mean_reciprocal_rank",
        ),
    ],
    "nsimplex.causal": [
        Group(
            "From a table to a graph",
            "Learn which columns cause which others, and draw the graph.",
            "CausalGraph causal_fit CausalFit FitChoices edge_confidence EdgeConfidence"
            " causal_limits TableWarning CausalLimits orient_by_noise NoiseDirections draw_graph"
            " GraphPicture to_networkx to_igraph",
        ),
        Group(
            "What follows from a graph",
            "Effects of one column on another, a test of a graph, and exports.",
            "causal_effect CausalEffect PossibleEffect check_causal_graph GraphCheck PairTest"
            " graph_text to_causal_learn to_pgmpy",
        ),
        Group(
            "Encodings for a transformer",
            "From the graph to points of hyperbolic space and rotary angles.",
            "CausalPipeline CausalEncoding causal_embed CausalEmbedding causal_angles ball_points"
            " ball_tangents hyperboloid_points hyperbolic_distances",
        ),
        Group(
            "Tables",
            "Prepare a table, and see what could mislead a fit.",
            "usable_table UsableTable screen_columns read_h5ad causal_sortability Sortability"
            " FewRowsWarning VarianceOrderWarning EmbeddingWarning FitInterrupted",
        ),
        Group(
            "Known graphs",
            "Simulate tables with a known graph, and compare a found graph with it.",
            "simulate CausalSimulation causal_metrics CausalMetrics edge_curves EdgeCurves"
            " causal_ranking CausalRanking causal_baselines",
        ),
    ],
    "nsimplex.analysis": [
        Group(
            "A whole model",
            "Measure every attention layer of a model, once or while it trains.",
            "report ModelReport LayerReport SmoothingMonitor LayerSmoothing TrainingMonitor"
            " token_influence",
        ),
        Group(
            "Smoothing",
            "How similar the tokens are, and bounds of how fast they become the same.",
            "effective_rank mean_cosine dirichlet_energy composite_norm mean_residual"
            " minimal_residual MinimalResidual collapse_bound CollapseBound CollapseHead"
            " depth_bound DepthBound attention_flow AttentionFlow weight_bounds WeightBounds",
        ),
        Group(
            "Lipschitz constants",
            "How much a layer amplifies a small change of its input.",
            "jacobian_norm JacobianNorm lipschitz_constant LipschitzEstimate lipschitz_bound"
            " pair_lipschitz_bound Ascent",
        ),
        Group(
            "Sensitivity and sharpness",
            "The same per input of attention, and for second derivatives.",
            "sensitivity SensitivityEstimate sensitivity_bounds sharpness sharpness_bounds inf_rms"
            " inf_op",
        ),
        Group(
            "Masks",
            "How many layers information needs under a mask.",
            "mask_extent MaskExtent mask_distances",
        ),
    ],
    "nsimplex.viz": [
        Group(
            "Pictures of attention",
            "Text, SVG and an interactive page of what layers attend to.",
            "views view save_page TupleView heaviest_tuples HeaviestTuples heads_svg"
            " head_distances",
        ),
        Group(
            "Pictures of predictions",
            "The tuples of nodes that weigh most for a graph transformer.",
            "heaviest_graph_tuples GraphTuples GraphTuple",
        ),
    ],
    "nsimplex.text": [
        Group(
            "Tokenizers",
            "Texts as token numbers and back.",
            "load_tokenizer ByteTokenizer JsonTokenizer SentencePieceTokenizer Tokenizer"
            " encode_file StreamDecoder",
        ),
    ],
    "nsimplex.transformers": [
        Group(
            "Trained models",
            "Give layers of a trained model tuples of keys.",
            "convert calibrate order_shares from_pretrained attention_forward",
        ),
        Group(
            "New models",
            "A decoder with simplicial layers.",
            "SimplicialForCausalLM SimplicialConfig SimplicialModel",
        ),
    ],
    "nsimplex.molecules": [
        Group("From SMILES to a file", "One file of graphs.", "convert BadMolecule main"),
    ],
    "nsimplex.distributed": [
        Group(
            "Long sequences",
            "Divide a sequence among processes.",
            "context_parallel ContextParallel Traffic",
        ),
        Group(
            "Large models",
            "Divide the layers of a model among processes.",
            "tensor_parallel tensor_parallel_plan HeadParallel FeedForwardParallel SplitLinear"
            " gather_state_dict scatter_state_dict",
        ),
    ],
    "nsimplex.gpu": [
        Group("Kernels", "Which kernels a process uses.", "available register"),
    ],
}
