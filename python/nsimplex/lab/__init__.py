"""Experiments in Python: ``python -m nsimplex.lab.pays``, ``nsimplex.lab.adversarial`` and
``nsimplex.lab.scale``."""
