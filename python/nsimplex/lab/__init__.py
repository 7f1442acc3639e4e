"""Experiments in Python: ``python -m nsimplex.lab.pays`` and ``nsimplex.lab.adversarial``."""
