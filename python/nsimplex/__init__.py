"""Higher-order attention: N-simplicial attention and its relatives, as PyTorch operators.

The operators live in libnsimplex.so, beside this file in lib/, and in ``torch.ops.nsimplex``; the
functions and modules here only give them defaults and names.
"""

from __future__ import annotations

from pathlib import Path

import torch

from ._build_info import TORCH_VERSION as _TORCH_VERSION
from ._build_info import VERSION as __version__

_package = Path(__file__).absolute().parent


def _load_library() -> None:
    """Loads the operators; LibTorch keeps its C++ interface within a minor version only."""

    def minor(version: str) -> str:
        return ".".join(version.split(".")[:2])

    if minor(torch.__version__) != minor(_TORCH_VERSION):
        raise ImportError(
            f"nsimplex {__version__} was built with torch {minor(_TORCH_VERSION)}, but torch "
            f"{torch.__version__} is installed: install torch {minor(_TORCH_VERSION)}, or build nsimplex again"
        )
    library = _package / "lib" / "libnsimplex.so"
    if not library.exists():
        raise ImportError(f"nsimplex: no operators at {library}; build them with: make build")
    torch.ops.load_library(library)


_load_library()

from . import analysis, causal, graph, nn  # noqa: E402  (need the operators)
from .equivariant import (  # noqa: E402
    EquivariantClass,
    TensorKind,
    equivariant_classes,
    equivariant_linear,
)
from .equivariant_attention import (  # noqa: E402
    EquivariantAttentionClass,
    EquivariantAttentionPlan,
    EquivariantAttentionWeights,
    equivariant_attention,
    equivariant_attention_classes,
    equivariant_attention_plan,
    orthogonal_directions,
)
from .equivariant_encoder_plan import EquivariantEncoderPlan, equivariant_encoder_plan  # noqa: E402
from .equivariant_plan import (  # noqa: E402
    EquivariantPlan,
    equivariant_linear_sparse,
    equivariant_plan,
)
from .faces import face_attention  # noqa: E402
from .functional import attention, reference  # noqa: E402
from .graph_files import read_edges, read_graphs, read_table, read_tuples  # noqa: E402
from .kv_cache import KeyValueCache, LayerCaches  # noqa: E402
from .orders import continuous_order  # noqa: E402
from .parts import merge  # noqa: E402
from .positions import rotary  # noqa: E402
from .routing import (  # noqa: E402
    indexer_loss,
    retained_mass,
    topk_keys,
    topk_keys_reference,
    topk_tuples,
)
from .separable import (  # noqa: E402
    SeparableCache,
    feature_map,
    separable_attention,
    separable_reference,
)
from .sparse import sparse_attention, sparse_reference  # noqa: E402
from .tuples import hyperedge_list, neighbours, path_list, product_list  # noqa: E402
from .weights import attention_marginals, attention_received, attention_weights  # noqa: E402

#: For CMake's find_package(nsimplex): -DCMAKE_PREFIX_PATH=$(python -c "import nsimplex; print(nsimplex.cmake_prefix_path)")
cmake_prefix_path = str(_package)

__all__ = [
    "EquivariantAttentionClass",
    "EquivariantAttentionPlan",
    "EquivariantAttentionWeights",
    "EquivariantClass",
    "EquivariantEncoderPlan",
    "EquivariantPlan",
    "KeyValueCache",
    "LayerCaches",
    "SeparableCache",
    "TensorKind",
    "analysis",
    "attention",
    "attention_marginals",
    "attention_received",
    "attention_weights",
    "causal",
    "cmake_prefix_path",
    "continuous_order",
    "equivariant_attention",
    "equivariant_attention_classes",
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
    "topk_keys",
    "topk_keys_reference",
    "topk_tuples",
    "__version__",
]
