#!/usr/bin/env bash
# Everything a GPU must show, in one go and in under ten minutes, as docs/results/h200.md.
#
#   scripts/gpu-check.sh [OUT.md]        OUT.md [docs/results/h200.md]
#
# Takes the binary that scripts/cuda-build.sh made (WEBSHOP=…, or target/cuda/carry/webshop.gz); where there is none and
# cargo and nvcc are, it builds one. PyTorch and transformers do the same work on the same GPU if PYTHON has them.
# FLAGS go to `webshop gpu-check` and SHAPES to both sides:
#
#   SHAPES=tiny FLAGS="--device cpu --batches 1,4 --context 64 --prompt 32 --train-sequences 2 --train-length 64" \
#     TORCH_FLAGS="--device cpu" scripts/gpu-check.sh check.md        without a GPU, to prove the script itself
#
# Exit codes are those of `webshop gpu-check`: 0 all equal, 1 a comparison differs, 2 a part could not be made.
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

# A carried binary finds CUDA's libraries where toolkits and Python's packages put them.
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
