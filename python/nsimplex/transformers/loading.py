"""Models with simplicial layers from folders, of the class that was saved."""

from __future__ import annotations

import os
from typing import Any

import transformers
from transformers import AutoConfig, PreTrainedModel

from .._arguments import checked
from .._printable import printable
from ..nn.checks import require
from .model import SimplicialForCausalLM, SimplicialModel
from .model_files import config_told, require_enough_weights, require_plain_fields, weights_told
from .simplicial_config import SimplicialConfig
from .upcycled_layers import build_tuples

__all__ = ["from_pretrained"]

#: Options of ``from_pretrained`` that say where a model is found, for its config too.
_PLACE = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "proxies",
    "revision",
    "subfolder",
    "token",
)


@checked
def from_pretrained(folder: str | os.PathLike, **options) -> Any:
    """A converted model, or one of a :class:`SimplicialConfig`, from a folder of its
    ``save_pretrained``: of the class that was saved, with its head.

    The ``from_pretrained`` of Transformers would leave the tuples of converted models out.

    Args:
        folder: the folder, or a name on the hub.
        options: those of the ``from_pretrained`` of Transformers, such as ``dtype``,
            ``device_map`` and ``attn_implementation``. To change fields of the config, give a
            ``config``.

    Raises:
        ValueError: an ordinary model, a class that Transformers does not have, weights that do not
            fit, or a damaged file, which the message names.
    """
    config = _config_of(folder, options)
    plain = _class_of(config, folder)
    made = _to_be_filled(plain, config)
    with_info = options.pop("output_loading_info", False)
    may_differ = options.pop("ignore_mismatched_sizes", False)
    if not may_differ:
        require_enough_weights(folder, options.get("subfolder") or "", made, config)
    with weights_told(folder):
        model, info = made.from_pretrained(
            folder, config=config, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    _require_fitting(info, may_differ, folder)
    model.__class__ = plain
    return (model, info) if with_info else model


def _config_of(folder: str | os.PathLike, options: dict[str, Any]) -> Any:
    config = options.pop("config", None)
    if config is None or isinstance(config, (str, os.PathLike)):
        source = folder if config is None else config
        place = {name: options[name] for name in _PLACE if name in options}
        inside = place.get("subfolder") or ""
        require_plain_fields(source, inside)
        try:
            with config_told(source, inside):
                config = AutoConfig.from_pretrained(source, **place)
        except (OSError, ValueError) as error:
            if str(error).startswith(("[SimplicialConfig]", "cannot read")):
                raise
            at = "folder" if config is None else "config"
            raise ValueError(
                f"[from_pretrained] {at}: expected a folder of save_pretrained or a name on the "
                f"hub, got {os.fspath(source)}, which has no config that can be read"
            ) from None
    shape = getattr(config, "nsimplex", None)
    require(
        isinstance(shape, dict) or config.model_type == SimplicialConfig.model_type,
        f"[from_pretrained] folder: expected a converted model, got {config.model_type} in "
        f"{os.fspath(folder)}",
    )
    return config


def _class_of(config: Any, folder: str | os.PathLike) -> Any:
    """The class that was saved, with its head."""
    name: Any = next(iter(config.architectures or ()), None)
    own = {each.__name__: each for each in (SimplicialForCausalLM, SimplicialModel)}
    named = isinstance(name, str)
    found: Any = named and (own.get(name) or getattr(transformers, name, None))
    require(
        isinstance(found, type)
        and issubclass(found, PreTrainedModel)
        and found.config_class is type(config),
        "[from_pretrained] config.architectures: expected a class of Transformers for "
        f"{config.model_type}, got {printable(name)} in {os.fspath(folder)}",
    )
    return found


def _to_be_filled(plain: Any, config: Any) -> Any:
    """The class, whose models get the tuples of a converted model when they are made."""
    own = config.model_type == SimplicialConfig.model_type
    shape = {} if own else {**config.nsimplex}
    if isinstance(shape.get("window"), list) and len(shape["window"]) == 1:
        (shape["window"],) = shape["window"]

    def build(self: Any, config: Any, **unknown) -> None:
        require(
            not unknown,
            f"[from_pretrained] {next(iter(unknown), None)}: expected an option of Transformers' "
            "from_pretrained; fields of the config are changed in a config that is given",
        )
        plain.__init__(self, config)
        if not own:
            build_tuples(self, **shape)
            self.post_init()

    # The loader of Transformers makes the model and fills it: this class only adds the layers.
    return type(plain.__name__, (plain,), {"__init__": build, "__module__": plain.__module__})


def _require_fitting(info: dict[str, Any], may_differ: bool, folder: str | os.PathLike) -> None:
    """Check that every weight of the model was in the folder, and no other one."""
    for kind, expected in (
        ("missing_keys", "every weight of the model"),
        ("unexpected_keys", "weights of the model alone"),
        ("mismatched_keys", "weights of the model's shapes"),
    ):
        if kind == "mismatched_keys" and may_differ:
            continue
        names = sorted(name if isinstance(name, str) else name[0] for name in info[kind])
        require(
            not names,
            f"[from_pretrained] folder: expected {expected}, got {len(names)} "
            f"{kind.removesuffix('_keys')} ({', '.join(names[:3])}{', ..' * (len(names) > 3)}) "
            f"in {os.fspath(folder)}",
        )
