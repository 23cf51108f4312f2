"""Compiles the cases with Triton, without a GPU: for each target a folder of code objects, Triton's own assembly text,
and jobs for host.py.

    build.py FOLDER [--arch GFX]… [--kernel NAME]…"""

import argparse
import json
import os
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from cases import CASES, Pointers, Typed

TARGETS = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1200": 32, "gfx1201": 32, "gfx1250": 32}
TYPES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"}


def specialised(value):
    """The type of an argument and what Triton's JIT would know of its value."""
    if isinstance(value, Typed):
        return "*" + value.type, True
    if isinstance(value, Pointers):
        return "*i64", True
    if isinstance(value, np.ndarray):
        return "*" + TYPES[value.dtype.name], True
    if isinstance(value, bool):
        return "i1", False
    if isinstance(value, int):
        return ("i32" if -2**31 <= value < 2**31 else "i64"), value % 16 == 0
    if isinstance(value, float):
        return "fp32", False
    raise TypeError(f"an argument of {type(value)}")


def source(case):
    import triton
    signature, constants, attributes, arguments = {}, {}, {}, []
    constexprs = {p.name for p in case.fn.params if p.is_constexpr}
    for i, name in enumerate(case.fn.arg_names):
        value = case.args[name]
        # The JIT makes a constant of the value 1.
        if name in constexprs or (isinstance(value, int) and value == 1):
            signature[name], constants[name] = "constexpr", value
            continue
        signature[name], divisible = specialised(value)
        if divisible:
            attributes[(i,)] = [["tt.divisibility", 16]]
        if isinstance(value, Pointers):
            arguments.append({"pointers": value.of})
        elif isinstance(value, (np.ndarray, Typed)):
            arguments.append({"array": name})
        else:
            arguments.append({"type": signature[name], "value": value})
    return triton.compiler.ASTSource(case.fn, signature, constants, attributes), arguments


def build(folder, arch, name):
    """Compiles one case; returns why not, if it cannot be."""
    import triton
    from triton.backends.compiler import GPUTarget
    place = Path(folder) / arch
    place.mkdir(parents=True, exist_ok=True)
    case = CASES[name](arch)
    if case is None:
        return "not for this target"
    ast, arguments = source(case)
    options = {"num_warps": case.warps, "num_stages": case.stages, **case.options}
    try:
        kernel = triton.compile(ast, target=GPUTarget("hip", arch, TARGETS[arch]), options=options)
    except Exception as error:  # noqa: BLE001  whatever the compiler raises
        if os.environ.get("TRACE"):
            traceback.print_exc()
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    (place / f"{name}.co").write_bytes(kernel.asm["hsaco"])
    (place / f"{name}.s").write_text(kernel.asm["amdgcn"])
    programs = case.grid[0] * case.grid[1] * case.grid[2]
    for size in (kernel.metadata.global_scratch_size, kernel.metadata.profile_scratch_size):
        arguments.append({"type": "scratch", "value": size * programs} if size else {"type": "null"})
    job = {"name": name, "object": f"{name}.co", "symbol": kernel.metadata.name, "grid": case.grid,
           "threads": kernel.metadata.num_warps * TARGETS[arch], "shared": kernel.metadata.shared,
           "arguments": arguments, "outputs": list(case.expected)}
    arrays = {n: v.bits if isinstance(v, Typed) else v for n, v in {**case.args, **case.more}.items()
              if isinstance(v, (np.ndarray, Typed))}
    np.savez(place / f"{name}.npz", **arrays)
    (place / f"{name}.json").write_text(json.dumps(job))
    return None


def build_all(folder, archs, names, workers=None):
    """Compiles every case that is not there yet; returns the reasons of those that cannot be, by target and name."""
    reasons, running = {}, {}
    with ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        for name in names:
            for arch in archs:
                if not (Path(folder) / arch / f"{name}.json").exists():
                    running[arch, name] = pool.submit(build, folder, arch, name)
        for key, future in running.items():
            try:
                reason = future.result()
            except Exception as error:  # noqa: BLE001  the case itself is wrong
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if reason:
                reasons[key] = reason
    return reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--arch", action="append", choices=TARGETS)
    parser.add_argument("--kernel", action="append")
    options = parser.parse_args()
    reasons = build_all(options.folder, options.arch or list(TARGETS), options.kernel or list(CASES))
    for (arch, name), reason in reasons.items():
        print(f"{arch} {name}: {reason}")
    sys.exit(bool(reasons))


if __name__ == "__main__":
    main()
