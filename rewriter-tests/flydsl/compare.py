#!/usr/bin/env python3
"""Compares modelled stalls with those that thread traces of an MI350X measured (docs/results/flydsl.md).

    compare.py TRACES                          tables of all kernels
    compare.py TRACES --write                  also docs/results/flydsl.md
    compare.py TRACES --only rmsnorm --rows 30

TRACES is a clone of github.com/jhinpan/flydsl-kernel-profiling-lib at commit
bce529c304db950d270c84c73c83017c33c37d49. Nothing of it is copied into this repository: the traces are read, and the
sources of the kernels are put into target/flydsl. The first run installs FlyDSL there with pip. Needs ld.lld, AMD's
device libraries, and a built command.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
WORK = PROJECT / "target" / "flydsl"
FLYDSL = "flydsl==0.2.0"
NUMPY = "numpy==2.4.6"
DEVICE_LIBRARIES = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
LINKERS = ["ld.lld", "ld.lld-19", "/usr/lib/llvm-19/bin/ld.lld"]
KERNELS = {
    "rmsnorm": "1024 rows of 8192 bf16",
    "layernorm": "256 rows of 8192 bf16",
    "vec_add": "10,240,000 f32, 4 of each work-item",
}
# Of both, so large a part of the stalls of a wave matters.
MATTERS = 0.005


def fail(text):
    sys.exit(f"compare.py: {text}")


def prepare(traces):
    """The interpreter of an environment with FlyDSL, and the folder with the kernels' sources."""
    python = WORK / "venv" / "bin" / "python"
    if not (WORK / "installed").exists():
        venv.create(WORK / "venv", clear=True, with_pip=True)
        # Its one dependency is torch, of which there is a stand-in.
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", FLYDSL, NUMPY], check=True)
        (WORK / "installed").touch()
    tools, linker = WORK / "rocm" / "llvm" / "bin", next(filter(None, map(shutil.which, LINKERS)), None)
    if linker is None:
        fail("needs ld.lld")
    tools.mkdir(parents=True, exist_ok=True)
    for link, target in [(tools / "ld.lld", linker), (WORK / "rocm" / "amdgcn" / "bitcode", DEVICE_LIBRARIES)]:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    kernels = WORK / "kernels"
    kernels.mkdir(exist_ok=True)
    (kernels / "__init__.py").touch()
    sources = [("flash_attn_func", "kernels_common"), ("rmsnorm", "rmsnorm_kernel"), ("layernorm", "layernorm_kernel")]
    for example, name in sources:
        shutil.copy(traces / "examples" / example / "source" / f"{name}.py", kernels)
    # The kernel is in the middle of a test that needs pytest and a GPU.
    test = (traces / "examples" / "vec_add" / "source" / "test_vec_add.py").read_text()
    kernel = test[test.index("@flyc.kernel") : test.index("def benchmark_pytorch_add")]
    (WORK / "vec_add_kernel.py").write_text(f"import flydsl.compiler as flyc\nimport flydsl.expr as fx\n{kernel}")
    return python


