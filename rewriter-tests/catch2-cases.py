#!/usr/bin/env python3
"""Runs programs of Catch2 cases on the emulator's own HIP runtime and on AMD's, and compares what becomes of each case.

    rewriter-tests/catch2-cases.py FOLDER [--only GROUP] [--case TEXT] [--stack hip|rocm] [--page FILE]

FOLDER has executables as a person has built them, in a folder for each group: FOLDER/GROUP/EXECUTABLE. For AMD's
libraries of Debian 12 they have to be built with code objects of version 4 (-mcode-object-version=4). One process runs
one case. Results are kept in FOLDER/results.json, so that a run can go on where it stopped: a case that has a result
is not run again unless it is named by --case or --again. With --page a page of the results is written.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STACKS = ("hip", "rocm")
OUTCOMES = ("pass", "fail", "crash", "hang", "skip", "not supported")
NOT_SUPPORTED = "is not implemented by the built-in runtime"
REASONS = ROOT / "rewriter-tests/catch2-reasons.txt"


def run(arguments, folder, limit):
    """Exit code and output of a command; no code if it did not end in time."""
    process = subprocess.Popen(arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output.decode(errors="replace")


def reason(text):
    """The line that says best what went wrong: what the emulator says, or the first check that failed."""
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        if line.startswith("wavetap: ") and "the application was ended" not in line:
            return line
    for at, line in enumerate(lines):
        if line.startswith(("REQUIRE", "CHECK")) or "API returned error code" in line:
            # Catch2 prints the expression as it was, then with its values.
            values = [other for other in lines[at + 1:at + 5] if other and other != "with expansion:"]
            return " → ".join([line] + values[:1])
    ended = [line for line in lines if line.startswith("wavetap: ")]
    return (ended or [line for line in lines if line] or ["no output"])[-1]


def outcome(code, text):
    """What became of a case, and why."""
    if code is None:
        return "hang", reason(text) if "wavetap: " in text else "did not end in time"
    if "HIP_SKIP_THIS_TEST" in text or "No tests ran" in text:
        return "skip", ""
    if code == 0:
        return "pass", ""
    if NOT_SUPPORTED in text:
        return "not supported", next(line for line in text.splitlines() if NOT_SUPPORTED in line)
    return ("crash" if code < 0 or "the application was ended by SIG" in text else "fail"), reason(text)


def cases(wavetap, program):
    """Names of a program's cases."""
    _, text = run([wavetap, "run", "--", program, "--list-test-names-only"], program.parent, 60)
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("wavetap: ")]


def literal(name):
    """A case's name where Catch2 expects a pattern."""
    return re.sub(r"([\\,\[\]*])", r"\\\1", name)


def work(options, key, program, case, stack):
    command = [options.wavetap, "run", "--stack", stack, "--", program, literal(case)]
    code, text = run(command, program.parent, options.limit)
    found, why = outcome(code, text)
    return key, stack, {"outcome": found, "why": " ".join(why.split())[:200]}


