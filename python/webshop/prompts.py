"""Prompt formats of chats: what a model is shown of an episode, and which action its message is.

A `PromptFormat` begins a chat with the messages of a session's first page, reads an action out of a message of the model,
and answers it with the next page. Messages are dictionaries as in OpenAI's interface. Texts are those of the command line's
formats of the same name, byte for byte, so a model that learned in one of the adapters is evaluated by
`webshop rollout --prompt-format` on the prompts that it knows.

The module renders nothing for models with a chat template; that is the framework's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Protocol, get_args

from webshop._native import Session
from webshop._types import Message

__all__ = ["AgentgymReact", "Dialect", "PromptFormat", "ToolCalls", "prompt_format"]

Dialect = Literal["tool-call", "agentgym-react"]


class PromptFormat(Protocol):
    """How the pages of an episode become messages, and messages actions."""

    name: Dialect
    tools: list[dict[str, Any]]

    def begin(self, session: Session) -> list[Message]:
        """The messages before the model's first one, at the session's present page."""
        ...

    def action(self, message: Mapping[str, Any]) -> str:
        """The action of the model's message; one that means nothing if there is none in it."""
        ...

    def reply(self, session: Session, message: Mapping[str, Any]) -> list[Message]:
        """The messages after the model's, the first with the page that its action led to."""
        ...


class ToolCalls:
    """`tool-call`: the functions `search(query)` and `click(label)`; of several calls the first one counts.

    Args:
        results_shown: how many results of a page are shown, 1 to 10; None for all, as the command line shows them. The others
            can still be clicked, but a model cannot know of them.

    Raises:
        ValueError: if no result is to be shown.
    """

    name: Dialect = "tool-call"
    system = (
        "You shop online for somebody. Use the tools until what is wanted is bought: search for it, open products, choose "
        "their options, and finish by clicking `buy now`."
    )
    tools: list[dict[str, Any]]

    def __init__(self, results_shown: int | None = None) -> None:
        if results_shown is not None and not 1 <= results_shown <= 10:
            raise ValueError(f"`results_shown` is {results_shown}; a page of results shows 1 to 10")
        self.results_shown = results_shown
        self.tools = [
            _function("search", "Search the shop.", "query", "The words to search for."),
            _function("click", "Press what is written on the page.", "label", "A button, a product or an option."),
        ]

    def begin(self, session: Session) -> list[Message]:
        """The role and the tools' use, then the instruction and the page."""
        wanted = f"Wanted: {session.instruction}\n\n{self.page(session)}"
        return [{"role": "system", "content": self.system}, {"role": "user", "content": wanted}]

    def action(self, message: Mapping[str, Any]) -> str:
        """The first call as an action; the empty action if there is none, or one of another function or argument."""
        calls = message.get("tool_calls") or []
        if not calls:
            return ""
        function = calls[0]["function"]
        arguments = function["arguments"]
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                return ""
        argument = {"search": "query", "click": "label"}.get(function["name"])
        words = arguments.get(argument) if isinstance(arguments, dict) else None
        return self.act(function["name"], words) if isinstance(words, str) else ""

    def act(self, name: str, words: str) -> str:
        """A call as an action, which is one line."""
        return f"{name}[{words}]".replace("\n", " ")

    def call(self, session: Session, action: str) -> str:
        """Takes an action, for frameworks that call functions themselves. Returns the next page, or that the episode ended.

        Raises:
            ValueError: if it had ended before; the text is for the model.
        """
        if session.done:
            raise ValueError("the episode has ended; call no more functions")
        session.step(action)
        if session.terminated:
            return "The purchase is made. The episode has ended."
        page = self.page(session)
        return f"{page}No actions are left. The episode has ended.\n" if session.truncated else page

    def reply(self, session: Session, message: Mapping[str, Any]) -> list[Message]:
        """The page as the result of the first call, or as a user's message if there was none.

        Other calls get a result too, because servers refuse chats with calls that have none.
        """
        page = self.page(session)
        calls = message.get("tool_calls") or []
        if not calls:
            return [{"role": "user", "content": page}]
        results = [page] + ["Not called: of several calls the first one counts."] * (len(calls) - 1)
        return [
            {"role": "tool", "content": result, "tool_call_id": call["id"]} for call, result in zip(calls, results, strict=True)
        ]

    def page(self, session: Session) -> str:
        """Why the last action did nothing, the page, whether it has a search bar, and the labels to click."""
        text, available = session.text, session.available
        # The search button does nothing by itself, and an action is one line.
        labels = [label for label in available["clickables"] if label not in ("", "search") and "\n" not in label]
        if self.results_shown is not None:
            text, labels = self._first_results(session, text, labels)
        bar = "There is a search bar.\n" if available["has_search_bar"] else ""
        listed = f"Labels: {', '.join(labels)}\n" if labels else ""
        return f"{_noop_line(session)}{text}\n{bar}{listed}"

    def _first_results(self, session: Session, text: str, labels: list[str]) -> tuple[str, list[str]]:
        """The page and its labels without the results after the first ones; results end a page of results."""
        fields = json.loads(session.observe("json"))
        left_out = [item["id"] for item in fields.get("items", [])[self.results_shown :]]
        if left_out:
            text = text[: text.index(f" [SEP] {left_out[0]} [SEP] ")]
            hidden = {asin.lower() for asin in left_out}
            labels = [label for label in labels if label not in hidden]
        return text, labels


