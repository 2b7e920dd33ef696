"""The prompt of the format `compact`."""

from __future__ import annotations

import pickle
import re

import gymnasium
import numpy as np
import pytest
from conftest import play_oracle

import webshop

GOAL = 3


def completions(shop: webshop.Shop, goal: int) -> list[str]:
    """What an agent writes that buys what earns the most."""
    session = webshop.Session(shop, goal, max_steps=40)
    written = []
    for action in play_oracle(webshop.Session(shop, goal, max_steps=40)):
        written.append(webshop.CompactPrompt.completion(session, action))
        session.step(action)
    return written


def test_an_episode_is_a_context_of_pages_and_completions(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop, observation="compact", max_steps=40)
    text, info = env.reset(options={"goal": GOAL})
    assert text == f" {info['instruction']}<|im_start|>"
    results, reward, *_ = env.step(completions(shop, GOAL)[0])
    assert re.findall(r"<\|\d+\|>", results) == [f"<|{k}|>" for k in range(1, 6)]
    assert re.fullmatch(r"(<\|\d\|> [^<]+ \$\d{3}){5}<\|im_start\|>", results)
    for completion in completions(shop, GOAL)[1:]:
        assert completion.endswith("<|im_end|>")
        text, reward, terminated, *_ = env.step(completion)
    assert (text, reward, terminated) == (" done<|im_start|>", 1.0, True)


def test_marks_and_thoughts_are_understood(shop: webshop.Shop) -> None:
    session = webshop.Session(shop, GOAL).step("search[coconut energy drink]")
    second = session.available["clickables"][3]
    assert webshop.CompactPrompt.action(session, "<think> the second </think> click[<|2|>]<|im_end|>") == f"click[{second}]"
    written = webshop.CompactPrompt.completion(session, f"click[{second}]", "the second")
    assert written == "<think> the second</think> click[<|2|>]<|im_end|>"
    assert webshop.CompactPrompt.action(session, "buy the second") == "noop"
    assert webshop.CompactPrompt.version.startswith("compact-v")


def test_what_was_shown_is_not_repeated(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop, observation="compact", results_shown=2)
    env.reset(options={"goal": GOAL})
    first = env.step("search[coconut energy drink]")[0]
    assert first.count("<|1|>") == first.count("<|2|>") == 1 and "<|3|>" not in first
    (fork,) = env.fork(1)
    again = pickle.loads(pickle.dumps(env))
    for one in (env, fork, again):
        assert "<|2|>" in one.step("click[<|2|>]")[0]
        assert one.step("click[< prev]")[0] == " back at the results<|im_start|>"
        assert one.step("click[<|1|>")[0] == " nothing happens<|im_start|>"
    assert env.reset(options={"goal": GOAL})[0] == again.reset(options={"goal": GOAL})[0]


def test_a_range_of_prices_is_shown_by_both_ends_if_wanted(shop: webshop.Shop) -> None:
    searches = {goal: f"search[{webshop.Session(shop, goal).instruction}]" for goal in shop.goals()}
    goal = next(goal for goal, search in searches.items() if " to $" in webshop.Session(shop, goal).step(search).text)
    shown = []
    for price_ranges in (False, True):
        env = webshop.WebShopEnv(shop=shop, observation="compact", results_shown=10, price_ranges=price_ranges)
        envs = webshop.WebShopVectorEnv(1, shop=shop, observation="compact", results_shown=10, price_ranges=price_ranges)
        env.reset(options={"goal": goal})
        envs.reset(options={"goals": [goal]})
        shown.append(env.step(searches[goal])[0])
        assert envs.step([searches[goal]])[0] == (shown[-1],)
    highest, both = shown
    assert highest != both
    assert highest == re.sub(r"\$\d{3} (?=\$\d{3})", "", both)


def test_a_page_of_details_is_shown_up_to_a_number_of_characters(shop: webshop.Shop) -> None:
    goal = shop.goals()[0]
    instruction = webshop.Session(shop, goal).instruction
    shown = {}
    for detail_chars in (2, 20, 400):
        keywords = {"shop": shop, "observation": "compact", "detail_chars": detail_chars}
        env, envs = webshop.WebShopEnv(**keywords), webshop.WebShopVectorEnv(1, **keywords)
        env.reset(options={"goal": goal})
        envs.reset(options={"goals": [goal]})
        for action in (f"search[{instruction}]", "click[<|1|>]", "click[features]"):
            text = env.step(action)[0]
            assert envs.step([action])[0] == (text,)
        shown[detail_chars] = text.removesuffix("<|im_start|>").removeprefix(" ")
    assert 20 < len(shown[400]) < 400
    # The first character of the page is a space.
    assert shown[20] == shown[400][:19].rstrip() and shown[2] == shown[400][0]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_lanes_show_what_single_environments_show(shop: webshop.Shop, mode: str) -> None:
    goals = shop.goals("test")[:4]
    written = [completions(shop, goal) for goal in goals]
    envs = webshop.WebShopVectorEnv(4, shop=shop, observation="compact", max_steps=9, autoreset_mode=mode)
    texts, _ = envs.reset(seed=0, options={"goals": goals})
    singles = [webshop.WebShopEnv(shop=shop, observation="compact", max_steps=9) for _ in goals]
    expected = [env.reset(options={"goal": goal})[0] for env, goal in zip(singles, goals)]
    over = np.zeros(4, bool)
    for step in range(8):
        assert [text for text, ended in zip(texts, over) if not ended] == [t for t, ended in zip(expected, over) if not ended]
        actions = [lane[step] if step < len(lane) else "noop" for lane in written]
        texts, _, terminated, truncated, _ = envs.step(actions)
        results = [env.step(action) for env, action in zip(singles, actions)]
        over |= terminated | truncated
        expected = [result[0] for result in results]
    assert over.all()
    if mode != "Disabled":
        return
    assert set(texts) == {" nothing happens<|im_start|>"}


def test_it_is_registered() -> None:
    env = gymnasium.make("WebShop/Compact-v0", results_shown=3)
    assert env.reset(seed=1)[0].endswith("<|im_start|>")
    with pytest.raises(ValueError, match="`results_shown` is 11; a page of results shows 1 to 10"):
        webshop.WebShopEnv(observation="compact", results_shown=11)
    with pytest.raises(ValueError, match="`detail_chars` is 0; of a page of details at least 1 character"):
        webshop.WebShopEnv(observation="compact", detail_chars=0)
