#!/usr/bin/env bash
# Checks and measures a GPU in under ten minutes and writes docs/results/h200.md.
#
#   scripts/gpu-check.sh [OUT.md]        OUT.md [docs/results/h200.md]
#
# Uses the binary made by scripts/cuda-build.sh (WEBSHOP=FILE, or target/cuda/carry/webshop.gz). If there is
# none, it builds one with cargo and nvcc. If PYTHON has PyTorch and transformers, the same work is measured
# with them on the same GPU. FLAGS are passed to `webshop gpu-check`, TORCH_FLAGS to
# scripts/gpu_check_torch.py, SHAPES to both.
#
# `webshop gpu-check` is no longer a verb of the binary. With a binary without it, the part of webshop fails
# with exit code 2 and only the part of PyTorch is measured.
#
# A test of this script without a GPU:
#
#   SHAPES=tiny TORCH_FLAGS="--device cpu" \
#     FLAGS="--device cpu --batches 1,4 --context 64 --prompt 32 --train-sequences 2 --train-length 64" \
#     scripts/gpu-check.sh check.md
#
# Exit codes are those of `webshop gpu-check`: 0 all results equal, 1 a comparison differs, 2 a part failed.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:-docs/results/h200.md}
: "${PYTHON:=python3}" "${SHAPES:=0.5b,1.5b,3b}" "${FLAGS:=}" "${TORCH_FLAGS:=}" "${LIMIT_S:=330}" "${TORCH_LIMIT_S:=210}"
carried=target/cuda/carry/webshop.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "${WEBSHOP:-}" ]; then
  binary=$WEBSHOP
elif [ -e "$carried" ]; then
  binary=$work/webshop
  gzip --decompress --stdout "$carried" >"$binary" && chmod +x "$binary" || exit 2
else
  command -v cargo nvcc >/dev/null || { echo "no $carried, and no cargo with nvcc to build one" >&2; exit 2; }
  cargo build --release --features cuda || exit 2
  binary=target/release/webshop
fi

# A copied binary searches the CUDA libraries in the folders of toolkits and of Python packages.
libraries=$(ls -d /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/local/nvidia/lib64 2>/dev/null | paste -sd:)
packaged=$("$PYTHON" -c 'import glob, os, site
roots = site.getsitepackages() + [site.getusersitepackages()]
print(":".join(sorted({d for root in roots for d in glob.glob(os.path.join(root, "nvidia", "*", "lib"))})))' 2>/dev/null)
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries:$packaged"

began=$SECONDS
page=$work/page.md
{
  echo "# The same work on one GPU, by webshop and by PyTorch"
  echo
  echo "Made by \`scripts/gpu-check.sh\` on $(date -u +%Y-%m-%d), commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)."
  echo
  echo '```text'
  nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
  lscpu 2>/dev/null | sed -n 's/^Model name: *//p'
  echo '```'
  echo
  echo "# webshop"
  echo
} >"$page"

# shellcheck disable=SC2086 # flags are words
timeout "$LIMIT_S" "$binary" gpu-check --shapes "$SHAPES" $FLAGS >>"$page"
code=$?
[ "$code" -eq 124 ] && printf '\nStopped after %s s.\n' "$LIMIT_S" >>"$page"

printf '\n# PyTorch and transformers\n\n' >>"$page"
if "$PYTHON" -c 'import torch, transformers' 2>/dev/null; then
  # shellcheck disable=SC2086
  timeout "$TORCH_LIMIT_S" "$PYTHON" -u scripts/gpu_check_torch.py --shapes "$SHAPES" $TORCH_FLAGS >>"$page"
  torch_code=$?
  [ "$torch_code" -ne 0 ] && printf '\nEnded with exit code %s (124: stopped after %s s).\n' "$torch_code" "$TORCH_LIMIT_S" >>"$page"
else
  echo "Not installed where this ran: nothing to compare with." >>"$page"
fi
printf '\nIn all %s s.\n' "$((SECONDS - began))" >>"$page"

mkdir -p "$(dirname "$out")"
cp "$page" "$out"
cat "$out"
exit "$code"
