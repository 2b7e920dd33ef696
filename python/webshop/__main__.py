"""The command line: `python -m webshop`, or `webshop`."""

from __future__ import annotations

import signal
import sys

from webshop._native import main as native_main


def main() -> None:
    """Runs the command line with the arguments of the process, and ends it with the exit code."""
    # Python's own handler would wait until the command returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(native_main(["webshop", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
