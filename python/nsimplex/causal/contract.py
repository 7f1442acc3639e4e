"""The base classes of the estimators: scikit-learn's where it is installed.

Without it the same calls exist, except ``set_output`` and metadata routing.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

try:
    from sklearn.base import BaseEstimator, TransformerMixin, clone  # type: ignore[assignment]
    from sklearn.exceptions import NotFittedError  # type: ignore[assignment]

    HAS_SKLEARN = True
except ModuleNotFoundError:
    HAS_SKLEARN = False

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """A call that needs ``fit`` first."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters as attributes, as scikit-learn's class of this name has them."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The arguments of the constructor, by name."""
            names = inspect.signature(type(self).__init__).parameters
            return {name: getattr(self, name) for name in sorted(names) if name != "self"}

        def set_params(self, **params: Any) -> Any:
            """Changes arguments of the constructor."""
            for name, value in params.items():
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            parameters = inspect.signature(type(self).__init__).parameters
            changed = [
                f"{name}={getattr(self, name)!r}"
                for name, parameter in parameters.items()
                if name != "self" and getattr(self, name) != parameter.default
            ]
            return f"{type(self).__name__}({', '.join(changed)})"

    class TransformerMixin:  # type: ignore[no-redef]
        """``fit_transform``, as scikit-learn's class of this name has it."""

        def fit_transform(self, X: Any, y: Any = None, **fit: Any) -> Any:
            """Calls ``fit``, then ``transform`` on the same table."""
            own: Any = self
            return own.fit(X, y, **fit).transform(X)

    def clone(estimator: Any) -> Any:  # type: ignore[no-redef]
        """An estimator of the same parameters that is not fitted."""
        return type(estimator)(**estimator.get_params())


def wraps_output(estimator: Any) -> bool:
    """Whether scikit-learn makes a data frame of what ``transform`` returns."""
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    if own is None and HAS_SKLEARN:
        import sklearn

        own = sklearn.get_config()["transform_output"]
    return own not in (None, "default")


__all__ = [
    "HAS_SKLEARN",
    "BaseEstimator",
    "NotFittedError",
    "TransformerMixin",
    "clone",
    "feature_names_out",
    "wraps_output",
]


def feature_names_out(estimator: Any, input_features: Sequence[str] | None) -> Any:
    """Names of the columns that a fitted estimator returns, as scikit-learn wants them."""
    import numpy

    columns, count = estimator._fitted("columns_"), getattr(estimator, "n_features_in_", None)
    known = getattr(estimator, "feature_names_in_", None)
    if input_features is not None:
        given = [str(name) for name in input_features]
        if count is not None and len(given) != count:
            raise ValueError(
                f"[{type(estimator).__name__}] input_features should have length equal to number "
                f"of features ({count}), got {len(given)}"
            )
        if known is not None and given != list(known):
            raise ValueError(
                f"[{type(estimator).__name__}] input_features is not equal to feature_names_in_"
            )
        names = [given[column] for column in columns]
    else:
        names = estimator._fitted("names_") or [f"x{column}" for column in columns]
    return numpy.asarray(names, dtype=object)
