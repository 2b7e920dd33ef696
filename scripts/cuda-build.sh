#!/usr/bin/env bash
# Builds `webshop` with its GPU code on a machine that has neither a GPU nor CUDA, small enough to be carried.
#
#   scripts/cuda-build.sh [FOLDER]      FOLDER [target/cuda] takes the toolkit, the build and the result
#
# nvcc and the headers come from PyPI's wheels of CUDA 13.0 (about 250 MB). The driver's and cuBLAS's libraries are only
# named here, by stand-ins: the real ones of the GPU's machine are bound when the program starts.
# The result, FOLDER/webshop, compressed as FOLDER/carry/webshop.gz, needs CUDA 13 and a Hopper GPU there, and no Rust.
# With CUDA_HOME set to a toolkit of one's own nothing is fetched. PYTHON names the interpreter whose pip is used.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mkdir -p "${1:-target/cuda}" && cd "${1:-target/cuda}" && pwd)
limit_mib=64
: "${PYTHON:=python3}" "${CUDA_COMPUTE_CAP:=90}" "${CUDARC_CUDA_VERSION:=13000}"

# The wheels of one toolkit, laid over each other as they expect to be.
fetch_toolkit() {
  local wheels="$folder/wheels"
  mkdir -p "$wheels"
  local wanted=(nvidia-{cuda-nvcc,nvvm,cuda-crt,cuda-cccl,cuda-runtime,cuda-nvrtc}'==13.0.*' 'nvidia-curand==10.4.0.*')
  "$PYTHON" -m pip download --quiet --no-deps --only-binary=:all: --dest "$wheels" "${wanted[@]}"
  local wheel
  for wheel in "$wheels"/*.whl; do
    "$PYTHON" -m zipfile -e "$wheel" "$folder/toolkit"
  done
  chmod +x "$CUDA_HOME"/bin/* "$CUDA_HOME"/nvvm/bin/*
}

# A shared library that defines every function cudarc may call from it. Each answers 100, which the driver means as "no
# device": where nothing better is found, the program says so.
stand_in() { # soname, folder of cudarc's declarations
  local source="$folder/$1.c" name="${1%%.so*}.so"
  grep -rhoE '^ +fn cu[A-Za-z0-9_]+' "$cudarc/src/$2/sys" | sed 's/.*fn \(.*\)/int \1(void) { return 100; }/' | sort -u >"$source"
  cc -shared -fPIC -w -Wl,-soname,"$1" -o "$CUDA_HOME/lib64/$1" "$source"
  ln -sf "$1" "$CUDA_HOME/lib64/$name"
}

if [ -z "${CUDA_HOME:-}" ]; then
  export CUDA_HOME="$folder/toolkit/nvidia/cu13"
  [ -x "$CUDA_HOME/bin/nvcc" ] || fetch_toolkit
  cargo fetch --quiet
  cudarc=$(dirname "$(cargo metadata --format-version 1 --features cuda |
    "$PYTHON" -c 'import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "cudarc"))')")
  ln -sfn lib "$CUDA_HOME/lib64"
  stand_in libcuda.so.1 driver
  stand_in libcublas.so.13 cublas
  stand_in libcublasLt.so.13 cublaslt
  for library in libnvrtc libcudart libcurand; do
    [ -e "$CUDA_HOME/lib64/$library.so" ] || ln -s "$(basename "$CUDA_HOME"/lib64/$library.so.*[0-9])" "$CUDA_HOME/lib64/$library.so"
  done
fi

export CUDA_COMPUTE_CAP CUDARC_CUDA_VERSION NVCC="$CUDA_HOME/bin/nvcc" PATH="$CUDA_HOME/bin:$PATH"
export CARGO_TARGET_DIR="$folder/build"
cargo build --release --features cuda

rm -rf "$folder/carry" && mkdir "$folder/carry"
strip -o "$folder/webshop" "$CARGO_TARGET_DIR/release/webshop"
gzip -9 --stdout "$folder/webshop" >"$folder/carry/webshop.gz"
size=$(du -sm "$folder/carry" | cut -f1)
echo "$folder/webshop: $(du -sm "$folder/webshop" | cut -f1) MiB; $folder/carry: $size MiB of $limit_mib"
[ "$size" -le "$limit_mib" ]
