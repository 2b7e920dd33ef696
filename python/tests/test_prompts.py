"""Prompt formats: chats are those of `webshop convert`, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import command

import webshop
from webshop.prompts import Dialect, ToolCalls, prompt_format

N_EPISODES = 12


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recorded") / "episodes.jsonl"
    # The random policy also does what does nothing.
    command("rollout", "--policy", "random", "--split", "test", "--episodes", N_EPISODES, "--out", file)
    return file


@pytest.mark.parametrize("dialect", ["tool-call", "agentgym-react"])
def test_chats_are_those_of_convert(shop: webshop.Shop, recorded: Path, tmp_path: Path, dialect: Dialect) -> None:
    out = tmp_path / "chats.jsonl"
    command("convert", recorded, "--to", "messages", "--prompt-format", dialect, "--out", out)
    chats = [json.loads(line) for line in out.read_text().splitlines()]
    prompts = prompt_format(dialect)
    assert len(chats) == N_EPISODES
    for chat in chats:
        assert (chat.get("tools") or []) == prompts.tools
        session = webshop.Session(shop, chat["metadata"]["goal"], max_steps=chat["metadata"]["max_steps"])
        shown: list[Any] = list(prompts.begin(session))
        for message in chat["messages"][len(shown) :]:
            if message["role"] != "assistant":
                continue
            shown.append(message)
            session.step(prompts.action(message))
            if not session.done:
                shown += prompts.reply(session, message)
        assert shown == chat["messages"]
        assert session.done and session.reward == chat["metadata"]["total_reward"]


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ({"name": "search", "arguments": '{"query": "two\\nlines"}'}, "search[two lines]"),
        ({"name": "click", "arguments": {"label": "buy now"}}, "click[buy now]"),
        ({"name": "click", "arguments": {"query": "buy now"}}, ""),
        ({"name": "click", "arguments": {"label": 3}}, ""),
        ({"name": "buy", "arguments": {"label": "x"}}, ""),
        ({"name": "click", "arguments": "{"}, ""),
        ({"name": "click", "arguments": '{"label": ' + "[" * 100_000}, ""),
        ({"name": "click", "arguments": '{"label": ' + "1" * 5_000 + "}"}, ""),
        ({"name": "click", "arguments": '["buy now"]'}, ""),
    ],
)
def test_calls_are_read(call: dict[str, Any], action: str) -> None:
    other = {"function": {"name": "click", "arguments": {"label": "second"}}}
    assert ToolCalls().action({"content": "", "tool_calls": [{"function": call}, other]}) == action
    assert ToolCalls().action({"content": "click[buy now]"}) == ""


def test_every_call_gets_a_result(shop: webshop.Shop) -> None:
    session, prompts = webshop.Session(shop).step("search[shoes]"), ToolCalls()
    message = {"content": "", "tool_calls": [{"id": "a"}, {"id": "b"}]}
    page, other = prompts.reply(session, message)
    assert (page["tool_call_id"], page["content"]) == ("a", prompts.page(session))
    assert (other["tool_call_id"], other["content"][:11]) == ("b", "Not called:")


def test_texts_are_read(shop: webshop.Shop) -> None:
    react = prompt_format("agentgym-react")
    assert react.action({"content": "Thought:\nAction: no\n\nAction:\nclick[buy now]\n"}) == "click[buy now]"
    assert react.action({"content": "click[buy now]"}) == "click[buy now]"
    assert react.action({"content": None}) == ""
    session = webshop.Session(shop).step("")
    assert react.reply(session, {"content": ""})[0]["content"].startswith("Nothing happened: not of the form")


def test_fewer_results_are_shown(shop: webshop.Shop) -> None:
    session = webshop.Session(shop, 3).step("search[coconut energy drink]")
    results = [hit["asin"] for hit in shop.search("coconut energy drink")][:10]
    assert len(results) == 10
    whole, three = ToolCalls().page(session), ToolCalls(3).page(session)
    for number, asin in enumerate(results):
        assert asin in whole and asin.lower() in whole
        assert (asin in three, asin.lower() in three) == (number < 3, number < 3)
    assert three.split(" [SEP] " + results[2])[0] == whole.split(" [SEP] " + results[2])[0]
    assert ToolCalls(10).page(session) == whole
    # Other pages are whole, and a result that is not shown can be clicked.
    session.step(f"click[{results[9].lower()}]")
    assert session.noop is None and ToolCalls(3).page(session) == ToolCalls().page(session)


def test_calls_after_the_end_are_refused(shop: webshop.Shop) -> None:
    prompts, session = ToolCalls(), webshop.Session(shop, 3, max_steps=2)
    prompts.call(session, "search[coconut]")
    assert prompts.call(session, "click[nothing]").endswith("No actions are left. The episode has ended.\n")
    with pytest.raises(ValueError, match="the episode has ended"):
        prompts.call(session, "click[back to search]")


def test_faults_are_named() -> None:
    with pytest.raises(ValueError, match="unknown dialect `compact`; use one of tool-call, agentgym-react"):
        prompt_format("compact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave out `results_shown`"):
        prompt_format("agentgym-react", 3)
    with pytest.raises(ValueError, match="`results_shown` is 0; a page of results shows 1 to 10"):
        ToolCalls(0)
