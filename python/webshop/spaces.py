"""The space of observations and actions."""

from __future__ import annotations

import string
from typing import Any

import gymnasium
import numpy as np

__all__ = ["Unicode"]


class Unicode(gymnasium.Space[str]):
    """Every `str`.

    Samples are searches, so that a random agent acts. Arrays of a fixed length cannot hold it: `AsyncVectorEnv` needs
    `shared_memory=False`.
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: a text has no fixed length."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """A search for three letters. Raises ValueError if a mask or probabilities are given, which texts have not."""
        if mask is not None or probability is not None:
            raise ValueError("a Unicode space has neither a mask nor probabilities")
        letters = self.np_random.integers(0, len(string.ascii_lowercase), size=3)
        return f"search[{''.join(string.ascii_lowercase[at] for at in letters)}]"

    def contains(self, x: Any) -> bool:
        """Whether x is a `str`."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode)

    def __repr__(self) -> str:
        return "Unicode()"
