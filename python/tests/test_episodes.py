"""Recorded episodes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from conftest import play_oracle

import webshop


def test_an_episode_is_played_recorded_and_replayed(shop: webshop.Shop, tmp_path: Path) -> None:
    actions = play_oracle(webshop.Session(shop, 4, max_steps=40))
    episode = webshop.Episode.play(shop, 4, [*actions, "search[after the end]"], max_steps=40)
    assert (episode.goal, episode.actions, episode.reward) == (4, actions, 1.0)
    assert (episode.terminated, episode.truncated) == (True, False)
    assert episode.breakdown is not None and episode.breakdown["total"] == 1.0
    assert episode.replay(shop) is None
    assert "reward 1.0000" in episode.transcript(shop)
    assert pickle.loads(pickle.dumps(episode)) == episode

    file = tmp_path / "episodes.jsonl"
    file.write_text(f"{episode.line}\n\n{episode.line}\n")
    assert list(webshop.episodes(file)) == [episode, episode]
    assert episode.fields["goal"] == 4


def test_a_changed_episode_differs_in_the_replay(shop: webshop.Shop) -> None:
    line = webshop.Episode.play(shop, 4, ["search[shoes]"]).line
    changed = webshop.Episode.read(line.replace("search[shoes]", "search[boots]"))
    difference = changed.replay(shop)
    assert difference is not None and difference.startswith("after turn 1, `search[boots]`")


def test_faults_are_named(shop: webshop.Shop) -> None:
    with pytest.raises(ValueError, match="not a recorded episode"):
        webshop.Episode.read("{}")
    episode = webshop.Episode.play(shop, 0, ["hello"])
    assert episode.actions == ["noop"]
    with pytest.raises(ValueError, match="was recorded with the goals"):
        episode.replay(webshop.Shop(seed=1))
    with pytest.raises(ValueError, match="was recorded with the goals"):
        episode.transcript(webshop.Shop(seed=1))


def test_a_line_that_is_no_episode_is_named(shop: webshop.Shop, tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    file.write_text(f"{webshop.Episode.play(shop, 0, []).line}\n{{\n")
    with pytest.raises(ValueError, match=r"episodes.jsonl`, line 2: not a recorded episode"):
        list(webshop.episodes(file))
