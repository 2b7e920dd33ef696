"""The shop as a task of Inspect AI, `webshop/webshop`.

    inspect eval webshop/webshop --model openai/gpt-5-mini -T split=test -T n=100

A sample is a goal. The model has the tools `search` and `click`, and its score is the reward of its purchase. Another solver
may take the place of `shopper`; the tools and the scorer need only `open_shop`, the task's set-up. Prompts of `shopper` are
those of `webshop rollout --prompt-format tool-call`.

The state of a sample is its actions, in Inspect's store. The session is played again from them when it is needed, which takes
microseconds, so that logs show them and forked samples go their own ways.

Needs `pip install './python[inspect]'`.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import webshop
from webshop._frameworks import framework
from webshop._native import Session, Shop
from webshop._types import Split, SplitRule
from webshop.export import choose_goals
from webshop.prompts import ToolCalls

inspect_ai: Any = framework("inspect_ai", "inspect")
inspect_dataset: Any = framework("inspect_ai.dataset", "inspect")
inspect_model: Any = framework("inspect_ai.model", "inspect")
inspect_scorer: Any = framework("inspect_ai.scorer", "inspect")
inspect_solver: Any = framework("inspect_ai.solver", "inspect")
inspect_tool: Any = framework("inspect_ai.tool", "inspect")
inspect_util: Any = framework("inspect_ai.util", "inspect")

__all__ = ["click", "open_shop", "purchase", "search", "shopper", "webshop_task"]

# The key of Inspect's store.
EPISODE = "webshop:episode"


@inspect_ai.task(name="webshop")  # type: ignore[untyped-decorator]
def webshop_task(
    split: Split = "test",
    n: int | None = None,
    catalog: str | os.PathLike[str] = "100",
    split_rule: SplitRule = "by-family",
    max_steps: int = 15,
    results_shown: int | None = None,
    goals: str | None = None,
    compat: str = "repaired",
    seed: int = 0,
) -> Any:
    """Buy in the shop what an instruction asks for.

    Args:
        split: the goals.
        n: so many of them, as `webshop.export.choose_goals` draws them; None for all.
        catalog: "100", "1000", or a folder with the original's three JSON files.
        split_rule: the rule that divides the goals.
        max_steps: actions after which an episode is truncated; a message without a call is one.
        results_shown: how many results of a page are shown, 1 to 10; None for all.
        goals: "human", "synthetic" or "both", as of `Shop`.
        compat: the rules, "repaired" or "original".
        seed: of prices.

    Raises:
        ValueError: for an unknown name, and a split with fewer goals.
    """
    arguments: dict[str, Any] = {"goals": goals, "compat": compat, "seed": seed}
    shop, numbers = choose_goals(catalog, None, split, split_rule, n, arguments)
    episode = {"shop": {"catalog": catalog, **arguments}, "max_steps": max_steps, "results_shown": results_shown}
    samples = [
        inspect_dataset.Sample(
            id=goal,
            input=shop.goal(goal)["instruction"],
            # Goals of one product are alike, so errors are clustered by product.
            metadata={"goal": goal, "product": shop.goal(goal)["asin"], EPISODE: {**episode, "goal": goal, "actions": []}},
        )
        for goal in numbers
    ]
    return inspect_ai.Task(
        dataset=inspect_dataset.MemoryDataset(samples, name=f"webshop-{catalog}-{split}"),
        setup=open_shop(),
        solver=shopper(),
        scorer=purchase(),
        # Of several calls in a message each would be taken before the model reads a page.
        config=inspect_model.GenerateConfig(parallel_tool_calls=False),
        version=shop.fingerprint["environment"],
        metadata={"webshop": webshop.__version__, **shop.fingerprint},
    )


@inspect_solver.solver  # type: ignore[untyped-decorator]
def open_shop() -> Any:
    """The set-up of a sample: its episode, in the store, where the tools and the scorer find it."""

    async def solve(state: Any, generate: Any) -> Any:
        state.store.set(EPISODE, state.metadata[EPISODE])
        return state

    return solve


@inspect_solver.solver  # type: ignore[untyped-decorator]
def shopper() -> Any:
    """Lets the model call `search` and `click` until the episode ends, or the model's context does.

    The chat begins as the prompt format `tool-call` has it. A message without a call, or with one
    that cannot be made, is an action that does nothing.
    """

    async def solve(state: Any, generate: Any) -> Any:
        session = _session(state.store)
        prompts = _prompts(state.store)
        role, first = prompts.begin(session)
        state.messages = [
            inspect_model.ChatMessageSystem(content=role["content"]),
            inspect_model.ChatMessageUser(content=first["content"]),
        ]
        state.tools = [search(), click()]
        while not session.done:
            steps_before = session.steps
            state = await generate(state, tool_calls="single")
            if state.output.stop_reason == "model_length":
                break
            session = _session(state.store)
            # No call, or one that Inspect refused and answered.
            if session.steps == steps_before:
                _take(state.store, "")
                session = _session(state.store)
                if not session.done and not state.output.message.tool_calls:
                    state.messages.append(inspect_model.ChatMessageUser(content=prompts.page(session)))
        return state

    return solve


@inspect_tool.tool(parallel=False)  # type: ignore[untyped-decorator]
def search() -> Any:
    """The tool that searches."""

    async def execute(query: str) -> str:
        """Search the shop.

        Args:
            query: The words to search for.
        """
        return _call("search", query)

    return execute


@inspect_tool.tool(parallel=False)  # type: ignore[untyped-decorator]
def click() -> Any:
    """The tool that clicks."""

    async def execute(label: str) -> str:
        """Press what is written on the page.

        Args:
            label: A button, a product or an option.
        """
        return _call("click", label)

    return execute


@inspect_scorer.scorer(  # type: ignore[untyped-decorator]
    metrics={
        name: [inspect_scorer.mean(), inspect_scorer.stderr(cluster="product")] for name in ("reward", "success", "purchase")
    }
)
def purchase() -> Any:
    """The reward of the purchase, 0 to 1; whether it is 1; and whether there was a purchase.

    Standard errors are clustered by product, as in the figures of the command line.
    """

    async def score(state: Any, target: Any) -> Any:
        session = _session(state.store)
        breakdown = session.breakdown
        reward = 0.0 if breakdown is None else breakdown["total"]
        bought = breakdown is not None
        return inspect_scorer.Score(
            value={"reward": reward, "success": float(reward == 1.0), "purchase": float(bought)},
            answer=state.store.get(EPISODE)["actions"][-1] if session.steps else None,
            explanation="nothing was bought" if breakdown is None else ", ".join(f"{k}: {v}" for k, v in breakdown.items()),
            metadata={"steps": session.steps, "digest": session.digest, "truncated": session.truncated},
        )

    return score


def _call(name: str, words: str) -> str:
    """A call of the model, in the sample that runs."""
    store = inspect_util.store()
    action = _prompts(store).act(name, words)
    try:
        page = _prompts(store).call(_session(store), action)
    except ValueError as error:
        raise inspect_tool.ToolError(str(error)) from error
    _take(store, action)
    return page


def _take(store: Any, action: str) -> None:
    episode = store.get(EPISODE)
    store.set(EPISODE, {**episode, "actions": [*episode["actions"], action]})


@functools.lru_cache(maxsize=8)
def _open(**arguments: Any) -> Shop:
    """The shop of these arguments, which stays open between the calls of tools."""
    return Shop(**arguments)


def _session(store: Any) -> Session:
    """The session of a sample, after its actions."""
    episode = store.get(EPISODE)
    if episode is None:
        raise RuntimeError("the sample has no episode; the task's set-up is `webshop.inspect_task.open_shop`")
    session = Session(_open(**episode["shop"]), episode["goal"], max_steps=episode["max_steps"])
    for action in episode["actions"]:
        session.step(action)
    return session


def _prompts(store: Any) -> ToolCalls:
    return ToolCalls(store.get(EPISODE)["results_shown"])
