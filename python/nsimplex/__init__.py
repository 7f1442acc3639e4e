"""Higher-order attention: N-simplicial attention and related operators for PyTorch.

libnsimplex.so implements the operators and registers them in ``torch.ops.nsimplex``. The functions
and modules here only give them defaults and names.
"""

from __future__ import annotations

from . import analysis, causal, graph, nn, ops, text, viz
from ._build_info import VERSION as __version__
from ._library import PREFIX as _PREFIX
from .attention import attention, reference
from .attention_weights import attention_marginals, attention_received, attention_weights
from .attention_workspace import AttentionWorkspace, attention_workspace
from .continuous_order import continuous_order
from .equivariant_attention import (
    EquivariantAttentionClass,
    EquivariantAttentionPlan,
    EquivariantAttentionWeights,
    equivariant_attention,
    equivariant_attention_classes,
    equivariant_attention_coefficients,
    equivariant_attention_plan,
    orthogonal_directions,
)
from .equivariant_classes import EquivariantClass, TensorKind, equivariant_classes
from .equivariant_encoder_plan import EquivariantEncoderPlan, equivariant_encoder_plan
from .equivariant_linear import (
    EquivariantPlan,
    equivariant_linear,
    equivariant_linear_sparse,
    equivariant_plan,
)
from .face_attention import face_attention
from .gpu.registration import register_at_import as _register_gpu_kernels
from .graph_files import (
    EdgeFile,
    ReadingWarning,
    TableFile,
    TupleFile,
    read_edges,
    read_graphs,
    read_table,
    read_tuples,
)
from .kv_cache import IndexedCache, KeyValueCache, LayerCache, LayerCaches
from .merge_attention import merge
from .paged_cache import PagedCache
from .rotary import rotary
from .routing import (
    indexer_loss,
    retained_mass,
    topk_keys,
    topk_keys_reference,
    topk_tuples,
)
from .separable_attention import (
    SeparableCache,
    feature_map,
    separable_attention,
    separable_reference,
)
from .sparse_attention import sparse_attention, sparse_reference
from .static_cache import StaticCache
from .tuples import hyperedge_list, neighbours, path_list, product_list

_register_gpu_kernels()

#: For CMake's find_package(nsimplex): -DCMAKE_PREFIX_PATH=$(python -c "import nsimplex;
#: print(nsimplex.cmake_prefix_path)")
cmake_prefix_path = str(_PREFIX)

__all__ = [
    "AttentionWorkspace",
    "EdgeFile",
    "EquivariantAttentionClass",
    "EquivariantAttentionPlan",
    "EquivariantAttentionWeights",
    "EquivariantClass",
    "EquivariantEncoderPlan",
    "EquivariantPlan",
    "IndexedCache",
    "KeyValueCache",
    "LayerCache",
    "LayerCaches",
    "PagedCache",
    "ReadingWarning",
    "SeparableCache",
    "StaticCache",
    "TableFile",
    "TensorKind",
    "TupleFile",
    "__version__",
    "analysis",
    "attention",
    "attention_marginals",
    "attention_received",
    "attention_weights",
    "attention_workspace",
    "causal",
    "cmake_prefix_path",
    "continuous_order",
    "equivariant_attention",
    "equivariant_attention_classes",
    "equivariant_attention_coefficients",
    "equivariant_attention_plan",
    "equivariant_classes",
    "equivariant_encoder_plan",
    "equivariant_linear",
    "equivariant_linear_sparse",
    "equivariant_plan",
    "face_attention",
    "feature_map",
    "graph",
    "hyperedge_list",
    "indexer_loss",
    "merge",
    "neighbours",
    "nn",
    "ops",
    "orthogonal_directions",
    "path_list",
    "product_list",
    "read_edges",
    "read_graphs",
    "read_table",
    "read_tuples",
    "reference",
    "retained_mass",
    "rotary",
    "separable_attention",
    "separable_reference",
    "sparse_attention",
    "sparse_reference",
    "text",
    "topk_keys",
    "topk_keys_reference",
    "topk_tuples",
    "viz",
]
