"""Goals and recorded episodes as rows, and as data sets of Hugging Face.

`goal_rows` and `episode_rows` make plain dictionaries whose values have the same types in every row; `goals` and `episodes`
make a `datasets.Dataset` of them, which writes Parquet, JSON or CSV. Chats for supervised training are `webshop convert`'s.
Needs `pip install './python[datasets]'` for the data sets, and nothing for the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any

import webshop
from webshop._frameworks import framework
from webshop._native import Episode, Shop
from webshop._types import EpisodeRow, GoalRow, Split, SplitRule
from webshop.envs import open_goals

__all__ = ["choose_goals", "episode_rows", "episodes", "goal_rows", "goals"]


def choose_goals(
    catalog: str | PathLike[str], shop: Shop | None, split: Split, split_rule: SplitRule, n: int | None, arguments: dict[str, Any]
) -> tuple[Shop, list[int]]:
    """The shop of an adapter's arguments, and n different goals of a split.

    Goals are those that `Shop.goal_for_seed` draws with the seeds 0, 1 and so on, in this order; with None all goals of the
    split, in the catalog's order.

    Raises:
        ValueError: if the split has fewer goals or n is less than 1, and as the environments.
    """
    shop, every = open_goals(catalog, shop, split, split_rule, None, arguments)
    if n is None:
        return shop, every
    if not 1 <= n <= len(every):
        raise ValueError(f"the split `{split}` has {len(every)} goals; 1 to {len(every)} of them can be taken, not {n}")
    drawn: dict[int, None] = {}
    seed = 0
    while len(drawn) < n:
        drawn[shop.goal_for_seed(split, seed, split_rule)] = None
        seed += 1
    return shop, list(drawn)


def goal_rows(shop: Shop, split: Split = "all", split_rule: SplitRule = "by-family", n: int | None = None) -> list[GoalRow]:
    """Goals as rows; `n` as in `choose_goals`. The price limit is in cents, the digest names the goals' catalog.

    Raises:
        ValueError: for an unknown or empty split, and as `choose_goals`.
    """
    _, numbers = choose_goals("100", shop, split, split_rule, n, {})
    digest = shop.fingerprint["goals"]
    return [{**shop.goal(number), "split": split, "split_rule": split_rule, "digest": digest} for number in numbers]


def goals(
    split: Split = "all",
    n: int | None = None,
    *,
    catalog: str | PathLike[str] = "100",
    shop: Shop | None = None,
    split_rule: SplitRule = "by-family",
    **arguments: Any,
) -> Any:
    """The rows of `goal_rows` as a `datasets.Dataset`. The shop is given as for `WebShopEnv`.

    Raises:
        ValueError: as `goal_rows`.
        ModuleNotFoundError: without `datasets`.
    """
    shop, _ = open_goals(catalog, shop, split, split_rule, None, arguments)
    return framework("datasets", "datasets").Dataset.from_list(goal_rows(shop, split, split_rule, n))


def episode_rows(recorded: str | PathLike[str] | Iterable[Episode]) -> Iterator[EpisodeRow]:
    """Episodes of a file of `webshop rollout --out`, or of a list, as rows, one after another.

    `completions` are the model's texts, empty for policies without a model; `noops` name for each action the kind of
    its no-op, such as `malformed`, and are empty texts for actions that did something.

    Raises:
        OSError: if the file cannot be read.
        ValueError: for a line that is no episode.
    """
    found = webshop.episodes(recorded) if isinstance(recorded, (str, PathLike)) else recorded
    for episode in found:
        fields = episode.fields
        turns = fields["turns"]
        yield {
            "goal": episode.goal,
            "instruction": fields.get("instruction"),
            "policy": fields.get("policy"),
            "model": fields.get("model"),
            "prompt_format": fields.get("prompt_version"),
            "sample": (fields.get("coordinates") or {}).get("sample"),
            "actions": episode.actions,
            "completions": [turn.get("completion") or "" for turn in turns],
            "noops": [turn["noop"] or "" for turn in turns],
            "reward": episode.reward,
            "success": episode.reward == 1.0,
            "terminated": episode.terminated,
            "truncated": episode.truncated,
            "breakdown": episode.breakdown,
            "goal_fingerprint": fields["goal_fingerprint"],
            "record": episode.line,
        }


def episodes(recorded: str | PathLike[str] | Iterable[Episode]) -> Any:
    """The rows of `episode_rows` as a `datasets.Dataset`; `webshop.Episode.read` reads the column `record`.

    Raises:
        OSError, ValueError: as `episode_rows`.
        ModuleNotFoundError: without `datasets`.
    """
    return framework("datasets", "datasets").Dataset.from_list(list(episode_rows(recorded)))
