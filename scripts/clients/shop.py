"""The server under test, and the recorded episodes that each of its clients must see again.

`clients.sh` sets the variables `WEBSHOP_BIN`, the binary, and `WEBSHOP_EPISODES`, a file of `webshop rollout --out`.
An episode holds digests of the texts and actions that a local session shows. A `Point` is the expected state before
the first turn or after a turn; `Point.check` compares what a client shows there.
"""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from importlib.metadata import version

BIN = os.environ["WEBSHOP_BIN"]
N_TOO_LARGE = 99999999  # a goal that no catalog has


def digest(content: str) -> str:
    """The first 8 bytes of SHA-256, as episodes state them."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass
class Point:
    """What is expected at one point of an episode."""

    where: str
    digests: dict
    reward: float
    done: bool

    def check(self, text, actions, reward, done):
        """Compares what a client shows. `None` is for what the interface does not show."""
        assert digest(text) == self.digests["observation"], f"{self.where}: the text differs: {text!r}"
        if actions is not None:
            ordered = {name: actions[name] for name in ("has_search_bar", "clickables")}
            compact = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
            assert digest(compact) == self.digests["actions"], f"{self.where}: the actions differ: {compact}"
        assert reward in (None, self.reward), f"{self.where}: the reward is {reward}, not {self.reward}"
        assert done in (None, self.done), f"{self.where}: done is {done}, not {self.done}"


@dataclass
class Episode:
    """A recorded episode. `turns` has each action with the point after it."""

    goal: int
    instruction: str
    start: Point
    turns: list[tuple[str, Point]]


def episodes() -> list[Episode]:
    """The recorded episodes: the oracle's, each with reward 1, and those of a random policy."""
    with open(os.environ["WEBSHOP_EPISODES"], encoding="utf-8") as lines:
        return [_episode(json.loads(line)) for line in lines]


def _episode(record: dict) -> Episode:
    goal, policy, turns = record["goal"], record["policy"], record["turns"]
    assert policy != "oracle" or record["reward"] == 1.0, f"the oracle earned {record['reward']} for goal {goal}"
    points = []
    for number, turn in enumerate(turns, start=1):
        where = f"{policy}, goal {goal}, turn {number}, {turn['action']}"
        point = Point(where, turn["after"], turn["reward"], number == len(turns))
        points.append((turn["action"], point))
    start = Point(f"{policy}, goal {goal}, start", record["start"], 0.0, False)
    return Episode(goal, record["instruction"], start, points)


def tool_call(action: str, names=("query", "target")) -> tuple[str, dict]:
    """`search[…]` or `click[…]` as the name of a tool and its arguments."""
    name, argument = action.removesuffix("]").split("[", 1)
    return name, {names[0] if name == "search" else names[1]: argument}


@contextlib.contextmanager
def serve(*flags: str, port: int = 0):
    """A server on a port, 0 for a free one; yields its first line, the addresses. It must end with 0 when it is terminated."""
    command = [BIN, "serve", "--port", str(port), *flags]
    environment = {**os.environ, "RUST_LOG": "warn"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as server:
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait(timeout=10)
    assert code == 0, f"the server ended with {code}"


@contextlib.contextmanager
def raises(kind, *parts: str):
    """The block must raise `kind` with these parts in its message."""
    try:
        yield
    except kind as error:
        for part in parts:
            assert part in str(error), f"`{part}` is not in `{error}`"
    else:
        raise AssertionError(f"{kind} was not raised")


def passed(package: str, client: str, what: str):
    """Reports a client that passed."""
    print(f"{package} {version(package)}, {client}: {what}", flush=True)
