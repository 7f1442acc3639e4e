"""N-simplicial attention in models of Hugging Face Transformers, an optional dependency.

- ``attn_implementation="nsimplex"`` computes the ordinary attention of any model.
- :class:`SimplicialForCausalLM` is a decoder whose every k-th layer is N-simplicial.
- :func:`convert` gives layers of a trained model tuples of keys, and starts as the same function.

The import registers the attention function and the model's classes with Transformers.
"""

from __future__ import annotations

try:
    import transformers as _transformers  # noqa: F401
except ImportError as _error:
    raise ImportError(
        "[nsimplex.transformers] transformers: expected the package, which is not installed; run "
        "pip install 'transformers>=5.20' (the extra transformers)"
    ) from _error

from ..nn.upcycling import calibrate, order_shares
from .attention_functions import attention_forward
from .loading import from_pretrained
from .model import SimplicialForCausalLM, SimplicialModel
from .simplicial_config import SimplicialConfig
from .upcycled_layers import convert

__all__ = [
    "SimplicialConfig",
    "SimplicialForCausalLM",
    "SimplicialModel",
    "attention_forward",
    "calibrate",
    "convert",
    "from_pretrained",
    "order_shares",
]
