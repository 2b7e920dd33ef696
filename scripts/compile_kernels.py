"""Compiles the CUDA kernels with nvrtc, as `webshop` does at run time, and prints their resources.

    python3 scripts/compile_kernels.py [TOOLKIT]

TOOLKIT [target/cuda/toolkit/nvidia/cu13, the folder made by scripts/cuda-build.sh] contains
`lib/libnvrtc.so.13`. Prints registers, spilled bytes and shared memory of every kernel on Hopper, for each
model size and number format. Exit code 1 if a kernel does not compile, or spills. Needs no GPU.
"""

import ctypes
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "agent/kernels/src/gpu"
# (model size, head size, query heads per key head)
SIZES = [("0.5B", 64, 7), ("1.5B", 128, 6), ("3B", 128, 8), ("tiny", 32, 2)]


def source():
    """The sources in the order in which the program concatenates them."""
    names = re.findall(r'include_str!\("(cuda/\w+\.cu)"\)', (KERNELS / "source.rs").read_text())
    return "".join((KERNELS / name).read_text() for name in names)


def compiled(nvrtc, text, definitions):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None)
    options = [b"--gpu-architecture=sm_90", b"--ptxas-options=-v", *(f"-D{d}".encode() for d in definitions)]
    code = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code == 0, log.value.decode()


def main():
    toolkit = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/cuda/toolkit/nvidia/cu13")
    for library in sorted((toolkit / "lib").glob("libnvrtc-builtins.so.*")):
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(toolkit / "lib/libnvrtc.so.13"))
    text, failed = source(), False
    print("| model | format | kernel | registers | spilled bytes | shared bytes |\n" + "| --- " * 6 + "|")
    for name, head_dim, group in SIZES:
        for is_bf16 in (0, 1):
            definitions = [f"REAL_IS_BF16={is_bf16}", f"HEAD_DIM={head_dim}", f"GROUP={group}"]
            is_good, log = compiled(nvrtc, text, definitions)
            if not is_good:
                print(log)
                failed = True
            for entry in log.split("Compiling entry function '")[1:]:
                kernel = entry.split("'")[0]
                registers = re.search(r"Used (\d+) registers", entry).group(1)
                spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill", entry))
                shared = re.search(r"(\d+) bytes smem", entry)
                failed |= spilled > 0
                cells = (name, "bf16" if is_bf16 else "f32", kernel, registers, spilled, shared.group(1) if shared else 0)
                print(f"| {' | '.join(str(cell) for cell in cells)} |")
    sys.exit(failed)


if __name__ == "__main__":
    main()
