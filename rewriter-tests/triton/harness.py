"""Tries Triton's kernels on Wavetap: compiled for each target, decoded, rewritten in both counter modes, run original
and rewritten in strict mode, and compared with numpy and with the emulator's own trace. docs/guide/triton.md describes
it.

    run.sh [--triton VERSION] [--arch GFX]… [--kernel NAME]… [--seeds N] [--jobs N] [--report FILE] [--bless]"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import build
import idioms
from cases import CASES, Typed
from narrow import FORMATS, decode, from_bf16

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODES = ("original", "lds", "global")
# What the command says after a fault that ended the process.
TAIL = r" wavetap: (?:the application was|the profile is|not counted)"
# Wave-instructions of a launch, far more than any case needs.
FUEL = 50_000_000
# Targets that are only decoded: their code is that of another one of the list.
ONLY_DECODED = {"gfx1200"}
# What fails, and why that is right. One that passes must leave the list.
KNOWN = {
    (
        "gfx1250",
        "inline_assembly",
    ): "LLVM puts no wait for va_vdst between inline assembly and a store of what it writes"
}
# The last decides what a cell of the table says.
ORDER = ("pass", "refused", "not compiled", "counts", "wrong", "fault")


class Wavetap:
    def __init__(self, path):
        self.path = path

    def call(self, *args, timeout=120):
        return subprocess.run([self.path, *map(str, args)], capture_output=True, text=True, errors="replace",
                              timeout=timeout)


def decoding(wavetap, folder, name):
    """What differs between the disassembly and Triton's own assembly text; nothing if all is well."""
    result = wavetap.call("disasm", folder / f"{name}.co", "--plain")
    if result.returncode != 0:
        return f"disasm ended with {result.returncode}: {result.stderr.strip()[:200]}"
    return idioms.compare((folder / f"{name}.s").read_text(), result.stdout)


def rewrite(wavetap, folder, out, name, mode):
    """Rewrites one object; the reason if it was refused."""
    result = wavetap.call("rewrite", folder / f"{name}.co", "-o", out / f"{name}.co", "--counters", mode, "--force",
                          "--format", "json")
    if result.returncode not in (0, 1):
        return "fault", f"rewrite ended with {result.returncode}: {result.stderr.strip()[:300]}"
    refused = json.loads(result.stdout)["refused"]
    if refused:
        return "refused", f"{refused[0]['reason']}: {refused[0]['detail']}"
    verified = wavetap.call("verify", folder / f"{name}.co", out / f"{name}.co")
    if verified.returncode != 0:
        return "fault", f"verify: {(verified.stdout + verified.stderr).strip()[:300]}"
    for kind in ("json", "npz"):
        shutil.copy(folder / f"{name}.{kind}", out / f"{name}.{kind}")
    return None


def value_of(case, name, array):
    """What an output array means, as numpy has no narrow types."""
    argument = case.args.get(name)
    if isinstance(argument, Typed):
        return from_bf16(array) if argument.type == "bf16" else decode(argument.type, array)
    return array


def difference(case, results):
    """What is wrong with the outputs, if anything is."""
    for name, (expected, tolerance) in case.expected.items():
        got = value_of(case, name, results[name])
        expected = np.asarray(expected).reshape(got.shape)
        if tolerance == 0:
            bad = got != expected.astype(got.dtype)
        else:
            scale = np.abs(np.asarray(expected, dtype=np.float64)).max()
            bad = ~(np.abs(got.astype(np.float64) - expected) <= tolerance * scale)
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            return (f"{name}: {int(bad.sum())} of {bad.size} differ; {list(first)} is {got[first]!r}, "
                    f"expected {expected[first]!r}")
    return None