def read_reasons():
    """What a person found out of cases: lines `CASE: REASON`."""
    if not REASONS.exists():
        return {}
    lines = [line for line in REASONS.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def page(results):
    """The results as a page."""
    groups = {}
    for key, stacks in results.items():
        group, program, case = key.split("\t")
        groups.setdefault(group, []).append((program, case, stacks))
    count = lambda rows, stack, which: sum(of.get(stack, {}).get("outcome") == which for _, _, of in rows)
    lines = ["# AMD's HIP tests", "", INTRODUCTION.strip(), "",
             "| folder | cases | " + " | ".join(f"{which}: ours | AMD's" for which in OUTCOMES) + " |",
             "|" + "---|" * (2 + 2 * len(OUTCOMES))]
    for group, rows in sorted(groups.items()) + [("all", [row for rows in groups.values() for row in rows])]:
        numbers = [str(count(rows, stack, which)) for which in OUTCOMES for stack in STACKS]
        lines.append(f"| {group} | {len(rows)} | " + " | ".join(numbers) + " |")
    reasons, worse = read_reasons(), []
    for group, rows in sorted(groups.items()):
        for program, case, of in sorted(rows, key=lambda row: row[:2]):
            ours, theirs = of.get("hip", {}), of.get("rocm", {})
            if theirs.get("outcome") == "pass" and ours.get("outcome") not in ("pass", None):
                why = reasons.get(case) or "`" + ours["why"].replace("`", "'") + "`"
                worse.append((group, case, ours["outcome"], why.replace("|", "\\|")))
    lines += ["", "## Cases that pass on AMD's runtime alone", ""]
    if worse:
        lines += ["| folder | case | on ours | why |", "|---|---|---|---|"]
        lines += [f"| {group} | `{case}` | {which} | {why} |" for group, case, which, why in worse]
    else:
        lines += ["None."]
    return "\n".join(lines) + "\n"


INTRODUCTION = """
Written by `rewriter-tests/catch2-cases.py --page`. The cases are those of
[hip-tests](https://github.com/ROCm/hip-tests) (branch rocm-5.4.x), compiled for gfx90a by clang 19
(`-O1 -mcode-object-version=4`) with Debian's HIP 5.2 headers, each file as a separate executable; files that need newer
headers are omitted. None of their code is in this repository. *Ours* is the emulator's own HIP runtime, *AMD's* is
Debian 12's `libamdhip64` (5.2.3) on top of the emulated kernel driver (`--stack rocm`). Kernels run on the same
emulator, so differences come from the runtime. One process runs one case.

A *crash* is a signal. A *hang* did not end within 15 to 60 seconds on two shared cores: kernels that wait for the clock
for whole seconds, which took a hundred times as long when most of these cases were run, and cases that the shared
machine delayed. Cases skip themselves if there are too few GPUs. *Not supported* means that a message names the missing
function.

Since then kernels that wait for the clock take about the time for which they wait. 109 cases of three folders were run
again, with 60 seconds for each. Of event (18 cases) 14 pass on our runtime and 15 on AMD's, and 1 does not end on
either. Of multiThread 8 and 7 of 8 pass. Of stream (83) 74 and 73 pass, and 2 and 4 do not end. The cases that still do
not end have many streams, or many waves that divide 64-bit numbers while they wait.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], help="a group; all by default")
    parser.add_argument("--case", help="only cases with this in their names, also if they have a result")
    parser.add_argument("--again", choices=OUTCOMES, action="append", default=[], help="cases with this result, too")
    parser.add_argument("--stack", choices=STACKS, action="append", default=[], help="one of the two runtimes")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a case")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--page", type=pathlib.Path, help="where to write the page")
    parser.add_argument("--wavetap", type=pathlib.Path, default=ROOT / "target/release/wavetap", help="the command")
    options = parser.parse_args()
    options.wavetap = options.wavetap.resolve()
    if not options.folder.is_dir():
        sys.exit(f"{options.folder}: not a folder")
    if not options.wavetap.is_file():
        sys.exit(f"{options.wavetap}: not built")
    kept = options.folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    todo = []
    for program in sorted(options.folder.resolve().glob("*/*")):
        group = program.parent.name
        if (options.only and group not in options.only) or not (program.is_file() and os.access(program, os.X_OK)):
            continue
        for case in cases(options.wavetap, program):
            key = "\t".join([group, program.name, case])
            for stack in options.stack or STACKS:
                known = results.setdefault(key, {}).get(stack)
                named = options.case and options.case in case
                if (known is None and not options.case) or named or (known and known["outcome"] in options.again):
                    todo.append((key, program, case, stack))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(work, options, *of) for of in todo]):
            key, stack, result = done.result()
            results[key][stack] = result
            print("\t".join([stack, key, result["outcome"], result["why"]]), flush=True)
            kept.write_text(json.dumps(results, indent=1, sort_keys=True))
    if options.page:
        options.page.write_text(page(results))


main()
