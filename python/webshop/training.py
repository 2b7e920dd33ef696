"""Training whose episodes are made elsewhere.

    def rollout(request: EpisodeRequest) -> list[str]: ...
    webshop.training.train(["--preset", "quick", "--out", "runs/mine"], rollout)

The trainer asks for the episodes of each batch, and for the rollouts of the reference policy, by coordinates; `rollout`
returns them as lines, made by a `RolloutWorker` in any process; the trainer learns from them. A run has the bytes of
`webshop train` with the same flags, for any division of the work, if all processors compute the same bits.
`webshop.ray` is such a function over a cluster.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from webshop._native import RolloutWorker
from webshop._native import train as _train

__all__ = ["EpisodeRequest", "RolloutWorker", "train"]


class EpisodeRequest(NamedTuple):
    """Which episodes are needed, and of which policy."""

    config: str
    """The configuration of the run as TOML; the same in every request of a run."""
    model: str | os.PathLike[str]
    """The folder of weights and tokenizer, which is there until the request is answered."""
    temperature: float
    """The sampling temperature."""
    top_p: float
    """The nucleus of the samples, above 0 and at most 1."""
    coordinates: list[tuple[int, int, int, int]]
    """Step, shop, goal and sample of each episode. A shop is its place among the training shops of the configuration."""


def train(arguments: Sequence[str], rollout: Callable[[EpisodeRequest], list[str]]) -> int:
    """Runs `webshop train` with training episodes that `rollout` makes. Returns the exit code of the command.

    Once in a process: the logs and the number of threads are the process's; a second run returns 2. `--resume` continues a run that ended early,
    with the same workers or others, or without any.

    Args:
        arguments: flags of `webshop train`. Refused are devices, `rl.mode = "single_step"` and `curriculum.sizes`.
        rollout: returns one line for each of `request.coordinates`, in their order. What it raises ends the run with
            exit code 2, after the checkpoints that it wrote; its traceback is printed.
    """

    def answer(*fields: object) -> list[str]:
        return rollout(EpisodeRequest(*fields))  # type: ignore[arg-type]

    # The command stops at a checkpoint when it is interrupted. Afterwards Python answers again.
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return _train(["webshop", "train", *arguments], answer)
    finally:
        for number, handler in handlers.items():
            # None is a handler that Python did not set, and cannot set again.
            if handler is not None:
                signal.signal(number, handler)
