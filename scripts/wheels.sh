#!/usr/bin/env bash
# Builds the wheels for Linux, x86-64 and arm64, on a machine of either kind, and prints their sizes: scripts/wheels.sh [FOLDER], by
# default target/wheels. The C compiler and linker is zig, which PyPI has, so that they run with glibc 2.28 and later. Those of macOS are built
# there: .github/workflows/release.yml.
set -euo pipefail
mkdir -p "${1:-"$(dirname "$0")/../target/wheels"}"
out=$(realpath "${1:-"$(dirname "$0")/../target/wheels"}")
cd "$(dirname "$0")/../python"

# At a fixed place, since what is compiled depends on the compiler's path.
tools="$PWD/../target/wheel-tools"
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check "$(grep '^maturin==' requirements-test.txt)" ziglang==0.15.2
export PATH="$tools/bin:$PATH"

for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
  rustup target add "$target"
  maturin build --release --locked --quiet --zig --target "$target" --compatibility manylinux_2_28 --out "$out"
done
ls -lh "$out"