def run(wavetap, arch, folder, names, seed, scratch):
    """Runs the jobs of a folder in one process, and the rest in another one when a fault ends it. Returns by name the
    outputs, or what went wrong, and the profile's and the trace's kernels by name of the case."""
    outcome, counted = {}, {}
    scratch.mkdir(parents=True, exist_ok=True)
    left = list(names)
    while left:
        profile, trace = scratch / "counts.profile", scratch / "trace.profile"
        for path in (profile, trace):
            path.unlink(missing_ok=True)
        command = ["run", "--target", arch, "--strict", "--seed", seed, "--fuel", FUEL, "-o", profile, "--trace", trace,
                   "--force", "--", sys.executable, HERE / "host.py", scratch, *(folder / f"{n}.json" for n in left)]
        try:
            result = wavetap.call(*command, timeout=60 + 30 * len(left))
            text, errors = result.stdout, result.stderr
        except subprocess.TimeoutExpired as error:
            text, errors = ((v or b"").decode(errors="replace") for v in (error.stdout, error.stderr))
            errors += "\ntimeout"
        launched = re.findall(r"^launch (\S+)$", text, re.M)
        finished = set(re.findall(r"^done (\S+)$", text, re.M))
        failed = dict(re.findall(r"^failed (\S+): (.*)$", text, re.M))
        said = re.split(r"^launch (\S+)$", errors, flags=re.M)
        messages = dict(zip(said[1::2], said[2::2]))
        prints = re.split(r"^launch \S+$", text, flags=re.M)[1:]
        for name, lines in zip(launched, prints):
            if name in finished:
                with np.load(scratch / f"{name}.npz") as arrays:
                    outcome[name] = ("results", dict(arrays), lines)
            else:
                text_of = " ".join((failed.get(name, "") + " " + messages.get(name, "")).split())
                outcome[name] = ("fault", re.split(TAIL, text_of)[0], "")
        counted |= counts(folder, launched, profile, trace)
        if not launched:
            for name in left:
                outcome[name] = ("fault", "the host did not start: " + " ".join(errors.split())[:300], "")
            break
        left = left[left.index(launched[-1]) + 1:]
    return outcome, counted


def counts(folder, names, profile, trace):
    """By case: the branches that were counted and those of the emulator's trace."""
    def kernels(path):
        if not path.exists():
            return {}
        return {kernel["object"]: kernel for kernel in json.loads(path.read_text())["kernels"]}

    digests = json.loads((folder / "digests.json").read_text()) if (folder / "digests.json").exists() else {}
    ours, theirs = kernels(profile), kernels(trace)
    return {name: (ours.get(digests[name]), theirs.get(digests[name])) for name in names if name in digests}


def miscounted(pair):
    """What the counters say that the trace does not, if anything."""
    ours, theirs = pair
    if ours is None or theirs is None:
        return "nothing was counted"
    for field in ("dispatches", "waves", "dropped", "unfinished"):
        if ours[field] != theirs[field]:
            return f"{field}: counted {ours[field]}, traced {theirs[field]}"
    counted, traced = executed(ours), executed(theirs)
    for address in sorted(counted.keys() | traced.keys()):
        if counted.get(address) != traced.get(address):
            return f"branch at {address}: counted {counted.get(address)}, traced {traced.get(address)}"
    return None


def executed(kernel):
    """The numbers of the branches that were executed, by address: a trace has no others."""
    return {site["address"]: site["counts"] for site in kernel["sites"] if site["counts"]["executions"]}


def digest(wavetap, path):
    result = wavetap.call("disasm", path, "--format", "json")
    if result.returncode != 0:
        return None
    return json.loads(result.stdout)["objects"][0]["digest"]


def try_target(wavetap, arch, folder, work, names, seeds, modes):
    """Everything of one target: by case the list of (kind, where, text)."""
    found = {name: [] for name in names}
    digests = {}
    for name in names:
        different = decoding(wavetap, folder, name)
        if different:
            found[name].append(("wrong", "disasm", different))
        digests[name] = digest(wavetap, folder / f"{name}.co")
    folders = {"original": folder}
    runnable = {"original": list(names)}
    for mode in modes:
        if mode == "original":
            continue
        folders[mode] = work / arch / mode
        folders[mode].mkdir(parents=True, exist_ok=True)
        runnable[mode] = []
        for name in names:
            reason = rewrite(wavetap, folder, folders[mode], name, mode)
            if reason:
                found[name].append((reason[0], mode, reason[1]))
            else:
                runnable[mode].append(name)
    if arch in ONLY_DECODED:
        return found
    for mode in modes:
        (folders[mode] / "digests.json").write_text(json.dumps(digests))
        for seed in range(1, seeds + 1):
            outcome, counted = run(wavetap, arch, folders[mode], runnable[mode], seed, work / arch / f"{mode}.{seed}")
            for name in runnable[mode]:
                where = f"{mode}, seed {seed}"
                kind, value, printed = outcome[name]
                if kind == "fault":
                    found[name].append(("fault", where, value))
                    continue
                case = CASES[name](arch)
                wrong = difference(case, value)
                if not wrong and case.printed is not None:
                    missing = [line for line in case.printed if not any(p.endswith(line) for p in printed.splitlines())]
                    wrong = f"{len(missing)} lines were not printed, the first is {missing[0]!r}" if missing else None
                if wrong:
                    found[name].append(("wrong", where, wrong))
                elif mode != "original":
                    miscount = miscounted(counted.get(name, (None, None)))
                    if miscount:
                        found[name].append(("counts", where, miscount))
    return found


