"""OpenEnv's clients: GenericEnvClient, MCPToolClient, and `openenv validate --url`."""

import json
import subprocess

from openenv import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

import shop

EPISODES = shop.episodes()


def generic(url: str):
    with GenericEnvClient(base_url=url).sync() as env:
        for episode in EPISODES:
            result = env.reset(goal=episode.goal, a_column_of_the_dataset=[1])
            assert result.reward is None and result.observation["instruction"] == episode.instruction
            seen = result.observation
            episode.start.check(seen["text"], seen["available_actions"], None, result.done)
            for action, point in episode.turns:
                result = env.step({"action": action})
                seen = result.observation
                point.check(seen["text"], seen["available_actions"], result.reward, result.done)
            state = env.state()
            assert (state["step_count"], state["goal"]) == (len(episode.turns), episode.goal), state
        # An error is the client's exception and leaves the connection open.
        with shop.raises(RuntimeError, "there is no goal `99999999`", "EXECUTION_ERROR"):
            env.reset(goal=shop.N_TOO_LARGE)
        with shop.raises(RuntimeError, "VALIDATION_ERROR"):
            env.reset(goal="three")
        with shop.raises(RuntimeError, "VALIDATION_ERROR"):
            env.step({"acton": "search[lamp]"})
        assert env.step({"action": "search[lamp]"}).done in (True, False)
    shop.passed("openenv", "GenericEnvClient", f"{len(EPISODES)} episodes as recorded, 3 errors")


def tools(url: str):
    with MCPToolClient(base_url=url).sync() as env:
        names = [tool.name for tool in env.list_tools()]
        assert names == ["search", "click", "view_page"], names
        for episode in EPISODES:
            env.reset(goal=episode.goal)
            seen = env.call_tool("view_page")
            episode.start.check(seen["text"], seen["available_actions"], seen["reward"], seen["done"])
            for action, point in episode.turns:
                name, arguments = shop.tool_call(action)
                seen = env.call_tool(name, **arguments)
                point.check(seen["text"], seen["available_actions"], seen["reward"], seen["done"])
        with shop.raises(RuntimeError, "there is no tool `reset`"):
            env.call_tool("reset")
    shop.passed("openenv", "MCPToolClient", f"{len(EPISODES)} episodes as recorded, an unknown tool refused")


def full():
    """A second session at a server for one is refused, and the client says so."""
    with shop.serve("--max-sessions", "1") as addresses:
        with GenericEnvClient(base_url=addresses["openenv"]).sync() as first:
            first.reset(goal=0)
            with shop.raises((RuntimeError, ConnectionError), "CAPACITY_REACHED"):
                with GenericEnvClient(base_url=addresses["openenv"]).sync() as second:
                    second.reset(goal=0)
    shop.passed("openenv", "GenericEnvClient", "a full server refuses with CAPACITY_REACHED")


def validate(url: str):
    command = ["openenv", "validate", "--json", "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["summary"]["passed_count"] == 6, done.stdout
    shop.passed("openenv", "openenv validate --url", f"{report['summary']['passed_count']} of 6 criteria")


if __name__ == "__main__":
    with shop.serve() as addresses:
        generic(addresses["openenv"])
        tools(addresses["openenv"])
        validate(addresses["openenv"])
    full()
