#!/usr/bin/env bash
# Checks and measures a GPU and writes docs/results/h200.md.
#
#   scripts/gpu-check.sh [OUT.md]        OUT.md [docs/results/h200.md]
#
# Runs the tests of the GPU code, whose kernels are emulated on the CPU, and the benchmark `gpu` of webshop-lm
# (agent/lm/benches/gpu) on the GPU. This takes cargo and nvcc. On a machine without them, pass the compiled
# benchmark as BENCH=FILE; the tests are then skipped. After scripts/cuda-build.sh, this compiles it without a
# GPU and prints its path:
#
#   export CUDA_HOME=$PWD/target/cuda/toolkit/nvidia/cu13 CUDA_COMPUTE_CAP=90 CUDARC_CUDA_VERSION=13000
#   NVCC=$CUDA_HOME/bin/nvcc PATH=$CUDA_HOME/bin:$PATH CARGO_TARGET_DIR=target/cuda/build \
#     cargo bench -p webshop-lm --features cuda --bench gpu --no-run
#
# If PYTHON has PyTorch and transformers, the same work is measured with them on the same GPU. SHAPES, BATCHES
# and PROMPT are passed to both programs, FLAGS to the benchmark (its options are in
# agent/lm/benches/gpu/options.rs), and TORCH_FLAGS to scripts/gpu_check_torch.py. LIMIT_S and TORCH_LIMIT_S
# are their time limits in seconds.
#
# A test of this script without a GPU and without CUDA:
#
#   DEVICE=cpu SHAPES=tiny BATCHES=1,4 PROMPT=32 TORCH_FLAGS="--train-sequences 2 --train-length 64" \
#     scripts/gpu-check.sh check.md
#
# Exit codes: 0 all tests pass and all results are equal, 1 a comparison differs, 2 a part failed, 124 the
# benchmark was stopped at its time limit.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:-docs/results/h200.md}
: "${PYTHON:=python3}" "${DEVICE:=cuda}" "${SHAPES:=0.5b,1.5b}" "${BATCHES:=1,16,64,256}" "${PROMPT:=512}"
: "${BENCH:=}" "${FLAGS:=}" "${TORCH_FLAGS:=}" "${LIMIT_S:=420}" "${TORCH_LIMIT_S:=210}"
features=(--features cuda)
[ "$DEVICE" = cpu ] && features=()

if [ -z "$BENCH" ]; then
  command -v cargo >/dev/null || { echo "cargo is not installed; pass the compiled benchmark as BENCH=FILE" >&2; exit 2; }
  if [ "$DEVICE" != cpu ] && ! command -v nvcc >/dev/null; then
    echo "nvcc is not installed; pass the compiled benchmark as BENCH=FILE" >&2
    exit 2
  fi
  cargo test -p webshop-lm "${features[@]}" --lib gpu || exit 2
  cargo bench -p webshop-lm "${features[@]}" --bench gpu --no-run || exit 2
  BENCH=$(cargo bench -p webshop-lm "${features[@]}" --bench gpu --no-run --message-format json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
fi

# A copied benchmark searches the CUDA libraries in the folders of toolkits and of Python packages.
libraries=$(ls -d /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/local/nvidia/lib64 2>/dev/null | paste -sd:)
packaged=$("$PYTHON" -c 'import glob, os, site
roots = site.getsitepackages() + [site.getusersitepackages()]
print(":".join(sorted({d for root in roots for d in glob.glob(os.path.join(root, "nvidia", "*", "lib"))})))' 2>/dev/null)
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries:$packaged"

start=$SECONDS
page=$(mktemp)
trap 'rm -f "$page"' EXIT
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
timeout "$LIMIT_S" "$BENCH" --device "$DEVICE" --shapes "$SHAPES" --batches "$BATCHES" --prompt "$PROMPT" $FLAGS >>"$page"
code=$?
[ "$code" -eq 124 ] && printf '\nStopped after %s s.\n' "$LIMIT_S" >>"$page"

printf '\n# PyTorch and transformers\n\n' >>"$page"
if "$PYTHON" -c 'import torch, transformers' 2>/dev/null; then
  # shellcheck disable=SC2086
  timeout "$TORCH_LIMIT_S" "$PYTHON" -u scripts/gpu_check_torch.py --device "$DEVICE" --shapes "$SHAPES" \
    --batches "$BATCHES" --prompt "$PROMPT" --context "$PROMPT" $TORCH_FLAGS >>"$page"
  torch_code=$?
  [ "$torch_code" -ne 0 ] && printf '\nEnded with exit code %s (124: stopped after %s s).\n' "$torch_code" "$TORCH_LIMIT_S" >>"$page"
else
  echo "Not installed on this machine, so not measured." >>"$page"
fi
printf '\nTotal time: %s s.\n' "$((SECONDS - start))" >>"$page"

mkdir -p "$(dirname "$out")"
cp "$page" "$out"
cat "$out"
exit "$code"
