"""The native vector environment is as many single environments."""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import webshop

N_ENVS = 5
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def assert_equal(here: Any, there: Any, place: str) -> None:
    """Infos are equal: the same keys, shapes, types and values."""
    if isinstance(there, dict):
        assert isinstance(here, dict) and sorted(here) == sorted(there), place
        for key in there:
            assert_equal(here[key], there[key], f"{place}/{key}")
    elif isinstance(there, np.ndarray):
        assert (here.dtype, here.shape) == (there.dtype, there.shape), place
        assert here.tolist() == there.tolist(), place
    else:
        assert here == there, place


def choose(clickables: list[str], has_search_bar: bool, draws: np.random.Generator) -> str:
    if has_search_bar:
        return str(draws.choice(["search[shoes]", "search[warm lamp]", "look around"]))
    wanted = "buy now" if "buy now" in clickables and draws.random() < 0.5 else str(draws.choice(clickables))
    return f"click[{wanted}]"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 3])
def test_native_lanes_are_single_environments(shop: webshop.Shop, mode: AutoresetMode, threads: int) -> None:
    def single() -> webshop.WebShopEnv:
        return webshop.WebShopEnv(shop=shop, max_steps=6)

    one = SyncVectorEnv([single] * N_ENVS, autoreset_mode=mode)
    two = webshop.WebShopVectorEnv(N_ENVS, shop=shop, max_steps=6, autoreset_mode=mode, threads=threads)
    (texts, infos), (native_texts, native_infos) = one.reset(seed=7), two.reset(seed=7)
    assert native_texts == texts
    assert_equal(native_infos, infos, "reset")
    draws = np.random.default_rng(0)
    n_purchases = 0
    for step in range(60):
        known = infos["available_actions"]
        actions = tuple(
            choose(known["clickables"][lane], known["has_search_bar"][lane], draws)
            if known["_clickables"][lane] and (known["clickables"][lane] or known["has_search_bar"][lane])
            else "click[none]"
            for lane in range(N_ENVS)
        )
        texts, rewards, terminated, truncated, infos = one.step(actions)
        native = two.step(actions)
        assert native[0] == texts, step
        for here, there in zip(native[1:4], (rewards, terminated, truncated)):
            assert_equal(here, there, f"step {step}")
        assert_equal(native[4], infos, f"step {step}")
        n_purchases += int(terminated.sum())
        if mode is AutoresetMode.DISABLED and (over := terminated | truncated).any():
            seeds = [100 + step + lane for lane in range(N_ENVS)]
            texts, infos_again = one.reset(seed=seeds, options={"reset_mask": over})
            native_again = two.reset(seed=seeds, options={"reset_mask": over})
            assert native_again[0] == texts
            assert_equal(native_again[1], infos_again, f"reset after {step}")
            # The lanes that were not reset have their labels in the infos of the step.
            for name in ("has_search_bar", "clickables"):
                infos["available_actions"][name][over] = infos_again["available_actions"][name][over]
    assert n_purchases > 0, "some episodes ended by a purchase"


def test_make_vec_makes_the_native_one(shop: webshop.Shop) -> None:
    envs = gymnasium.make_vec("WebShop/Text-v0", num_envs=3, autoreset_mode=AutoresetMode.SAME_STEP)
    assert isinstance(envs, webshop.WebShopVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    texts, infos = envs.reset(seed=[3, 4, 5])
    assert texts in envs.observation_space
    assert [webshop.goal_for_seed(shop, "train", seed) for seed in (3, 4, 5)] == infos["goal"].tolist()
    texts, infos = envs.reset(options={"goals": [1, 2, 3]})
    assert infos["goal"].tolist() == [1, 2, 3]
    assert texts == tuple(webshop.Session(shop, goal).text for goal in (1, 2, 3))
    limited = gymnasium.make_vec("WebShop/Text-v0", num_envs=1, max_episode_steps=2)
    limited.reset(seed=0)
    assert [limited.step(["hello"])[3].tolist() for _ in range(2)] == [[False], [True]]
    envs.close()


def test_returned_arrays_are_the_callers_own(shop: webshop.Shop) -> None:
    envs = webshop.WebShopVectorEnv(2, shop=shop)
    envs.reset(seed=0)
    _, rewards, terminated, _, infos = envs.step(["search[a]", "search[b]"])
    rewards[:] = 7
    terminated[:] = True
    infos["goal"][:] = 9
    _, rewards, terminated, _, infos = envs.step(["search[a]", "search[b]"])
    assert rewards.tolist() == [0.0, 0.0] and not terminated.any() and 9 not in infos["goal"]


def test_faults_are_named(shop: webshop.Shop) -> None:
    envs = webshop.WebShopVectorEnv(2, shop=shop)
    with pytest.raises(RuntimeError, match="call reset"):
        envs.step(["a", "b"])
    envs.reset()
    with pytest.raises(ValueError, match="1 actions for 2 episodes"):
        envs.step(["a"])
    with pytest.raises(TypeError):
        envs.step(["a", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="3 goals for 2 episodes"):
        envs.reset(options={"goals": [1, 2, 3]})
    with pytest.raises(ValueError, match="no goal 99999"):
        envs.reset(options={"goals": [1, 99999]})
    with pytest.raises(TypeError, match="array of bool"):
        envs.reset(options={"reset_mask": [True, False]})
    with pytest.raises(ValueError, match="at least 1 episode"):
        webshop.WebShopVectorEnv(0, shop=shop)
    with pytest.raises(ValueError, match="unknown observation `pixels`"):
        webshop.WebShopVectorEnv(2, shop=shop, observation="pixels")  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_steps_on(shop: webshop.Shop) -> None:
    envs = webshop.WebShopVectorEnv(200, shop=shop, threads=2)
    envs.reset(seed=0)
    expected = envs.step(["search[shoes]"] * 200)[0]
    envs.reset(seed=0)
    child = os.fork()
    if child == 0:
        os._exit(0 if envs.step(["search[shoes]"] * 200)[0] == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert envs.step(["search[shoes]"] * 200)[0] == expected
