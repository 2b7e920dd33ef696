"""A deterministic shop for agents: products, goals, search, rewards, and Gymnasium environments.

A `Shop` is opened once and shared; a `Session` is one episode in it. `WebShopEnv` and `WebShopVectorEnv` are
Gymnasium environments, registered as `WebShop/Text-v0`, `WebShop/TextRich-v0` and `WebShop/Html-v0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gymnasium.envs.registration import register

from webshop._native import Session, Shop, __version__
from webshop._types import (
    AvailableActions,
    Explanation,
    Goal,
    Hit,
    RewardBreakdown,
    Split,
    SplitRule,
    WantedOption,
)
from webshop.envs import Unicode, WebShopEnv

__all__ = [
    "AvailableActions",
    "Explanation",
    "Goal",
    "Hit",
    "RewardBreakdown",
    "Session",
    "Shop",
    "Unicode",
    "WantedOption",
    "WebShopEnv",
    "__version__",
    "explain",
    "goal_for_seed",
    "search",
]


def search(shop: Shop, query: str, k: int = 50) -> list[Hit]:
    """`Shop.search`: at most k products for a query, best first."""
    return shop.search(query, k)


def explain(shop: Shop, goal: int, asin: str, options: Mapping[str, str] | None = None) -> Explanation:
    """`Shop.explain`: what buying a product with these options earns for a goal."""
    return shop.explain(goal, asin, None if options is None else dict(options))


def goal_for_seed(shop: Shop, split: Split, seed: int, splits: SplitRule = "by-family") -> int:
    """`Shop.goal_for_seed`: the goal that a seed draws from a split."""
    return shop.goal_for_seed(split, seed, splits)


_OBSERVATIONS: dict[str, Literal["text", "text_rich", "html"]] = {
    "Text": "text",
    "TextRich": "text_rich",
    "Html": "html",
}
for _name, _observation in _OBSERVATIONS.items():
    register(
        id=f"WebShop/{_name}-v0",
        entry_point="webshop.envs:WebShopEnv",
        kwargs={"observation": _observation},
        nondeterministic=False,
    )
