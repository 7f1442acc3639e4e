"""Training and prediction on the user's own graphs: ``nsimplex graph train`` and ``predict``.

The command keeps the run folder and shows the results. It starts ``__main__`` of this package,
which reads the data, trains a model of :mod:`nsimplex.nn`, and answers in lines of JSON.
"""

__all__: list[str] = []
