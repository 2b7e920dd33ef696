"""The Gymnasium environment."""

from __future__ import annotations

import pickle
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import webshop

IDS = ["WebShop/Text-v0", "WebShop/TextRich-v0", "WebShop/Html-v0", "WebShop/Compact-v0"]


@pytest.mark.parametrize("name", IDS)
def test_the_checker_has_nothing_to_say(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name).unwrapped)


def test_a_seed_draws_the_goal_of_the_split(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop, split="test")
    text, info = env.reset(seed=9)
    assert info["goal"] == webshop.goal_for_seed(shop, "test", 9)
    assert text == webshop.Session(shop, info["goal"]).text
    later = [env.reset()[1]["goal"] for _ in range(5)]
    env.reset(seed=9)
    assert [env.reset()[1]["goal"] for _ in range(5)] == later
    assert set(later) <= set(shop.goals("test"))


def test_a_seed_may_have_more_than_64_bits(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop, split="test")
    env.reset()
    seed = env.np_random_seed
    drawn = [env.reset(seed=seed)[1]["goal"], *(env.reset()[1]["goal"] for _ in range(3))]
    assert [env.reset(seed=seed)[1]["goal"], *(env.reset()[1]["goal"] for _ in range(3))] == drawn
    assert env.reset(seed=2**64 + 9)[1]["goal"] == webshop.goal_for_seed(shop, "test", 9)
    lanes = webshop.WebShopVectorEnv(2, shop=shop, split="test")
    last, first = (webshop.goal_for_seed(shop, "test", seed) for seed in (2**64 - 1, 0))
    assert list(lanes.reset(seed=2**64 - 1)[1]["goal"]) == [last, first]


def test_values_are_those_of_python(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop)
    _, first = env.reset(options={"goal": 4})
    text, reward, terminated, truncated, info = env.step("search[shoes]")
    assert (type(text), type(reward), type(terminated), type(truncated)) == (str, float, bool, bool)
    assert info["available_actions"] is not first["available_actions"]
    assert (first["step"], info["step"], info["goal"], info["noop"]) == (0, 1, 4, None)


def test_snapshots_forks_and_pickles(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop, render_mode="ansi")
    env.reset(seed=1)
    env.step("search[shoes]")
    snapshot = env.snapshot()
    (fork,) = env.fork(1)
    assert fork.action_space is not env.action_space
    expected = env.step("click[next >]")
    assert fork.step("click[next >]") == expected
    text, info = pickle.loads(pickle.dumps(env)).restore(snapshot)
    assert info["step"] == 1 and text != expected[0]
    assert fork.render() == fork.session.text_rich


def test_faults_are_named(shop: webshop.Shop) -> None:
    env = webshop.WebShopEnv(shop=shop)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step("search[x]")
    with pytest.raises(ValueError, match="no goal 99999"):
        env.reset(options={"goal": 99999})
    with pytest.raises(ValueError, match="options are one of"):
        env.reset(options={"gaol": 1})
    env.reset(seed=0)
    with pytest.raises(TypeError):
        env.step(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown observation"):
        webshop.WebShopEnv(observation="pixels")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not both"):
        webshop.WebShopEnv("1000", shop=shop)


def test_processes_step_side_by_side() -> None:
    envs = gymnasium.make_vec(IDS[0], num_envs=2, vectorization_mode="async", vector_kwargs={"shared_memory": False})
    texts, infos = envs.reset(seed=[3, 4])
    assert [len(text) > 20 for text in texts] == [True, True]
    texts, rewards, *_ = envs.step(("search[shoes]", "search[boots]"))
    assert texts[0] != texts[1] and list(rewards) == [0.0, 0.0]
    envs.close()


def test_an_environment_without_steps_is_refused(shop: webshop.Shop) -> None:
    with pytest.raises(ValueError, match="max_steps must be at least 1, not 0"):
        webshop.WebShopEnv(shop=shop, max_steps=0)
    env = webshop.WebShopEnv(shop=shop)
    with pytest.raises(TypeError):
        env.reset(options={"goal": 3.7})
