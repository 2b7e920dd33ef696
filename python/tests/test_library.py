"""The shop and its sessions."""

from __future__ import annotations

import html
import os
import pickle
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import command, play_oracle

import webshop


def test_oracle_episodes_earn_one(shop: webshop.Shop) -> None:
    goals = shop.goals("test")[:40]
    assert len(goals) == 40
    for goal in goals:
        session = webshop.Session(shop, goal, max_steps=40)
        play_oracle(session)
        assert (session.terminated, session.truncated, session.reward) == (True, False, 1.0), goal
        assert session.breakdown is not None
        assert session.breakdown["total"] == 1.0


def test_a_shop_pickles_as_its_arguments(shop: webshop.Shop) -> None:
    small = webshop.Shop(Path("100"), size=20, goals="human", seed=3)
    data = pickle.dumps(small)
    assert len(data) < 4096
    again = pickle.loads(data)
    assert again.fingerprint == small.fingerprint != shop.fingerprint
    assert (again.n_products, again.n_goals) == (20, small.n_goals)


def test_a_shop_does_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        command("catalog", "generate", "--products", 12, "--seed", number, "--out", "data")
    one = webshop.Shop("data")
    monkeypatch.chdir(tmp_path / "0")
    other = webshop.Shop("data")
    assert one.fingerprint != other.fingerprint
    assert pickle.loads(pickle.dumps(one)).fingerprint == one.fingerprint


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_computes_too() -> None:
    small = webshop.Shop(size=10)
    expected = small.validate()
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        opened = webshop.Shop(size=11).validate()
        os._exit(0 if small.validate() == expected and all(check["passed"] for check in opened) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_all_names_are_there() -> None:
    for name in webshop.__all__:
        assert getattr(webshop, name) is not None


def test_a_session_pickles_where_it_is(shop: webshop.Shop) -> None:
    session = webshop.Session(shop, 3, max_steps=7).step("search[shoes]")
    again = pickle.loads(pickle.dumps(session))
    assert (again.digest, again.text, again.max_steps) == (session.digest, session.text, 7)
    play_oracle(long := webshop.Session(shop, 3, max_steps=40))
    bought = pickle.loads(pickle.dumps(long))
    assert (bought.reward, bought.breakdown, bought.done) == (1.0, long.breakdown, True)


def test_snapshots_and_forks_go_their_own_way(shop: webshop.Shop) -> None:
    session = webshop.Session(shop, 5).step("search[shoes]")
    snapshot = session.snapshot()
    one, two = session.fork(2)
    one.step("click[next >]")
    assert two.digest == session.digest != one.digest
    assert webshop.Session.restore(shop, snapshot).step("click[next >]").text == one.text


def test_goals_of_seeds_are_those_of_the_split(shop: webshop.Shop) -> None:
    test = set(shop.goals("test"))
    drawn = {webshop.goal_for_seed(shop, "test", seed) for seed in range(50)}
    assert drawn <= test and len(drawn) > 20
    assert test.isdisjoint(shop.goals("train"))
    assert shop.goals("test", "by-product") != shop.goals("test")


def test_search_finds_products_best_first(shop: webshop.Shop) -> None:
    title = shop.goal(0)["title"]
    hits = webshop.search(shop, title, 5)
    assert hits[0]["title"] == title and len(hits) == 5
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_an_explanation_is_of_the_reward(shop: webshop.Shop) -> None:
    best = shop.best_purchase(0)
    full = webshop.explain(shop, 0, best["asin"], best["options"])
    assert full["reward"] == full["breakdown"]["total"] == 1.0
    assert all(met for _, met in full["attributes"])
    other = next(shop.goal(goal)["asin"] for goal in range(shop.n_goals) if shop.goal(goal)["asin"] != best["asin"])
    assert webshop.explain(shop, 0, other)["reward"] < 1.0


def test_jupyter_shows_the_page(shop: webshop.Shop) -> None:
    session = webshop.Session(shop, 3).step("search[shoes]")
    shown = re.fullmatch(r'<iframe srcdoc="([^"]*)" .*></iframe>', session._repr_html_(), re.DOTALL)
    assert shown is not None and html.unescape(shown[1]) == session.html


def test_steps_without_a_meaning_say_so(shop: webshop.Shop) -> None:
    session = webshop.Session(shop, max_steps=2).step("hello")
    assert session.noop == "not of the form `verb[argument]`"
    session.step("click[buy now]")
    assert session.noop == "nothing on the page carries that label"
    assert (session.truncated, session.done, session.terminated, session.steps) == (True, True, False, 2)
    assert session.step("search[x]").noop == "the episode has ended"
    # Half of a surrogate pair, as a model's JSON can have it.
    assert webshop.Session(shop).step("search[\ud83d lamp]").noop is None


def test_threads_share_a_shop(shop: webshop.Shop) -> None:
    def play(goal: int) -> float:
        session = webshop.Session(webshop.Shop(), goal, max_steps=40)
        play_oracle(session)
        return session.reward

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(play, shop.goals("test")[:32])) == [1.0] * 32


def test_faults_are_named(shop: webshop.Shop) -> None:
    last = shop.n_goals - 1
    for goal in (-1, last + 1):
        with pytest.raises(ValueError, match=f"no goal {goal}: the shop has goals 0 to {last}"):
            webshop.Session(shop, goal)
    with pytest.raises(ValueError, match="unknown split `tset`"):
        shop.goals("tset")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown compat `modern`"):
        webshop.Shop(compat="modern")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no-such-folder"):
        webshop.Shop("no-such-folder")
    with pytest.raises(ValueError, match="no product `B000`"):
        shop.explain(0, "B000")
    with pytest.raises(ValueError, match="has no option `flavour of the month`"):
        shop.explain(0, shop.goal(0)["asin"], {"flavour of the month": "x"})
    with pytest.raises(TypeError):
        webshop.Session(shop).step(3)  # type: ignore[arg-type]
    for max_steps in (0, -1):
        with pytest.raises(ValueError, match=f"`max_steps` is {max_steps}; it must be from 1"):
            webshop.Session(shop, max_steps=max_steps)
    with pytest.raises(ValueError, match="not a snapshot"):
        webshop.Session.restore(shop, b"x")
    with pytest.raises(ValueError, match="belongs to the shop"):
        webshop.Session.restore(webshop.Shop(seed=1), webshop.Session(shop).snapshot())


def test_the_original_rules_are_another_shop() -> None:
    original = webshop.Shop(compat="original", seed=42)
    assert original.fingerprint["rewards"].endswith("+original")
    with pytest.raises(ValueError, match="goals of one style"):
        webshop.Shop(compat="original", goals="both")
