"""Frameworks that are imported where they are used, because each is an extra of this package."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["framework"]


def framework(name: str, extra: str) -> Any:
    """A module of a framework.

    Args:
        name: the module, such as `datasets`.
        extra: the extra of this package that installs it.

    Raises:
        ModuleNotFoundError: if the framework is not installed; the text says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        message = f"`{error.name}` is not installed; `pip install './python[{extra}]'` in the repository of webshop brings it"
        raise ModuleNotFoundError(message, name=error.name) from error