def modelled(wavetap, python, kernel, launches):
    """The kernel's modelled time in so many launches."""
    report = WORK / f"{kernel}.{launches}.time"
    variables = {
        "ROCM_PATH": str(WORK / "rocm"),
        "FLYDSL_RUNTIME_CACHE_DIR": str(WORK / "cache"),
        "FLYDSL_GPU_ARCH": "gfx950",
        "PYTHONPATH": f"{HERE / 'standin'}:{WORK}",
    }
    command = [wavetap, "run", "--target", "gfx950", "--timing", "--format", "json", "--force", "--report", report]
    ended = subprocess.run(
        [*command, "--", python, HERE / "launch.py", kernel, str(launches)],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ended.returncode != 0:
        fail(f"{kernel}: {ended.stdout[-2000:]}")
    times = json.loads(report.read_text())["kernels"]
    if [len(time["dispatches"]) for time in times] != [launches]:
        fail(f"{kernel}: there were other launches than {launches} of one kernel")
    return times[0]


def measured(traces, kernel):
    """The instructions of its trace that are none of a function's name."""
    folders = list((traces / "examples" / kernel / "att_viewer" / "big").glob("ui_output_agent_*"))
    if len(folders) != 1:
        fail(f"{kernel}: {len(folders)} traces in {traces}")
    return [row for row in json.loads((folders[0] / "code.json").read_text())["code"] if not row[0].startswith(";")]


def ranks(values):
    """Equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result, at = [0.0] * len(values), 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for index in order[at:end]:
            result[index] = (at + end - 1) / 2
        at = end
    return result


def pearson(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    squares = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return product / squares**0.5


def compare(traces, wavetap, python, kernel):
    """The numbers of a kernel, per wave. The second launch minus the first alone is one that finds caches warm."""
    trace = measured(traces, kernel)
    times = [modelled(wavetap, python, kernel, launches) for launches in (1, 2)]
    first, both = [sorted(time["instructions"], key=lambda each: int(each["address"], 16)) for time in times]
    texts = [each["instruction"] for each in both]
    equal = sum(a == row[0] for a, row in zip(texts, trace))
    if len(texts) != len(trace) or equal != len(trace):
        fail(f"{kernel}: {equal} of {len(trace)} instructions of the trace are those of the code")
    rows = []
    for row, one, two in zip(trace, first, both):
        hits, executions = row[6], two["executions"] - one["executions"]
        stalls = {
            reason: (cycles - one["modelled_stalled"].get(reason, 0)) / executions
            for reason, cycles in two["modelled_stalled"].items()
        }
        issued = (two["modelled_issued"] - one["modelled_issued"]) / executions
        # The decoder does not count the end of a wave as a stall.
        stall = 0 if row[0] == "s_endpgm" else sum(stalls.values())
        rows.append({
            "text": row[0],
            "ratio": executions / hits,
            "measured": (row[7] / hits, row[8] / hits),
            "modelled": (issued + sum(stalls.values()), stall),
            "idle": row[9] / hits,
        })
    return {"rows": rows, "cycles": times[1]["dispatches"][1]["modelled_cycles"], "waves": times[0]["waves"]}


def summary(numbers):
    rows = numbers["rows"]
    stalls = [[row[kind][1] for row in rows] for kind in ("measured", "modelled")]
    least = [MATTERS * sum(each) for each in stalls]
    matter = [n for n in range(len(rows)) if any(each[n] >= limit for each, limit in zip(stalls, least))]
    large = [[each[n] for n in matter] for each in stalls]
    waits = [n for n, row in enumerate(rows) if row["text"].startswith(("s_waitcnt", "s_barrier"))]
    total = lambda kind, index: sum(row[kind][index] for row in rows)
    return {
        "ratio": {round(row["ratio"], 2) for row in rows},
        "all": pearson(*map(ranks, stalls)),
        "matter": len(matter),
        "large": pearson(*map(ranks, large)),
        "waits": pearson(*(ranks([each[n] for n in waits]) for each in stalls)),
        "number of waits": len(waits),
        "linear": pearson(*stalls),
        "latency": (total("measured", 0), total("modelled", 0)),
        "stall": (total("measured", 1), total("modelled", 1)),
        "idle": sum(row["idle"] for row in rows),
    }


def table(results):
    lines = [
        "| kernel | shape | instructions, all equal | waves: modelled, traced | stalls, rank correlation | of those "
        "that matter | of waits | linear correlation | cycles of a wave: measured | modelled | ratio | stalls: "
        "measured | modelled |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kernel, numbers in results.items():
        each = summary(numbers)
        (latency, model), (stall, model_stall) = each["latency"], each["stall"]
        ratio = min(each["ratio"])
        lines.append(
            f"| {kernel} | {KERNELS[kernel]} | {len(numbers['rows'])} | {numbers['waves']:,}, "
            f"{round(numbers['waves'] / ratio):,} | {each['all']:.2f} | {each['large']:.2f} ({each['matter']}) | "
            f"{each['waits']:.2f} ({each['number of waits']}) | {each['linear']:.2f} | {latency:.0f} | {model:.0f} | "
            f"{model / latency:.2f} | {stall:.0f} | {model_stall:.0f} |"
        )
    return lines


def differences(numbers, count):
    rows = numbers["rows"]
    order = sorted(range(len(rows)), key=lambda n: -abs(rows[n]["modelled"][0] - rows[n]["measured"][0]))[:count]
    lines = ["| instruction | | measured, cycles | modelled |", "|---|---|---|---|"]
    for n in sorted(order):
        row = rows[n]
        lines.append(f"| {n} | `{row['text']}` | {row['measured'][0]:.0f} | {row['modelled'][0]:.0f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--wavetap", type=Path, default=PROJECT / "target" / "debug" / "wavetap")
    parser.add_argument("--only", choices=KERNELS, action="append")
    parser.add_argument("--rows", type=int, default=8, help="instructions that differ most, of each kernel")
    parser.add_argument("--write", action="store_true", help="replace the tables of docs/results/flydsl.md")
    given = parser.parse_args()
    python = prepare(given.traces.resolve())
    only = given.only or list(KERNELS)
    results = {kernel: compare(given.traces, given.wavetap, python, kernel) for kernel in only}
    lines = table(results)
    for kernel, numbers in results.items():
        if len({round(row["ratio"], 3) for row in numbers["rows"]}) != 1:
            fail(f"{kernel}: instructions are executed in other proportions than in the trace")
        lines += ["", f"### {kernel}", "", *differences(numbers, given.rows)]
    print("\n".join(lines))
    if given.write:
        page, mark = PROJECT / "docs" / "results" / "flydsl.md", "<!-- tables: written by compare.py"
        text = page.read_text()
        begin, end = text.index(mark), text.index("<!-- tables: end -->")
        begin = text.index("\n", begin) + 1
        page.write_text(f"{text[:begin]}\n" + "\n".join(lines) + f"\n\n{text[end:]}")


main()
