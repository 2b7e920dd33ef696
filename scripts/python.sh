#!/usr/bin/env bash
# Builds the Python package in a fresh virtual environment, checks its types, runs its tests and executes the notebook. By hand:
# it compiles the whole program. The argument is a profile of cargo, by default `release`, which is what users get; `dev` is
# compiled sooner.
set -euo pipefail
cd "$(dirname "$0")/../python"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
bin="$work/env/bin"
"$bin/pip" install --quiet --requirement requirements-test.txt
"$bin/maturin" build --quiet --profile "${1:-release}" --interpreter "$bin/python" --out "$work/wheel"
ls -lh "$work/wheel"
"$bin/pip" install --quiet --no-deps "$work"/wheel/*.whl ./drop-in

# Away from the sources, so that the installed package is meant.
mkdir -p "$work/docs/guide"
cp ../docs/guide/python.md "$work/docs/guide/"
cp -r tests pyproject.toml ../examples/tour.ipynb "$work/"
cd "$work"
"$bin/python" -m mypy --strict -p webshop
"$bin/pyright" --pythonpath "$bin/python" env/lib/python3*/site-packages/webshop
"$bin/python" -m pytest -q tests
"$bin/webshop" --version
"$bin/python" -m ipykernel install --prefix "$work/env" >/dev/null
"$bin/jupyter" nbconvert --to html --execute tour.ipynb --output-dir "$work"
