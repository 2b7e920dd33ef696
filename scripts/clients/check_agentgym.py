"""AgentGym's client, out of a checkout of its repository that `AGENTGYM` names.

Its package imports torch, transformers and openai for its trainers. The client uses none of them, so that they need not
be installed: empty modules stand in their places.
"""

import contextlib
import os
import sys
from unittest.mock import MagicMock

import shop

TRAINERS = ("torch", "torch.nn", "torch.nn.parallel", "transformers", "transformers.generation",
            "transformers.generation.utils", "openai", "jsonlines", "wandb", "trl", "accelerate", "vllm", "tqdm")
sys.modules.update((name, MagicMock()) for name in TRAINERS)
sys.path.insert(0, os.path.join(os.environ["AGENTGYM"], "agentenv"))

from agentenv.envs.webshop import WebshopEnvClient  # noqa: E402


def play(client: WebshopEnvClient, episode: shop.Episode):
    # The client overwrites the text of the reset by its own question for it.
    text, _ = client.reset(episode.goal)
    episode.start.check(text, client._get("available_actions"), None, None)
    for action, point in episode.turns:
        output = client.step(f"Thought:\nThis comes next.\n\nAction:\n{action}")
        point.check(output.state, client._get("available_actions"), output.reward, output.done)


if __name__ == "__main__":
    # The client prints every action.
    with shop.serve() as addresses, contextlib.redirect_stdout(sys.stderr):
        clients = [WebshopEnvClient(addresses["agentgym"], data_len=1000) for _ in range(2)]
        for number, episode in enumerate(shop.episodes()):
            play(clients[number % 2], episode)
        with shop.raises(AssertionError):
            clients[0].reset(shop.N_TOO_LARGE)
        for client in clients:
            client.close()
    print(f"AgentGym, WebshopEnvClient: {len(shop.episodes())} episodes as recorded in 2 environments, an error", flush=True)