def just_in_time(wavetap, arch):
    """What is wrong where Triton's own compiler and launcher work in a process: run, and counted by `profile`."""
    problems = []
    outputs = []
    for words in (["run"], ["profile", "--counters", "global"], ["profile", "--counters", "lds"]):
        result = wavetap.call(*words, "--target", arch, "--", sys.executable, HERE / "jit.py", timeout=900)
        lines = [line for line in result.stdout.splitlines() if " numpy, sum " in line.lower()]
        outputs.append(lines)
        if result.returncode != 0 or len(lines) != 6:
            problems.append(f"{arch} jit.py: {' '.join(words)} ended with {result.returncode}: "
                            + " ".join((result.stdout[-300:] + result.stderr[-300:]).split()))
        elif words[0] == "profile" and "variant 2 of 2: code object" not in result.stdout:
            problems.append(f"{arch} jit.py: the report does not tell the two variants of matmul apart")
    if any(lines != outputs[0] for lines in outputs):
        problems.append(f"{arch} jit.py: what it prints depends on how it is run")
    return problems


def shown(findings):
    if not findings:
        return "pass"
    return max((kind for kind, _, _ in findings), key=ORDER.index)


def table(archs, names, found):
    width = max(map(len, names))
    lines = ["  ".join(["kernel".ljust(width)] + [arch.ljust(12) for arch in archs]).rstrip()]
    for name in names:
        cells = [shown(found[arch].get(name, [])).ljust(12) for arch in archs]
        lines.append("  ".join([name.ljust(width)] + cells).rstrip())
    totals = [Counter(shown(found[arch].get(name, [])) for name in names) for arch in archs]
    lines += ["", "totals"]
    lines += [f"  {arch}: " + ", ".join(f"{count} {kind}" for kind, count in total.most_common())
              for arch, total in zip(archs, totals)]
    return lines


def details(archs, names, found):
    """One line for each distinct text of a cell."""
    lines = []
    for arch in archs:
        for name in names:
            seen = {}
            for kind, where, text in found[arch].get(name, []):
                seen.setdefault((kind, re.sub(r"0x[0-9a-f]+|\b\d+\b", "N", text)), (text, []))[1].append(where)
            lines += [f"{arch} {name}: {kind} ({'; '.join(places)}): {text[:500]}"
                      for (kind, _), (text, places) in seen.items()]
    return lines


def unexpected(archs, names, found):
    """What fails and is not known to, and what is known to fail and does not."""
    lines = []
    for arch, name in ((arch, name) for arch in archs for name in names):
        fails = shown(found[arch][name]) not in ("pass", "refused")
        if fails and (arch, name) not in KNOWN:
            lines.append(f"{arch} {name}: not expected")
        elif not fails and (arch, name) in KNOWN:
            lines.append(f"{arch} {name}: passes, and is in the list of what fails: {KNOWN[arch, name]}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triton", help="another release; says what is new in it")
    parser.add_argument("--arch", action="append", choices=list(build.TARGETS), default=[])
    parser.add_argument("--kernel", action="append", choices=list(CASES), default=[], metavar="NAME")
    parser.add_argument("--mode", action="append", choices=MODES, default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--wavetap", default=os.environ.get("WAVETAP", ROOT / "target/release/wavetap"))
    parser.add_argument("--work", type=Path, default=ROOT / "target/triton")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--bless", action="store_true", help="write the list of mnemonics and prologues")
    options = parser.parse_args()
    import triton
    archs, names = options.arch or list(build.TARGETS), options.kernel or list(CASES)
    modes = [m for m in MODES if m in (options.mode or MODES)]
    objects = options.work / f"objects-{triton.__version__}"
    reasons = build.build_all(objects, archs, names, options.jobs)
    new = idioms.check(objects, archs, names, bless=options.bless)
    print("\n".join(new), flush=True)
    if options.compile_only:
        sys.exit(bool(reasons))
    wavetap = Wavetap(options.wavetap)
    found = {}

    def one(arch):
        compiled = [name for name in names if (arch, name) not in reasons]
        found[arch] = {name: [("not compiled", "triton", reasons[arch, name])] for name in names if
                       (arch, name) in reasons}
        found[arch] |= try_target(wavetap, arch, objects / arch, options.work / "work", compiled, options.seeds, modes)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, archs))
    lines = [f"Triton {triton.__version__}, {options.seeds} seeds, strict", ""]
    lines += table(archs, names, found) + [""] + details(archs, names, found)
    in_time = []
    if not options.kernel:
        in_time = [problem for arch in archs if arch not in ONLY_DECODED for problem in just_in_time(wavetap, arch)]
        lines += in_time or ["jit.py: the same original and counted"]
    print("\n".join(lines))
    if options.report:
        options.report.write_text("\n".join(lines) + "\n")
    surprises = unexpected(archs, names, found)
    print("\n".join(surprises))
    sys.exit(1 if surprises or new or in_time else 0)


if __name__ == "__main__":
    main()
