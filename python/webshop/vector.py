"""Many episodes that step in one native call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from webshop._native import Lanes, Shop
from webshop._types import EnvObservation, Split, SplitRule
from webshop.envs import check_observation, open_goals, seeded_goal
from webshop.spaces import Unicode

__all__ = ["WebShopVectorEnv"]

Texts = tuple[str, ...]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# The fields of infos, a list for each, with a value for each of some lanes.
Columns = dict[str, list[Any]]


class WebShopVectorEnv(VectorEnv[Texts, Sequence[str], npt.NDArray[Any]]):
    """`num_envs` episodes, the same as those of as many `WebShopEnv`, stepped by native threads.

    Observations are tuples of `str`; rewards are float64, `terminated` and `truncated` bool, of the shape [num_envs].
    Infos are arrays of that shape with masks, as `gymnasium.vector.SyncVectorEnv` makes them.

    Args:
        num_envs: the number of episodes; at least 1.
        catalog: "100", "1000", or a folder with the original's three JSON files.
        shop: an open shop, instead of `catalog` and the keywords of `Shop`.
        split: the goals that episodes are drawn from.
        split_rule: the rule that divides the goals.
        observation: "text", "text_rich", "html", "json", "url" or "compact".
        max_steps: actions after which an episode is truncated.
        results_shown: products that the observation "compact" shows of a page of results, 1 to 10.
        price_ranges: whether it shows both ends of a price that is a range; else the highest alone.
        detail_chars: the most characters that it shows of a description, feature list or attribute page, at least 1.
        autoreset_mode: what follows the end of an episode. NEXT_STEP: the next action begins another one. SAME_STEP: the
            same step begins it; infos hold `final_obs` and `final_info`. DISABLED: nothing; the lane passes its turns,
            with reward 0, until it is reset.
        threads: native threads; 0 for one a core. Results do not depend on it.
        render_mode: None or "ansi".
        max_episode_steps: `max_steps` by the name that `gymnasium.make_vec` passes, which is used if both are given.
        **arguments: keywords of `Shop`.

    Raises:
        ValueError: for an unknown name, an empty split, no episodes, and a shop given with its arguments.
    """

    def __init__(
        self,
        num_envs: int = 1,
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 0,
        render_mode: Literal["ansi"] | None = None,
        max_episode_steps: int | None = None,
        **arguments: Any,
    ) -> None:
        max_steps = max_steps if max_episode_steps is None else max_episode_steps
        if num_envs < 1:
            raise ValueError(f"a vector environment has at least 1 episode, not {num_envs}")
        check_observation(observation)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": ["ansi"], "render_fps": 4, "autoreset_mode": self.autoreset_mode}
        self.shop, self.goals = open_goals(catalog, shop, split, split_rule, render_mode, arguments)
        self.split: Split = split
        self.split_rule: SplitRule = split_rule
        self.render_mode = render_mode
        self.num_envs = num_envs
        self.single_observation_space = self.single_action_space = Unicode()
        self.observation_space = batch_space(Unicode(), num_envs)
        self.action_space = batch_space(Unicode(), num_envs)
        self._all = list(range(num_envs))
        self._lanes = Lanes(
            self.shop,
            num_envs,
            max_steps=max_steps,
            observation=observation,
            results_shown=results_shown,
            price_ranges=price_ranges,
            detail_chars=detail_chars,
            threads=threads,
        )
        self._draws: list[np.random.Generator | None] = [None] * num_envs
        self._texts = [""] * num_envs
        self._rewards: Floats = np.zeros(num_envs, np.float64)
        self._terminated: Bools = np.zeros(num_envs, np.bool_)
        self._truncated: Bools = np.zeros(num_envs, np.bool_)
        self._started: Bools = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Texts, dict[str, Any]]:
        """Starts episodes, in all lanes or in those of `options["reset_mask"]`.

        A seed n gives lane i the seed n + i; a list has one for each lane. Goals are drawn as `WebShopEnv.reset` does,
        unless `options["goals"]` has a number for each lane.

        Raises:
            ValueError: for other options, lists of another length than `num_envs`, and an unknown goal.
            TypeError: if the mask is no array of bool.
        """
        options = {} if options is None else options
        unknown = sorted(set(options) - {"reset_mask", "goals"})
        if unknown:
            raise ValueError(f"options are `reset_mask` and `goals`, not {unknown}")
        lanes = self._masked(options.get("reset_mask"))
        seeds = [int(seed) + lane for lane in self._all] if isinstance(seed, (int, np.integer)) else seed
        for name, values in (("seeds", seeds), ("goals", options.get("goals"))):
            if values is not None and len(values) != self.num_envs:
                raise ValueError(f"there are {len(values)} {name} for {self.num_envs} episodes")
        for lane in lanes:
            if seeds is not None and seeds[lane] is not None:
                self._draws[lane] = seeding.np_random(seeds[lane])[0]
        if "goals" in options:
            goals = [int(options["goals"][lane]) for lane in lanes]
        else:
            goals = [self._draw(lane, None if seeds is None else seeds[lane]) for lane in lanes]
        columns = self._start(lanes, goals)
        self._started[lanes] = True
        return tuple(self._texts), self._infos(lanes, columns)

    def step(self, actions: Sequence[str]) -> tuple[Texts, Floats, Bools, Bools, dict[str, Any]]:
        """Takes one action in each lane.

        Raises:
            ValueError: if there are not as many actions as lanes.
            TypeError: if an action is no `str`.
            RuntimeError: before the first reset of every lane.
        """
        if len(actions) != self.num_envs:
            raise ValueError(f"there are {len(actions)} actions for {self.num_envs} episodes")
        if not self._started.all():
            raise RuntimeError("the environment was never reset; call reset() first")
        over = self._over()
        if over and self.autoreset_mode is AutoresetMode.NEXT_STEP:
            lanes, columns = self._step_others(over, actions)
        else:
            lanes, columns = self._all, self._advance(self._all, actions)
        result = self._rewards.copy(), self._terminated.copy(), self._truncated.copy()
        final: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and (over := self._over()):
            final = self._final(over, columns)
            for name, values in self._restart(over).items():
                for lane, value in zip(over, values):
                    columns[name][lane] = value
        return tuple(self._texts), *result, final | self._infos(lanes, columns)

    def render(self) -> tuple[str, ...] | None:
        """The pages with their clickable pieces marked; None without a render mode."""
        if self.render_mode != "ansi":
            return None
        return tuple(self._lanes.render(lane) for lane in self._all)

    def _masked(self, mask: Any) -> list[int]:
        if mask is None:
            return self._all
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError("options['reset_mask'] must be an array of bool")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"options['reset_mask'] must have the shape ({self.num_envs},) and a True value")
        return [int(lane) for lane in np.flatnonzero(mask)]

    def _draw(self, lane: int, seed: int | None) -> int:
        if seed is not None:
            return seeded_goal(self.shop, self.split, seed, self.split_rule)
        draws = self._draws[lane]
        if draws is None:
            draws = self._draws[lane] = seeding.np_random()[0]
        return self.goals[int(draws.integers(len(self.goals)))]

    def _over(self) -> list[int]:
        return [int(lane) for lane in np.flatnonzero(self._terminated | self._truncated)]

    def _step_others(self, over: list[int], actions: Sequence[str]) -> tuple[list[int], Columns]:
        """Restarts the lanes that are over and steps the others."""
        ended = set(over)
        others = [lane for lane in self._all if lane not in ended]
        stepped = self._advance(others, [actions[lane] for lane in others])
        started = self._restart(over)
        return others + over, {name: values + started[name] for name, values in stepped.items()}

    def _advance(self, lanes: list[int], actions: Sequence[str]) -> Columns:
        return self._keep(lanes, *self._lanes.step(lanes, list(actions)))

    def _restart(self, lanes: list[int]) -> Columns:
        return self._start(lanes, [self._draw(lane, None) for lane in lanes])

    def _start(self, lanes: list[int], goals: list[int]) -> Columns:
        return self._keep(lanes, *self._lanes.reset(lanes, goals))

    def _keep(
        self,
        lanes: list[int],
        texts: list[str],
        rewards: list[float],
        terminated: list[bool],
        truncated: list[bool],
        columns: Columns,
    ) -> Columns:
        for lane, text in zip(lanes, texts):
            self._texts[lane] = text
        self._rewards[lanes] = rewards
        self._terminated[lanes] = terminated
        self._truncated[lanes] = truncated
        return columns

    def _final(self, over: list[int], columns: Columns) -> dict[str, Any]:
        """The last pages and infos of the lanes that are over; the columns are of all lanes."""
        texts = [self._texts[lane] for lane in over]
        ended = {name: [values[lane] for lane in over] for name, values in columns.items()}
        return {
            "final_obs": self._column(over, texts, object),
            "_final_obs": self._mask(over),
            "final_info": self._infos(over, ended),
            "_final_info": self._mask(over),
        }

    def _infos(self, lanes: list[int], columns: Columns) -> dict[str, Any]:
        """The columns of some lanes as arrays of all, each with a mask."""
        infos: dict[str, Any] = {
            "goal": self._column(lanes, columns["goal"], np.int64),
            "instruction": self._column(lanes, columns["instruction"], object),
            "noop": self._column(lanes, columns["noop"], object),
            "step": self._column(lanes, columns["step"], np.int64),
            "digest": self._column(lanes, columns["digest"], object),
            "available_actions": {
                "has_search_bar": self._column(lanes, columns["has_search_bar"], np.bool_),
                "_has_search_bar": self._mask(lanes),
                "clickables": self._column(lanes, columns["clickables"], object),
                "_clickables": self._mask(lanes),
            },
        }
        infos |= {f"_{name}": self._mask(lanes) for name in infos}
        bought = [(lane, parts) for lane, parts in zip(lanes, columns["reward_parts"]) if parts is not None]
        if bought:
            buyers, purchases = zip(*bought)
            counts: dict[str, Any] = {}
            for name, value in purchases[0].items():
                counts[name] = self._column(list(buyers), [parts[name] for parts in purchases], type(value))
                counts[f"_{name}"] = self._mask(list(buyers))
            infos |= {"reward_parts": counts, "_reward_parts": self._mask(list(buyers))}
        return infos

    def _column(self, lanes: list[int], values: Sequence[Any], dtype: Any) -> npt.NDArray[Any]:
        # np.array would make two dimensions of lists of one length.
        column = np.fromiter(values, dtype=dtype, count=len(lanes))
        if lanes is self._all:
            return column
        empty = np.full(self.num_envs, None, object) if dtype is object else np.zeros(self.num_envs, dtype)
        empty[lanes] = column
        return empty

    def _mask(self, lanes: list[int]) -> Bools:
        mask: Bools = np.zeros(self.num_envs, np.bool_)
        mask[lanes] = True
        return mask
