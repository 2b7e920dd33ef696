"""Steps per second from Python, texts and lists of actions included.

    python python/benches/steps.py [--seconds 2] [--threads 0]

Every episode searches, opens the first result, reads its description, goes back and buys; episodes begin with drawn goals.
Resets are part of the time and no steps. `wall` counts steps by time that passes, `cpu` by processor time of the process,
which does not depend on other programs.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import gymnasium
from gymnasium.vector import AutoresetMode

import webshop


def episode_of_one(env: gymnasium.Env[str, str]) -> int:
    env.reset()
    env.step("search[warm shoes]")
    _, _, _, _, info = env.step("click[next >]")
    asin = info["available_actions"]["clickables"][-1]
    for label in (asin, "description", "< prev", "buy now"):
        *_, terminated, _, _ = env.step(f"click[{label}]")
    assert terminated
    return 6


def episode_of_all(envs: webshop.WebShopVectorEnv) -> int:
    n = envs.num_envs
    envs.reset()
    envs.step(["search[warm shoes]"] * n)
    *_, infos = envs.step(["click[next >]"] * n)
    asins = [labels[-1] for labels in infos["available_actions"]["clickables"]]
    envs.step([f"click[{asin}]" for asin in asins])
    for label in ("description", "< prev", "buy now"):
        _, _, terminated, _, _ = envs.step([f"click[{label}]"] * n)
    assert terminated.all()
    return 6 * n


def measure(name: str, seconds: float, episode: Callable[[], int]) -> None:
    episode()
    n_steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        n_steps += episode()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:<24} {n_steps / wall:>9,.0f} steps/s wall {n_steps / cpu:>9,.0f} steps/s cpu")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    shop = webshop.Shop("1000")
    one = webshop.WebShopEnv(shop=shop)
    measure("WebShopEnv", arguments.seconds, lambda: episode_of_one(one))
    for n in (64, 256):
        envs = webshop.WebShopVectorEnv(
            n, shop=shop, autoreset_mode=AutoresetMode.DISABLED, threads=arguments.threads
        )
        measure(f"WebShopVectorEnv({n})", arguments.seconds, lambda: episode_of_all(envs))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = webshop.WebShopVectorEnv(1000, shop=shop, autoreset_mode=AutoresetMode.DISABLED)
    episode_of_all(many)
    added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"1000 episodes more       {added / 1024:>9,.1f} MiB, {before / 1024:,.1f} MiB before")


if __name__ == "__main__":
    main()
