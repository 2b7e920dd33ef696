"""verifiers' `openenv` task set: its evaluation, unchanged, of a model that acts out the recorded episodes.

The model is an endpoint of OpenAI's form. It keeps nothing: the first message of a conversation names the instruction,
and the number of its own messages the turn. A trace says what the task set saw and what it adds up as reward.
"""

import json
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import shop

# The first ones, of the oracle, by instruction. Each starts a program of its own, which takes seconds.
EPISODES = {episode.instruction: episode for episode in shop.episodes()[:4]}


class Model(BaseHTTPRequestHandler):
    """Chat completions: the recorded action of the turn, as raw text."""

    def do_POST(self):
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        seen = [json.loads(message["content"])["observation"] for message in messages if message["role"] == "user"]
        episode = EPISODES[seen[0]["instruction"]]
        points = [episode.start, *(point for _, point in episode.turns)]
        for observation, point in zip(seen, points, strict=False):
            point.check(observation["text"], observation["available_actions"], None, None)
        message = {"role": "assistant", "content": episode.turns[len(seen) - 1][0]}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "c", "object": "chat.completion", "created": 0, "model": "recorded"}
        body = json.dumps({**reply, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def evaluate(openenv: str, model: str, folder: str) -> list[dict]:
    """Runs the evaluation; its episodes."""
    resets = [{"goal": episode.goal} for episode in EPISODES.values()]
    config = {
        "env": {
            "taskset": {"id": "openenv", "base_url": openenv, "resets": resets},
            # Without these the agent runs in a cloud, after a login.
            "player": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}},
        },
        "client": {"base_url": model, "api_key_var": "NO_KEY"},
        "model": "recorded",
        "serve": None,
        "rich": None,
        "push": False,
        "max_concurrent": 4,
        "output_dir": folder,
    }
    path = Path(folder, "config.json")
    path.write_text(json.dumps(config))
    subprocess.run(["eval", "@", path], check=True, stdout=sys.stderr, cwd=folder)
    lines = [line for path in Path(folder).rglob("traces.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    folder, server = tempfile.TemporaryDirectory(), ThreadingHTTPServer(("127.0.0.1", 0), Model)
    with shop.serve() as addresses, folder as folder, server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        played = evaluate(addresses["openenv"], f"http://127.0.0.1:{server.server_port}/v1", folder)
        server.shutdown()
    assert len(played) == len(EPISODES), f"{len(played)} of {len(EPISODES)} episodes"
    for episode in played:
        (trace,) = episode["traces"]
        assert episode["ok"] and not episode["errors"], episode["errors"]
        assert trace["rewards"]["openenv_reward"]["score"] == 1.0, trace["rewards"]
    shop.passed("verifiers", "task set openenv", f"{len(played)} episodes as recorded, each with reward 1")
