#!/usr/bin/env bash
# Builds `webshop` with GPU support on a machine without GPU and without CUDA, as a small file to copy.
#
#   scripts/cuda-build.sh [FOLDER]      FOLDER [target/cuda] for the toolkit, the build and the result
#
# nvcc and the headers come from the PyPI wheels of CUDA 13.0 (about 250 MB). The program is linked with stub
# libraries of the driver and of cuBLAS; the real libraries are loaded on the machine with the GPU. The result
# is FOLDER/webshop, compressed as FOLDER/carry/webshop.gz. To run, it needs CUDA 13 and a Hopper GPU, but no
# Rust. If CUDA_HOME is set to an installed toolkit, nothing is downloaded. The pip of the interpreter PYTHON
# is used.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mkdir -p "${1:-target/cuda}" && cd "${1:-target/cuda}" && pwd)
limit_mib=64
: "${PYTHON:=python3}" "${CUDA_COMPUTE_CAP:=90}" "${CUDARC_CUDA_VERSION:=13000}"

# Downloads the wheels of one toolkit and unpacks them into the same folder, as they require.
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

# Builds a stub library that defines every function that cudarc may call from it. Each returns 100, the
# driver's code for "no device": without the real library the program reports that.
stand_in() { # arguments: soname, folder of the declarations in cudarc
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
