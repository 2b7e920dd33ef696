"""Reads the events file of a run with TensorBoard and compares it with `metrics.jsonl`, value by value.

    pip install tensorboard
    python scripts/read_tensorboard.py runs/apo-seed-0

A check for developers; no other program uses it. Prints the number of equal values, or the first difference,
and then exits with 1. Values are compared as 32-bit floats, the format of TensorBoard. Values of `perf/*`,
which are in the events and in `timings.jsonl`, are only counted.
"""

import json
import pathlib
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator


def main(run: pathlib.Path) -> int:
    events = EventAccumulator(str(run), size_guidance={SCALARS: 0})
    events.Reload()
    read = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    recorded: dict[str, list[tuple[int, float]]] = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        for tag, value in record.items():
            if tag not in ("step", "phase"):
                as_float = struct.unpack("f", struct.pack("f", value))[0]
                recorded.setdefault(tag, []).append((record["step"], as_float))
    for tag in sorted(recorded | {tag: [] for tag in read if not tag.startswith("perf/")}):
        if read.get(tag) != recorded.get(tag):
            print(f"`{tag}` differs: {read.get(tag)} in the events, {recorded.get(tag)} in metrics.jsonl")
            return 1
    n_perf = sum(len(values) for tag, values in read.items() if tag.startswith("perf/"))
    print(f"{sum(map(len, recorded.values()))} values of {len(recorded)} tags agree; {n_perf} of perf/*")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
