"""Kernels of the operators for GPUs, written in Triton.

They are registered for CUDA tensors when nsimplex is imported on a machine that has a GPU and
Triton. The environment variable NSIMPLEX_GPU=off leaves them out.
"""

from .registration import available, register

__all__ = ["available", "register"]
