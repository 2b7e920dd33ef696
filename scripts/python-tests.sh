#!/usr/bin/env bash
# Runs the Python package's tests, those of the guide's page among them, with an extension module that is built already: the argument,
# such as target/debug/lib_native.so of `cargo build --workspace --lib --tests`. Those on Ray take minutes and are left to python.sh, which
# tests the wheel.
set -euo pipefail
library=$(realpath "$1")
cd "$(dirname "$0")/../python"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
grep -E '^(gym|gymnasium|numpy|pytest)==' requirements-test.txt >"$work/requirements.txt"
"$work/env/bin/pip" install --quiet --disable-pip-version-check --requirement "$work/requirements.txt"

mkdir -p "$work/packages" "$work/docs/guide"
cp -r webshop drop-in/web_agent_site drop-in/webshop_minimal "$work/packages/"
cp "$library" "$work/packages/webshop/_native.abi3.so"
cp ../docs/guide/python.md "$work/docs/guide/"
cp -r tests pyproject.toml "$work/"
cd "$work"
PYTHONPATH="$work/packages" "$work/env/bin/python" -m pytest -q tests --ignore-glob='tests/test_ray*'
