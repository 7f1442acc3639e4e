"""A plugin of pytest: CPU tensors run the kernels of nsimplex.gpu in Triton's interpreter.

TRITON_INTERPRET=1 is in the environment, and tests/python/gpu and the package on the path:

    TRITON_INTERPRET=1 python -m pytest -p kernels_on_cpu tests/python/attention
"""

import interpreter


def pytest_configure(config) -> None:
    reason = interpreter.missing()
    if reason:
        raise RuntimeError(reason)
    put_under_cpu()


def put_under_cpu() -> None:
    """Registers the kernels for CPU tensors, once a process."""
    interpreter.install()
    from nsimplex.gpu import register

    register("CPU", allow_override=True)
