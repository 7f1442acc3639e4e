"""``python -m nsimplex.graph train ..`` is ``nsimplex graph train ..``; under ``torchrun``, all
ranks train one model.

    torchrun --nproc-per-node 4 -m nsimplex.graph train molecules.csv --task graph --target logp
"""

from .._on_ranks import main

if __name__ == "__main__":
    main("graph")
