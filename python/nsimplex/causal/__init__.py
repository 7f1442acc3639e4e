"""Causal structure from tables: which column causes which.

Functions here prepare what a model is given: on the CPU, float64, outside of compiled graphs and of autograd. Errors
name the argument, what was expected and what came.
"""

from __future__ import annotations

from .structure import CausalFit, causal_fit

__all__ = ["CausalFit", "causal_fit"]
