"""Goals and episodes as rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import play_oracle

import webshop
from webshop.export import choose_goals, episode_rows, goal_rows


def test_goals_are_drawn_from_the_split(shop: webshop.Shop) -> None:
    test = shop.goals("test")
    _, drawn = choose_goals("100", shop, "test", "by-family", 20, {})
    assert len(set(drawn)) == 20 and set(drawn) < set(test)
    assert drawn[0] == shop.goal_for_seed("test", 0)
    assert choose_goals("100", shop, "test", "by-family", 5, {})[1] == drawn[:5]
    assert sorted(choose_goals("100", shop, "test", "by-family", len(test), {})[1]) == test
    assert choose_goals("100", shop, "test", "by-family", None, {})[1] == test
    for n in (0, len(test) + 1):
        with pytest.raises(ValueError, match=f"has {len(test)} goals; 1 to {len(test)} of them can be taken, not {n}"):
            choose_goals("100", shop, "test", "by-family", n, {})


def test_goals_are_rows(shop: webshop.Shop) -> None:
    rows = goal_rows(shop, "validation")
    assert [row["id"] for row in rows] == shop.goals("validation")
    for row in rows:
        assert {key: row[key] for key in shop.goal(row["id"])} == shop.goal(row["id"])  # type: ignore[literal-required]
        assert (row["split"], row["split_rule"], row["digest"]) == ("validation", "by-family", shop.fingerprint["goals"])
    assert json.loads(json.dumps(rows)) == rows


def test_episodes_are_rows(shop: webshop.Shop, tmp_path: Path) -> None:
    played = webshop.Episode.play(shop, 4, ["hello", *play_oracle(webshop.Session(shop, 4, max_steps=40))], max_steps=40)
    (row,) = episode_rows([played])
    assert (row["goal"], row["reward"], row["success"], row["terminated"]) == (4, 1.0, True, True)
    assert row["breakdown"] == played.breakdown
    assert len(row["actions"]) == len(row["completions"]) == len(row["noops"])
    assert row["noops"][0] == "malformed" and not any(row["noops"][1:])
    assert webshop.Episode.read(row["record"]) == played

    file = tmp_path / "random.jsonl"
    words = ["rollout", "--policy", "random", "--episodes", "5", "--out", str(file)]
    subprocess.run([sys.executable, "-m", "webshop", *words], check=True, capture_output=True)
    rows = list(episode_rows(file))
    assert [row["policy"] for row in rows] == ["random"] * 5
    assert [row["goal"] for row in rows] == [episode.goal for episode in webshop.episodes(file)]
    assert all(row["instruction"] == shop.goal(row["goal"])["instruction"] for row in rows)
    assert {tuple(row) for row in rows} == {tuple(episode) for episode in episode_rows([played])}
