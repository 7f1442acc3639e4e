"""``python -m nsimplex.causal perturb ..`` is ``nsimplex causal perturb ..``; under ``torchrun``,
all ranks train one model.

    torchrun --nproc-per-node 4 -m nsimplex.causal perturb --out runs/perturb
"""

from .._on_ranks import main

if __name__ == "__main__":
    main("causal")