class AgentgymReact:
    """`agentgym-react`: pages and actions as texts, for models without function calls; the action is after `Action:`."""

    name: Dialect = "agentgym-react"
    rules = (
        "You are shopping online. Each message shows you a page of the shop; its parts are separated by [SEP]. Follow the "
        "instruction on it: find what is wanted, choose its options, and buy it.\n"
        "There are two kinds of actions: `search[words]`, where there is a search bar, and `click[text]` for what is written "
        "on a button, product or option of the page. What cannot be done is ignored.\n\n"
        "Answer in this form:\n\nThought:\nwhat you think\n\nAction:\nclick[something]"
    )
    acknowledgement = "Ok."
    tools: list[dict[str, Any]] = []

    def begin(self, session: Session) -> list[Message]:
        """The rules, the model's consent to them, and the page, which has the instruction."""
        return [
            {"role": "user", "content": self.rules},
            {"role": "assistant", "content": self.acknowledgement},
            {"role": "user", "content": self._page(session)},
        ]

    def action(self, message: Mapping[str, Any]) -> str:
        """The text after the last `Action:`; the whole text without that heading."""
        return str(message.get("content") or "").rpartition("Action:")[2].strip()

    def reply(self, session: Session, message: Mapping[str, Any]) -> list[Message]:
        """The page as a user's message."""
        return [{"role": "user", "content": self._page(session)}]

    def _page(self, session: Session) -> str:
        return f"{_noop_line(session)}{session.text}"


def prompt_format(dialect: Dialect, results_shown: int | None = None) -> PromptFormat:
    """The format with this name.

    Raises:
        ValueError: for another name, and if `results_shown` is given to a format that shows all results.
    """
    if dialect == "tool-call":
        return ToolCalls(results_shown)
    if dialect != "agentgym-react":
        raise ValueError(f"unknown dialect `{dialect}`; use one of {', '.join(get_args(Dialect))}")
    if results_shown is not None:
        raise ValueError(f"`{dialect}` shows all results; leave out `results_shown`")
    return AgentgymReact()


def _function(name: str, does: str, argument: str, holds: str) -> dict[str, Any]:
    properties = {argument: {"type": "string", "description": holds}}
    parameters = {"type": "object", "properties": properties, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": does, "parameters": parameters}}


def _noop_line(session: Session) -> str:
    return "" if session.noop is None else f"Nothing happened: {session.noop}.\n"
