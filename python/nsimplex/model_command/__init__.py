"""Trained language models in the programs of ``nsimplex analyze model --page`` and
``nsimplex analyze attention``.

The commands read the text and show the results. They start :mod:`.page` or :mod:`.attention`,
which measure the model in Python and answer in lines of JSON.
"""

__all__: list[str] = []
