"""Training by verl-agent (github.com/langfengQ/verl-agent): all environments of a batch in one native vector.

verl-agent's `env_package/webshop/envs.py` starts an actor of Ray for every environment. `build_webshop_envs` here has the same
name, arguments and results, and steps all environments in one call; its manager, projection and prompts stay as they are. In
`make_envs` of `env_manager.py` import it from here:

    from agent_system.environments.env_package.webshop import webshop_projection
    from webshop.verl_agent import build_webshop_envs

Goals are drawn as verl-agent draws them, from a generator of numpy's, and its division of goals is kept: the first 500 are for
validation, all others for training. Goals of both may be of one product, so that results on them are too good. What differs:

- All environments are one shop, of the seed `shop_seed`. In verl-agent each worker has its own seed, and so its own prices and
  price limits.
- Without `file_path` the products are those of the embedded catalog of 1000. `attr_path` and `resources_per_worker` are not read.

What was run: `scripts/frameworks/check_verl_agent.py`, in which verl-agent's published manager shows, rewards and reports the same
over its own environments and over these. What was not: a training on GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from webshop._native import Lanes
from webshop.legacy import NO_LIMIT, SimServer

__all__ = ["REWARD_OF_SUCCESS", "WebShopEnvs", "build_webshop_envs"]

N_VALIDATION = 500
# verl-agent trains on success only.
REWARD_OF_SUCCESS = 10.0
# Those of `WebAgentTextEnv` that verl-agent gives.
_ARGUMENTS = {"observation_mode", "num_products", "human_goals", "file_path", "attr_path", "seed"}


class WebShopEnvs:
    """`env_num` groups of `group_n` environments, each group with one goal.

    Args:
        seed: of the goals that `reset` draws.
        env_num: the number of groups.
        group_n: environments of a group.
        is_train: whether goals are those for training.
        env_kwargs: `observation_mode`, `num_products`, `human_goals` and `file_path` of `webshop.legacy.WebAgentTextEnv`.
        shop_seed: of prices and price limits.
        threads: native threads; 0 for one a core.

    Attributes:
        server: its `goals`, in the original's order, and its `shop`.
        goal_idxs: the numbers of the goals that are drawn from.
        num_processes: the number of environments; the name is verl-agent's.

    Raises:
        ValueError: as `SimServer`; if there are fewer goals than groups; and for another observation mode.
        TypeError: for an unknown keyword.
    """

    def __init__(
        self,
        seed: int = 0,
        env_num: int = 1,
        group_n: int = 1,
        is_train: bool = True,
        env_kwargs: dict[str, Any] | None = None,
        *,
        shop_seed: int = 0,
        threads: int = 0,
    ) -> None:
        arguments: dict[str, Any] = {"observation_mode": "text"} | (env_kwargs or {})
        unknown = sorted(set(arguments) - _ARGUMENTS)
        if unknown:
            raise TypeError(f"WebShopEnvs has no keyword `{unknown[0]}` in `env_kwargs`")
        self.server = SimServer(
            file_path=arguments.get("file_path"),
            num_products=arguments.get("num_products"),
            human_goals=arguments.get("human_goals"),
            seed=shop_seed,
        )
        self.env_num, self.group_n, self.is_train = env_num, group_n, is_train
        self.num_processes = env_num * group_n
        n_goals = len(self.server.goals)
        self.goal_idxs = range(N_VALIDATION, n_goals) if is_train else range(min(N_VALIDATION, n_goals))
        if not 1 <= env_num <= len(self.goal_idxs):
            raise ValueError(f"there are {len(self.goal_idxs)} goals for {env_num} groups; take another catalog")
        self._random = np.random.RandomState(seed)
        self._all = list(range(self.num_processes))
        self._lanes = Lanes(
            self.server.shop,
            self.num_processes,
            max_steps=NO_LIMIT,
            observation=arguments["observation_mode"],
            threads=threads,
        )

    def reset(self) -> tuple[list[str], list[dict[str, Any]]]:
        """Draws a goal for each group, and starts all environments.

        Returns:
            Observations and infos, one an environment; groups lie one after another. An info has `available_actions` and
            `won`.
        """
        drawn = self._random.choice(self.goal_idxs, size=self.env_num, replace=False)
        places = np.repeat(drawn, self.group_n).tolist()
        goals = [self.server.goals[place]["id"] for place in places]
        texts, _, _, _, columns = self._lanes.reset(self._all, goals)
        return texts, [{"available_actions": available, "won": False} for available in _available(columns)]

    def step(self, actions: list[str]) -> tuple[list[str], list[float], list[bool], list[dict[str, Any]]]:
        """Takes an action in each environment. One that is over passes its turn, with reward 0.

        Returns:
            Observations; rewards, 10 for a purchase with the full reward and else 0; whether episodes are over; and infos,
            with `available_actions`, `won`, and `task_score`, the reward of the shop, 0 to 1.

        Raises:
            ValueError: if there are not as many actions as environments.
        """
        if len(actions) != self.num_processes:
            raise ValueError(f"Expected {self.num_processes} actions, got {len(actions)}")
        texts, scores, terminated, _, columns = self._lanes.step(self._all, actions)
        infos = [
            {"available_actions": available, "task_score": score, "won": score == 1.0}
            for available, score in zip(_available(columns), scores)
        ]
        rewards = [REWARD_OF_SUCCESS if info["won"] else 0.0 for info in infos]
        return texts, rewards, terminated, infos

    def render(self, mode: str = "text", env_idx: int | None = None) -> Any:
        """The pages with their clickable pieces marked: of one environment, or a list of all. `mode` is not read."""
        return [self._lanes.render(lane) for lane in self._all] if env_idx is None else self._lanes.render(env_idx)

    def close(self) -> None:
        """Nothing: there are no processes to end."""


def _available(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [
        {"has_search_bar": has_search_bar, "clickables": clickables}
        for has_search_bar, clickables in zip(columns["has_search_bar"], columns["clickables"])
    ]


def build_webshop_envs(
    seed: int = 0,
    env_num: int = 1,
    group_n: int = 1,
    is_train: bool = True,
    env_kwargs: dict[str, Any] | None = None,
    resources_per_worker: Any = None,
    **arguments: Any,
) -> WebShopEnvs:
    """verl-agent's function of this name, for `WebShopEnvs`. There are no workers, so that `resources_per_worker` is not read."""
    return WebShopEnvs(seed, env_num, group_n, is_train, env_kwargs, **arguments)
