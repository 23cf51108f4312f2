"""Writes objects/: small code objects that the quick tests decode, rewrite and run (tests/all/triton_objects.rs), with
what
Triton's own assembly text says of them. Without source lines, so that they name no folder."""

import json
import os
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

import build  # noqa: E402
import idioms  # noqa: E402
from cases import CASES  # noqa: E402

OBJECTS = [("gfx90a", "histogram"), ("gfx942", "vector_add"), ("gfx942", "matmul_fp16_one_wave"),
           ("gfx950", "matmul_fp16_one_wave"), ("gfx1100", "cumsum"), ("gfx1201", "matmul_fp16_one_wave"),
           ("gfx1201", "while_loop"), ("gfx1250", "where_masks")]


def main():
    folder = Path(__file__).resolve().parent / "objects"
    folder.mkdir(exist_ok=True)
    listed = []
    for arch, name in OBJECTS:
        case = CASES[name](arch)
        ast, _ = build.source(case)
        kernel = triton.compile(ast, target=GPUTarget("hip", arch, build.TARGETS[arch]),
                                options={"num_warps": case.warps, "num_stages": case.stages})
        file = f"{name}.{arch}.co"
        (folder / file).write_bytes(kernel.asm["hsaco"])
        mnemonics = [step[0] for step in idioms.assembly(kernel.asm["amdgcn"]) if step]
        listed.append({"file": file, "target": arch, "case": name, "kernel": kernel.metadata.name,
                       "workgroups": list(case.grid), "workgroup": kernel.metadata.num_warps * build.TARGETS[arch],
                       "dynamic_lds": kernel.metadata.shared, "mnemonics": " ".join(mnemonics)})
    text = json.dumps({"triton": triton.__version__, "objects": listed}, indent=1)
    (folder / "objects.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
