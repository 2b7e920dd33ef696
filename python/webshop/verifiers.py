"""The shop as a multi-turn environment of verifiers.

`vf.load_environment("webshop")` finds `webshop.load_environment`, which is this module's. A rollout is a chat in one of the
formats of `webshop.prompts`; its reward is the shop's. For verifiers' newer interface, `verifiers.v1`, nothing of this is
needed: its task set `openenv` plays at `webshop serve`.

Needs `pip install './python[verifiers]'`.
"""

from __future__ import annotations

import os
from typing import Any

from webshop._frameworks import framework
from webshop._native import Session, Shop
from webshop._types import Message, Split, SplitRule
from webshop.export import choose_goals
from webshop.prompts import Dialect, PromptFormat, prompt_format

__all__ = ["MultiTurnShop", "load_environment"]

vf: Any = framework("verifiers", "verifiers")


class MultiTurnShop(vf.MultiTurnEnv):  # type: ignore[misc]
    """A rollout is an episode, of the goal in the row's `info`.

    The state has `session`, the `webshop.Session`. A message without an action is a turn that does nothing, as in
    `webshop rollout`.

    Args:
        shop: the shop.
        prompts: the prompt format.
        max_steps: messages of the model after which an episode is truncated.
        **kwargs: keywords of verifiers' `MultiTurnEnv`, with a data set whose rows have `prompt` and `info.goal`.
    """

    def __init__(self, shop: Shop, prompts: PromptFormat, max_steps: int, **kwargs: Any) -> None:
        # verifiers stops at its own limit before the last action is taken, so the session counts.
        super().__init__(max_turns=-1, tool_defs=[tool["function"] for tool in prompts.tools] or None, **kwargs)
        self.shop = shop
        self.prompts = prompts
        self.max_steps = max_steps

    async def setup_state(self, state: Any) -> Any:
        """Opens the session of the row's goal."""
        state["session"] = Session(self.shop, state["info"]["goal"], max_steps=self.max_steps)
        return state

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        """Takes the action of the last message; the next page, or nothing after the end."""
        session = state["session"]
        message = _plain(messages[-1])
        session.step(self.prompts.action(message))
        if session.done:
            state["final_env_response"] = []
            return []
        return [_typed(reply) for reply in self.prompts.reply(session, message)]


def load_environment(
    split: Split = "train",
    num_examples: int = -1,
    max_turns: int = 15,
    dialect: Dialect = "tool-call",
    *,
    catalog: str | os.PathLike[str] = "100",
    split_rule: SplitRule = "by-family",
    results_shown: int | None = None,
    **arguments: Any,
) -> MultiTurnShop:
    """The environment of a split, for training and for evaluation.

    The reward is that of the purchase, 0 to 1. Metrics are `success`, whether it is 1, and `purchase`, whether there was one.

    Args:
        split: the goals; `test` for evaluation.
        num_examples: so many of them, as `webshop.export.choose_goals` draws them; -1 for all.
        max_turns: messages of the model after which an episode is truncated.
        dialect: "tool-call", or "agentgym-react" for models without function calls.
        catalog: "100", "1000", or a folder with the original's three JSON files.
        split_rule: the rule that divides the goals.
        results_shown: how many results of a page are shown, for "tool-call"; None for all.
        **arguments: keywords of `Shop`.

    Raises:
        ValueError: for an unknown name, and a split with fewer goals.
    """
    shop, goals = choose_goals(catalog, None, split, split_rule, None if num_examples == -1 else num_examples, arguments)
    prompts = prompt_format(dialect, results_shown)
    rows = [
        {"prompt": prompts.begin(Session(shop, goal, max_steps=max_turns)), "info": {"goal": goal}} for goal in goals
    ]
    table = framework("datasets", "verifiers").Dataset.from_list(rows)
    rubric = vf.Rubric(funcs=[reward])
    rubric.add_metric(success)
    rubric.add_metric(purchase)
    return MultiTurnShop(shop, prompts, max_turns, dataset=table, eval_dataset=table, rubric=rubric)


def reward(state: Any) -> float:
    """The reward of the purchase, 0 to 1; 0 without one."""
    breakdown = _breakdown(state)
    return 0.0 if breakdown is None else float(breakdown["total"])


def success(state: Any) -> float:
    """1 if the reward is 1, else 0."""
    return float(reward(state) == 1.0)


def purchase(state: Any) -> float:
    """1 if something was bought, else 0."""
    return float(_breakdown(state) is not None)


def _breakdown(state: Any) -> Any:
    # A rollout that failed before its first page has no session.
    session = state.get("session")
    return None if session is None else session.breakdown


def _plain(message: Any) -> dict[str, Any]:
    """A message of verifiers as in OpenAI's interface."""
    content = message["content"]
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    calls = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in message.get("tool_calls") or []
    ]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _typed(message: Message) -> Any:
    """A message as verifiers' type."""
    call = message.get("tool_call_id")
    if call is None:
        return vf.UserMessage(content=message["content"])
    return vf.ToolMessage(content=message["content"], tool_call_id=call)
