"""Data sets and rewards of verl, without verl: rows of goals, and what recorded actions earn.

A row is the start of an episode in the columns that verl reads. It names its goal and its shop, so that whatever plays it
needs no configuration, and refuses a row that was made in another shop.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import webshop
from webshop._types import Split, SplitRule
from webshop.prompts import AgentgymReact

__all__ = ["open_shop", "rows", "score"]


def open_shop(extra_info: dict[str, Any]) -> webshop.Shop:
    """The shop of a row.

    Raises:
        ValueError: if products, prices, goals or rules are not those that the row was made with.
    """
    return _open_shop(extra_info["shop"], extra_info["fingerprint"])


@functools.lru_cache(maxsize=8)
def _open_shop(arguments: str, fingerprint: str) -> webshop.Shop:
    shop = webshop.Shop(**json.loads(arguments))
    expected, found = json.loads(fingerprint), shop.fingerprint
    differing = [name for name, value in expected.items() if found.get(name) != value]
    if differing:
        raise ValueError(f"the rows were made in another shop: {', '.join(differing)} differ; make them again")
    return shop


def rows(
    shop: webshop.Shop,
    split: Split = "train",
    split_rule: SplitRule = "by-family",
    goals: Iterable[int] | None = None,
    *,
    agent: str = "webshop",
) -> Iterator[dict[str, Any]]:
    """The starts of episodes, in the columns of verl's data sets.

    `prompt` holds the first messages in the format `agentgym-react`, `agent_name` is `agent`, and `extra_info` names `goal`, `split`, `index` (the place
    among the rows), `shop` (its arguments as JSON) and `fingerprint` (its digests as JSON). `reward_model` has no truth: the
    shop computes the reward.

    Args:
        shop: where to buy.
        split: the goals, in the order of their numbers.
        split_rule: the rule that divides the goals.
        goals: only these, in this order, instead of the split's.
        agent: the name of the agent loop.

    Raises:
        ValueError: for an unknown split, and an unknown goal.
    """
    (catalog,), arguments = shop.__getnewargs_ex__()
    for index, goal in enumerate(shop.goals(split, split_rule) if goals is None else goals):
        yield {
            "data_source": "webshop",
            "agent_name": agent,
            "ability": "shopping",
            "prompt": AgentgymReact().begin(webshop.Session(shop, goal)),
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {
                "index": index,
                "goal": goal,
                "split": split,
                "shop": json.dumps({"catalog": catalog, **arguments}),
                "fingerprint": json.dumps(shop.fingerprint),
            },
        }


def score(shop: webshop.Shop, goal: int, actions: list[str]) -> dict[str, Any]:
    """What a list of actions earns: `score`, 0 to 1, `acc`, 1 for a full reward and else 0, and `bought`, 1 or 0.

    Raises:
        ValueError: for an unknown goal.
    """
    session = webshop.Session(shop, goal, max_steps=max(1, len(actions)))
    for action in actions:
        session.step(action)
        if session.terminated:
            break
    return {"score": session.reward, "acc": float(session.reward == 1.0), "bought": float(session.terminated)}
