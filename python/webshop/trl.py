"""The shop for TRL's `GRPOTrainer`: an environment class and a data set.

    GRPOTrainer(model, environment_factory=environment(), train_dataset=dataset("train"), args=GRPOConfig(...))

A row of the data set is the first page of a goal, as the prompt of the format `tool-call`, and the goal. The trainer makes
environments of the class, resets each to the goal of its row, calls their tools, and takes the reward from `get_reward`.
Tools and pages are those of `webshop rollout --prompt-format tool-call`.

TRL runs a tool and drops its result afterwards if prompt and answer reach `max_completion_length`, or the model's context.
Such an episode was bought if the last tool bought it, though the model never read that.

TRL counts actions otherwise than `webshop rollout --prompt-format tool-call` in three cases: it runs every call of a message,
where a rollout takes the first; it answers a call that cannot be parsed, or of an unknown tool, with an error, which in a rollout
is an action without effect; and it ends the episode with a message that calls no tool, which in a rollout uses up a turn. A
rollout also shows all ten results of a page, whatever `results_shown` was in training.

Needs `pip install './python[trl]'`; the environment class itself needs nothing.
"""

from __future__ import annotations

import os
from typing import Any

from webshop._frameworks import framework
from webshop._native import Session, Shop
from webshop._types import Message, Split, SplitRule
from webshop.envs import check_max_steps
from webshop.export import choose_goals
from webshop.prompts import ToolCalls

__all__ = ["dataset", "environment"]


def environment(
    catalog: str | os.PathLike[str] = "100",
    *,
    shop: Shop | None = None,
    max_steps: int = 15,
    results_shown: int | None = None,
    **arguments: Any,
) -> type[Any]:
    """A class for `environment_factory`, named `WebShop`, whose instances share a shop.

    Args:
        catalog: "100", "1000", or a folder with the original's three JSON files.
        shop: an open shop, instead of `catalog` and the keywords of `Shop`.
        max_steps: actions after which an episode is truncated.
        results_shown: how many results of a page are shown, 1 to 10, which saves tokens; None for all.
        **arguments: keywords of `Shop`.

    Raises:
        ValueError: for an unknown name, no steps, a shop given together with its arguments, and no results.
    """
    if shop is not None and (arguments or catalog != "100"):
        raise ValueError("give a shop or the arguments of one, not both")
    check_max_steps(max_steps)
    opened = Shop(catalog, **arguments) if shop is None else shop
    prompts = ToolCalls(results_shown)

    # Every public method but `reset` and `get_reward` is a tool, and its docstring is what the model reads of it: the
    # descriptions of the prompt format, without a section on results, which would be shown too.
    class WebShop:
        def __init__(self) -> None:
            self._session: Session | None = None

        def reset(self, goal: int, **row: Any) -> None:
            """Starts the episode of a row of `dataset`; the row's prompt has its first page.

            Raises ValueError if the shop has no such goal.
            """
            self._session = Session(opened, goal, max_steps=max_steps)

        def search(self, query: str) -> str:
            """Search the shop.

            Args:
                query: The words to search for.
            """
            return prompts.call(self._open(), prompts.act("search", query))

        def click(self, label: str) -> str:
            """Press what is written on the page.

            Args:
                label: A button, a product or an option.
            """
            return prompts.call(self._open(), prompts.act("click", label))

        def get_reward(self) -> float:
            """The reward of the purchase, 0 to 1; 0 without one. Raises RuntimeError before the first reset."""
            return self._open().reward

        def _open(self) -> Session:
            if self._session is None:
                raise RuntimeError("the environment was never reset; call reset(goal=…) first")
            return self._session

    # A description has a type of the result if the function has; the prompt format's has none.
    for tool in (WebShop.search, WebShop.click):
        del tool.__annotations__["return"]
    return WebShop


def dataset(
    split: Split = "train",
    n: int | None = None,
    *,
    catalog: str | os.PathLike[str] = "100",
    shop: Shop | None = None,
    split_rule: SplitRule = "by-family",
    max_steps: int = 15,
    **arguments: Any,
) -> Any:
    """A `datasets.Dataset` with the columns `prompt`, a chat, and `goal`, a row for each goal.

    The members of a GRPO group are samples of one row, so they have one goal.

    Args:
        split: the goals.
        n: so many of them, as `webshop.export.choose_goals` draws them; None for all.
        catalog, shop, **arguments: the shop, as for `environment`; give both the same.
        split_rule: the rule that divides the goals.
        max_steps: as of `environment`.

    Raises:
        ValueError: for an unknown name, and a split with fewer goals.
        ModuleNotFoundError: without `datasets`.
    """
    shop, goals = choose_goals(catalog, shop, split, split_rule, n, arguments)
    prompts = ToolCalls()

    def prompt(goal: int) -> list[Message]:
        return prompts.begin(Session(shop, goal, max_steps=max_steps))

    return framework("datasets", "trl").Dataset.from_list([{"prompt": prompt(goal), "goal": goal} for goal in goals])
