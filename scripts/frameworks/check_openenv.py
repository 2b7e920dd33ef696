"""The typed client of `webshop.openenv`, against `webshop serve`."""

import json
import subprocess
import sys

import recorded

from webshop.openenv import ShopClient

if __name__ == "__main__":
    command = [sys.executable, "-m", "webshop", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        url = json.loads(server.stdout.readline())["openenv"]
        with ShopClient(base_url=url).sync() as env:
            for episode in recorded.episodes():
                result = env.reset(goal=episode.goal)
                assert (result.reward, result.done, result.observation.instruction) == (None, False, episode.instruction)
                for action in episode.actions:
                    result = env.step(action)
                assert (result.reward, result.observation.terminated) == (episode.reward, episode.terminated), episode
                state = env.state()
                assert (state.digest, state.goal, state.step_count) == (episode.digest, episode.goal, len(episode.actions))
            try:
                env.reset(goal=99999999)
            except RuntimeError as error:
                assert "there is no goal `99999999`" in str(error), error
            else:
                raise AssertionError("an unknown goal was reset to")
        server.terminate()
    recorded.passed("openenv", "ShopClient", f"{len(recorded.episodes())} episodes as recorded, an error")
