"""``python -m nsimplex.causal task perturb ..`` is ``nsimplex causal task perturb ..``; under
``torchrun``, all ranks train one model.

    torchrun --nproc-per-node 4 -m nsimplex.causal task perturb --out runs/perturb
"""

from .._on_ranks import main

if __name__ == "__main__":
    main("causal")
