"""The programs of the guide run."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_programs_of_the_guide_run_one_after_another() -> None:
    folders = Path(__file__).resolve().parents
    guide = next(folder / "docs/guide/python.md" for folder in folders if (folder / "docs/guide/python.md").exists())
    programs = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) >= 3
    names: dict[str, object] = {}
    for program in programs:
        exec(compile(program, str(guide), "exec"), names)
