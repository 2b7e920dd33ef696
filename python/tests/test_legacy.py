"""The original's text environment."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import command

import webshop
from webshop.legacy import SimServer, WebAgentTextEnv, parse_action


@pytest.fixture(scope="module")
def server() -> SimServer:
    return SimServer(num_products=100)


def test_values_have_the_shape_of_gym_0_23(server: SimServer) -> None:
    env = WebAgentTextEnv("text", server=server)
    observation, info = env.reset(session=3)
    assert info is None and env.session == "3"
    assert observation == env.observation == webshop.Session(server.shop, 3).text
    assert server.user_sessions["3"]["goal"] is server.goals[3]
    assert env.instruction_text == server.goals[3]["instruction_text"] == env.get_instruction_text()
    assert sorted(env.state) == ["html", "instruction_text", "url"]
    assert env.state["url"] == "http://127.0.0.1:3000/3"
    observation, reward, done, info = env.step("search[shoes]")
    assert (reward, done, info) == (0.0, False, None)
    assert env.state["url"] == "http://127.0.0.1:3000/search_results/3/shoes/1"
    available = env.get_available_actions()
    assert available["has_search_bar"] is False and "next >" in available["clickables"]


def test_goals_have_the_fields_of_the_original(server: SimServer) -> None:
    fields = "asin attributes category goal_options instruction_text name price_upper product_category query weight"
    assert set(fields.split()) <= set(server.goals[0])
    assert len(server.goals) == server.shop.n_goals == len(server.weights) == len(server.cum_weights) - 1
    assert all(goal["id"] == number for number, goal in enumerate(server.goals))
    assert isinstance(server.goals[0]["goal_options"], dict)
    human = SimServer(num_products=100, human_goals=1)
    assert isinstance(human.goals[0]["goal_options"], list)


def test_the_best_purchase_earns_what_is_explained(server: SimServer) -> None:
    env = WebAgentTextEnv("text_rich", server=server)
    n_full = 0
    for number in range(20):
        env.reset(session=number)
        best = server.shop.best_purchase(number)
        env.step(f"search[{server.shop.goal(number)['title']}]")
        while best["asin"].lower() not in env.get_available_actions()["clickables"]:
            env.step("click[next >]")
        for label in [best["asin"], *best["clicks"]]:
            assert env.step(f"click[{label}]")[1:3] == (0.0, False)
        _, reward, done, _ = env.step("click[buy now]")
        explained = server.shop.explain(number, best["asin"], best["options"])["reward"]
        assert (reward, done) == (explained, True)
        n_full += reward == 1.0
        assert server.user_sessions[str(number)]["done"] is True
        server.user_sessions.clear()
    assert n_full > 15, "under the original's rules some goals cannot be met"


def test_drawn_sessions_follow_the_originals_generator() -> None:
    server = SimServer(num_products=100)
    env = WebAgentTextEnv(server=server)
    draws = random.Random(233)
    draws.shuffle(list(range(len(server.goals))))
    name = "".join(draws.choices("abcdefghijklmnopqrstuvwxyz", k=10))
    assert env.session == name
    again = WebAgentTextEnv(num_products=100)
    assert (again.session, again.instruction_text) == (name, env.instruction_text)
    env.reset()
    assert name not in server.user_sessions, "nothing finds a drawn name again"
    assert WebAgentTextEnv(num_products=100, seed=5).session != name


def test_named_sessions_keep_their_goal(server: SimServer) -> None:
    env = WebAgentTextEnv(server=server, session_prefix="worker-")
    env.reset(session="a")
    text = env.instruction_text
    env.reset(session=7)
    other = WebAgentTextEnv(server=server)
    other.reset(session="worker-a")
    assert other.instruction_text == text and env.session == "worker-7"
    env.reset(session=1, instruction_text="buy a lamp")
    assert env.instruction_text == env.state["instruction_text"] == "buy a lamp"


def test_goals_are_filtered_and_limited() -> None:
    cheap = SimServer(num_products=100, filter_goals=lambda _, goal: goal["price_upper"] < 40)
    assert 0 < len(cheap.goals) < cheap.shop.n_goals
    env = WebAgentTextEnv(server=cheap)
    env.reset(session=0)
    assert env.instruction_text == cheap.goals[0]["instruction_text"]
    assert len({goal["id"] for goal in SimServer(num_products=100, limit_goals=10).goals}) == 10


def test_earlier_observations_come_first(server: SimServer) -> None:
    env = WebAgentTextEnv("url", server=server, num_prev_obs=1, num_prev_actions=1)
    start, _ = env.reset(session=2)
    text, *_ = env.step("search[a]")
    assert text == f"{start} [SEP] search[a] [SEP] {env.observation}"


def test_subclasses_may_return_what_they_like(server: SimServer) -> None:
    class Ragen(WebAgentTextEnv):
        def reset(self, seed: int | None = None, session: Any = None, instruction_text: str | None = None) -> str:
            observation, _ = WebAgentTextEnv.reset(self, session, instruction_text)
            return f"page: {observation}"

        def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
            before = self.get_available_actions()
            observation, reward, done, _ = WebAgentTextEnv.step(self, action)
            return observation, reward, done, {"was_valid": action in before}

        def get_available_actions(self) -> list[str]:
            available = WebAgentTextEnv.get_available_actions(self)
            return [*(["search[...]"] if available["has_search_bar"] else []), *available["clickables"]]

    env = Ragen("text", server=server)
    assert env.reset(session=4).startswith("page: WebShop")
    assert env.step("search[...]")[3] == {"was_valid": True}
    assert "search[...]" not in env.get_available_actions()


def test_actions_are_parsed_as_the_original_does() -> None:
    assert parse_action("search[red [warm] lamp]") == ("search[red ", "warm] lamp")
    assert parse_action("hello") == ("hello", None)


def test_faults_are_named(server: SimServer, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no embedded catalog has 7 products"):
        WebAgentTextEnv(num_products=7)
    with pytest.raises(ValueError, match="does not exist; leave out"):
        WebAgentTextEnv(file_path=tmp_path / "items_shuffle.json")
    with pytest.raises(TypeError, match="no keyword `humans`"):
        WebAgentTextEnv(server=server, humans=True)
    with pytest.raises(ValueError, match="there is no goal 99999"):
        WebAgentTextEnv(server=server).reset(session=99999)


def test_the_file_that_is_named_is_read(tmp_path: Path) -> None:
    command("catalog", "generate", "--products", 40, "--out", tmp_path / "shop")
    whole = tmp_path / "shop" / "items_shuffle.json"
    short = whole.with_name("items_shuffle_1000.json")
    short.write_text(json.dumps(json.loads(whole.read_text())[:10]))
    for file, n_products in ((whole, 40), (short, 10)):
        assert WebAgentTextEnv(file_path=file).server.shop.n_products == n_products
    other = whole.rename(whole.with_name("mine.json"))
    with pytest.raises(ValueError, match="rename it, or give its folder"):
        WebAgentTextEnv(file_path=other)
