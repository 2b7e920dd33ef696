"""A deterministic shop for agents: products, goals, search, rewards, and Gymnasium environments.

A `Shop` is opened once and shared; a `Session` is one episode in it. `WebShopEnv` and `WebShopVectorEnv` are
Gymnasium environments, registered as `WebShop/Text-v0`, `WebShop/TextRich-v0`, `WebShop/Html-v0`,
`WebShop/Json-v0` and `WebShop/Compact-v0`. An `Episode` is a recorded one; a `CompactPrompt` is what this project's own
agents read of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING

from gymnasium.envs.registration import register

from webshop._native import CompactPrompt, Episode, Session, Shop, __version__
from webshop._types import (
    AvailableActions,
    Check,
    EnvObservation,
    EpisodeRow,
    Explanation,
    Goal,
    GoalRow,
    Hit,
    Info,
    Message,
    Observation,
    OptionGroup,
    Price,
    Product,
    Purchase,
    RewardBreakdown,
    Split,
    SplitRule,
    WantedOption,
)
from webshop.envs import WebShopEnv
from webshop.spaces import Unicode
from webshop.vector import WebShopVectorEnv

if TYPE_CHECKING:
    from webshop.verifiers import load_environment

__all__ = [
    "AvailableActions",
    "Check",
    "CompactPrompt",
    "EnvObservation",
    "Episode",
    "EpisodeRow",
    "Explanation",
    "Goal",
    "GoalRow",
    "Hit",
    "Info",
    "Message",
    "Observation",
    "OptionGroup",
    "Price",
    "Product",
    "Purchase",
    "RewardBreakdown",
    "Session",
    "Shop",
    "Split",
    "SplitRule",
    "Unicode",
    "WantedOption",
    "WebShopEnv",
    "WebShopVectorEnv",
    "__version__",
    "episodes",
    "explain",
    "goal_for_seed",
    "search",
    "validate",
]


def __getattr__(name: str) -> object:
    # verifiers looks for this function in the package; the module that has it imports verifiers.
    if name == "load_environment":
        from webshop.verifiers import load_environment

        return load_environment
    raise AttributeError(f"module `webshop` has no attribute `{name}`")


def search(shop: Shop, query: str, k: int = 50) -> list[Hit]:
    """`Shop.search`: at most k products for a query, best first."""
    return shop.search(query, k)


def explain(shop: Shop, goal: int, asin: str, options: Mapping[str, str] | None = None) -> Explanation:
    """`Shop.explain`: what buying a product with these options earns for a goal."""
    return shop.explain(goal, asin, None if options is None else dict(options))


def goal_for_seed(shop: Shop, split: Split, seed: int, split_rule: SplitRule = "by-family") -> int:
    """`Shop.goal_for_seed`: the goal that a seed draws from a split."""
    return shop.goal_for_seed(split, seed, split_rule)


def validate(shop: Shop) -> list[Check]:
    """`Shop.validate`: whether the shop is fit for training, property by property."""
    return shop.validate()


def episodes(file: str | PathLike[str]) -> Iterator[Episode]:
    """The episodes of a file of `webshop rollout --out`, one after another.

    Raises OSError if the file cannot be read, and ValueError for a line that is no episode, with its number.
    """
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    episode = Episode.read(line)
                except ValueError as error:
                    raise ValueError(f"`{file}`, line {number}: {error}") from None
                yield episode


_OBSERVATIONS: dict[str, EnvObservation] = {
    "Text": "text",
    "TextRich": "text_rich",
    "Html": "html",
    "Json": "json",
    "Compact": "compact",
}
for _name, _observation in _OBSERVATIONS.items():
    register(
        id=f"WebShop/{_name}-v0",
        entry_point="webshop.envs:WebShopEnv",
        vector_entry_point="webshop.vector:WebShopVectorEnv",
        kwargs={"observation": _observation},
        nondeterministic=False,
    )
