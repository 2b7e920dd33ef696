"""The shop as a Gymnasium environment."""

from __future__ import annotations

import copy
import operator
import os
from typing import Any, Literal, get_args

import gymnasium

from webshop._native import CompactPrompt, Session, Shop
from webshop._types import EnvObservation, Split, SplitRule
from webshop.spaces import Unicode

__all__ = ["WebShopEnv", "check_observation", "open_goals"]


def check_observation(observation: str) -> None:
    """Raises ValueError for an unknown form of observations."""
    if observation not in get_args(EnvObservation):
        raise ValueError(f"unknown observation `{observation}`; use one of {', '.join(get_args(EnvObservation))}")


def check_max_steps(max_steps: int) -> None:
    """Raises ValueError for a limit below 1."""
    if max_steps < 1:
        raise ValueError(f"max_steps must be at least 1, not {max_steps}")


def seeded_goal(shop: Shop, split: Split, seed: int, split_rule: SplitRule) -> int:
    """`Shop.goal_for_seed` of the last 64 bits of a seed, which Gymnasium does not bound."""
    return shop.goal_for_seed(split, seed % 2**64, split_rule)


def open_goals(
    catalog: str | os.PathLike[str],
    shop: Shop | None,
    split: Split,
    split_rule: SplitRule,
    render_mode: str | None,
    arguments: dict[str, Any],
) -> tuple[Shop, list[int]]:
    """The shop of an environment's arguments, and the goals of the split. Raises ValueError as the environments do."""
    if render_mode not in (None, "ansi"):
        raise ValueError(f"unknown render mode `{render_mode}`; use `ansi` or None")
    if shop is not None and (arguments or catalog != "100"):
        raise ValueError("give a shop or the arguments of one, not both")
    shop = Shop(catalog, **arguments) if shop is None else shop
    goals = shop.goals(split, split_rule)
    if not goals:
        raise ValueError(f"the split `{split}` has no goals")
    return shop, goals


class WebShopEnv(gymnasium.Env[str, str]):
    """One episode of the shop after another.

    Observations are pages as texts, actions `search[words]` or `click[label]`. The reward is that of a purchase, 0 to 1,
    and 0 otherwise. An episode terminates by a purchase and is truncated after `max_steps` actions. Infos are those of
    `Session.info`.

    With the observation "compact" the texts of an episode, with the completions between them, are the context of this
    project's own agents (`CompactPrompt`): each is what its page adds, and ends with `<|im_start|>`. Actions are then
    completions: `click[<|3|>]` is the third product, and a thought may come first.

    Args:
        catalog: "100", "1000", or a folder with the original's three JSON files.
        shop: an open shop, instead of `catalog` and the keywords of `Shop`.
        split: the goals that episodes are drawn from.
        split_rule: the rule that divides the goals.
        observation: "text", "text_rich", "html", "json", "url" or "compact".
        max_steps: actions after which an episode is truncated.
        results_shown: products that the observation "compact" shows of a page of results, 1 to 10.
        price_ranges: whether it shows both ends of a price that is a range; else the highest alone.
        detail_chars: the most characters that it shows of a description, feature list or attribute page, at least 1.
        render_mode: None or "ansi", the page with its clickable pieces marked.
        **arguments: keywords of `Shop`.

    Raises:
        ValueError: for an unknown name, an empty split, no steps, and a shop given together with its arguments.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        catalog: str | os.PathLike[str] = "100",
        *,
        shop: Shop | None = None,
        split: Split = "train",
        split_rule: SplitRule = "by-family",
        observation: EnvObservation = "text",
        max_steps: int = 15,
        results_shown: int = 5,
        price_ranges: bool = False,
        detail_chars: int = 400,
        render_mode: Literal["ansi"] | None = None,
        **arguments: Any,
    ) -> None:
        check_observation(observation)
        check_max_steps(max_steps)
        self.shop, self.goals = open_goals(catalog, shop, split, split_rule, render_mode, arguments)
        self.split: Split = split
        self.split_rule: SplitRule = split_rule
        self.observation: EnvObservation = observation
        self.max_steps = max_steps
        self.render_mode = render_mode
        self.action_space = Unicode()
        self.observation_space = Unicode()
        self._session: Session | None = None
        self._start = CompactPrompt(
            results_shown=results_shown, price_ranges=price_ranges, detail_chars=detail_chars
        )
        self._prompt = self._start

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

        A snapshot does not know what earlier observations showed: a "compact" observation begins with its page.

        With a seed the goal is `goal_for_seed` of its last 64 bits; later resets without one draw from the generator that it seeded.

        Raises:
            ValueError: for other options, an unknown goal, and a snapshot of another shop.
            gymnasium.error.Error: for a negative seed.
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
                goal = operator.index(options["goal"])
            elif seed is not None:
                goal = seeded_goal(self.shop, self.split, seed, self.split_rule)
            else:
                goal = self.goals[int(self.np_random.integers(len(self.goals)))]
            self._session = Session(self.shop, goal, max_steps=self.max_steps)
        self._prompt = self._start.copy()
        return self._observe(self._session), dict(self._session.info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Takes one action; with the observation "compact" that of a completion.

        Raises:
            TypeError: if the action is no `str`.
            RuntimeError: before the first reset.
        """
        session = self.session
        session.step(CompactPrompt.action(session, action) if self.observation == "compact" else action)
        info: dict[str, Any] = dict(session.info)
        return self._observe(session), session.reward, session.terminated, session.truncated, info

    def _observe(self, session: Session) -> str:
        return self._prompt.render(session) if self.observation == "compact" else session.observe(self.observation)

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
            one = copy.copy(self)
            one._session = session
            one._prompt = self._prompt.copy()
            one.np_random = copy.deepcopy(self.np_random)
            one.action_space = copy.deepcopy(self.action_space)
            one.observation_space = copy.deepcopy(self.observation_space)
            copies.append(one)
        return copies
