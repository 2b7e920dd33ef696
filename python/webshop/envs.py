"""The shop as a Gymnasium environment."""

from __future__ import annotations

import string
from typing import Any, Literal, get_args

import gymnasium
import numpy as np

from webshop._native import Session, Shop
from webshop._types import Observation, Split, SplitRule

__all__ = ["Unicode", "WebShopEnv"]


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

    def sample(
        self, mask: Any | None = None, probability: Any | None = None
    ) -> str:
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


class WebShopEnv(gymnasium.Env[str, str]):
    """One episode of the shop after another.

    Observations are pages as text, actions `search[words]` or `click[label]`. The reward is that of a purchase, 0 to 1,
    and 0 otherwise. An episode terminates by a purchase and is truncated after `max_steps` actions.

    Args:
        catalog: "100", "1000", or a folder with the original's three JSON files.
        shop: an open shop, instead of `catalog` and the keywords of `Shop`.
        split: the goals that episodes are drawn from.
        splits: the rule that divides the goals.
        observation: "text", "text_rich" or "html".
        max_steps: actions after which an episode is truncated.
        render_mode: None or "ansi", the page with its clickable pieces marked.
        **arguments: keywords of `Shop`.

    Raises:
        ValueError: for a name that there is not, an empty split, and a shop given together with its arguments.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        catalog: str = "100",
        *,
        shop: Shop | None = None,
        split: Split = "train",
        splits: SplitRule = "by-family",
        observation: Observation = "text",
        max_steps: int = 15,
        render_mode: Literal["ansi"] | None = None,
        **arguments: Any,
    ) -> None:
        if observation not in get_args(Observation):
            raise ValueError(f"unknown observation `{observation}`; use `text`, `text_rich` or `html`")
        if render_mode not in (None, "ansi"):
            raise ValueError(f"unknown render mode `{render_mode}`; use `ansi` or None")
        if shop is not None and (arguments or catalog != "100"):
            raise ValueError("give a shop or the arguments of one, not both")
        self.shop = Shop(catalog, **arguments) if shop is None else shop
        self.goals = self.shop.goals(split, splits)
        if not self.goals:
            raise ValueError(f"the split `{split}` has no goals")
        self.split, self.splits = split, splits
        self.observation: Observation = observation
        self.max_steps = max_steps
        self.render_mode = render_mode
        self.action_space = Unicode()
        self.observation_space = Unicode()
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The episode. Raises RuntimeError before the first reset."""
        if self._session is None:
            raise RuntimeError("the environment was never reset; call reset() first")
        return self._session

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Starts an episode: of `options["goal"]`, in the state of `options["snapshot"]`, or of a goal that is drawn.

        With a seed the goal is `goal_for_seed`; later resets without one draw from the generator that it seeded.

        Raises:
            ValueError: for other options, a goal that there is not, and a snapshot of another shop.
        """
        super().reset(seed=seed)
        options = {} if options is None else options
        unknown = sorted(set(options) - {"goal", "snapshot"})
        if unknown or len(options) > 1:
            raise ValueError(f"options are one of `goal` and `snapshot`, not {sorted(options)}")
        if "snapshot" in options:
            self._session = Session.restore(self.shop, options["snapshot"])
        else:
            if "goal" in options:
                goal = int(options["goal"])
            elif seed is not None:
                goal = self.shop.goal_for_seed(self.split, seed, self.splits)
            else:
                goal = self.goals[int(self.np_random.integers(len(self.goals)))]
            self._session = Session(self.shop, goal, max_steps=self.max_steps)
        return self._observe(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Takes one action.

        Raises:
            TypeError: if the action is no `str`.
            RuntimeError: before the first reset.
        """
        session = self.session.step(action)
        return self._observe(), session.reward, session.terminated, session.truncated, self._info()

    def render(self) -> str | None:
        """The page with its clickable pieces marked; None without a render mode."""
        return self.session.text_rich if self.render_mode == "ansi" else None

    def snapshot(self) -> bytes:
        """The state of the episode and its step limit."""
        return self.session.snapshot()

    def restore(self, snapshot: bytes) -> tuple[str, dict[str, Any]]:
        """Continues a snapshot; as a reset with the option `snapshot`."""
        return self.reset(options={"snapshot": snapshot})

    def fork(self, n: int) -> list[WebShopEnv]:
        """n independent environments in this state, which share the shop."""
        copies = []
        for session in self.session.fork(n):
            copy = WebShopEnv(
                shop=self.shop,
                split=self.split,
                splits=self.splits,
                observation=self.observation,
                max_steps=self.max_steps,
                render_mode="ansi" if self.render_mode == "ansi" else None,
            )
            copy._session = session
            copies.append(copy)
        return copies

    def _observe(self) -> str:
        session = self.session
        if self.observation == "text":
            return session.text
        return session.text_rich if self.observation == "text_rich" else session.html

    def _info(self) -> dict[str, Any]:
        session = self.session
        return {
            "goal": session.goal,
            "instruction": session.instruction,
            "available_actions": session.available,
            "noop": session.noop,
            "step": session.steps,
            "reward_parts": session.breakdown,
            "digest": session.digest,
        }
