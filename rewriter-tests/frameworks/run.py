#!/usr/bin/env python3
"""Runs frameworks and libraries on AMD's own ROCm, above the emulator, original and counted (docs/guide/frameworks.md).

    run.py                                    every row, in both suites
    run.py --list                             the rows
    run.py rocblas cupy                       these rows
    run.py --suite sid --strict rocblas       in one suite; also in strict mode
    run.py --probe blocks --probe memory:global fft-1d
    run.py --roots /var/cache/roots llama     where the roots are, or are to be made
    run.py ggml --operators ADD,MUL_MAT       ggml's own tests of these operators

A row is run as it is, and once for each --probe, which is PROBE or PROBE:COUNTERS (see `wavetap profile --help`; the
default is blocks). The table says whether it runs, how many of its comparisons hold, how many kernels were counted, and
how many seconds all of it took. The exit code is 0 if each row did what `known.py` says of it: most succeed.

The first run fetches 2 GB of packages for each suite, with apt, and Python's with pip. Needs root.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import rows
from known import KNOWN

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent


def fail(text):
    sys.exit(f"run.py: {text}")


class Suite:
    """A root, with what rows need in it."""

    def __init__(self, name, folder, wavetap):
        self.name, self.folder, self.wavetap = name, folder / name, wavetap
        self.root = self.folder / "root"
        self.work = self.root / "srv"

    def make(self):
        subprocess.run([HERE / "root.sh", "make", self.name, self.folder], check=True)
        shutil.copytree(HERE / "programs", self.work / "programs", dirs_exist_ok=True)
        for path, target in rows.LINKS.get(self.name, {}).items():
            link = self.root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(target)

    def enter(self, command, environment=(), limit=600):
        """Exit code (None after the time limit), standard output, standard error, seconds."""
        settings = [f"{name}={value}" for name, value in dict(environment).items()]
        start = time.monotonic()
        process = subprocess.Popen(
            [HERE / "root.sh", "enter", self.folder, "env", *settings, *command],
            env=dict(os.environ, WAVETAP=str(self.wavetap)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, error = process.communicate(timeout=limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            # The whole session: what the command has started, too.
            os.killpg(process.pid, signal.SIGKILL)
            out, error = process.communicate()
            code = None
        return code, out, error.decode(errors="replace"), time.monotonic() - start

    def must(self, command):
        code, out, error, _ = self.enter(command)
        if code != 0:
            fail(f"{self.name}: {' '.join(command)} ended with {code}\n{out.decode(errors='replace')}{error}")

    def python(self, version, packages):
        """Installs pinned packages from PyPI below /opt, for a Python of the root: the variables that find them."""
        folders = []
        for package in packages:
            folder = self.root / "opt" / f"python{version}" / package
            if not folder.exists():
                part = folder.with_name(folder.name + ".part")
                shutil.rmtree(part, ignore_errors=True)
                platforms = [f"--platform={one}" for one in rows.PLATFORMS]
                abis = [f"--abi={one}" for one in ("cp" + version.replace(".", ""), "abi3", "none")]
                subprocess.run(
                    [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps",
                     "--root-user-action=ignore", "--only-binary=:all:", "--implementation=cp",
                     f"--python-version={version}", *abis, *platforms, "--target", part, package],
                    check=True,
                )
                part.rename(folder)
            folders.append(f"/opt/python{version}/{package}")
        return {"PYTHONPATH": ":".join([*folders, "/srv/programs"]), "PYTHONDONTWRITEBYTECODE": "1"}


class Outcome:
    """What one run did."""

    def __init__(self, code, out, error, seconds):
        self.code, self.out, self.error, self.seconds = code, out, error, seconds
        text = re.sub("\x1b\\[[0-9;]*m", "", out.decode(errors="replace"))
        self.right = len(re.findall(r"^\s*.*: (?:PASS\b|OK$)", text, re.MULTILINE))
        self.wrong = len(re.findall(r"^\s*.*: (?:WRONG\b|FAIL\b)", text, re.MULTILINE))
        self.kernels = None
        self.text = text + error

    def state(self):
        if self.code is None:
            return "cut"
        if self.code != 0:
            return f"ends with {self.code}"
        return "yes"

    def values(self):
        return f"{self.right} of {self.right + self.wrong}" if self.right + self.wrong else "-"


def counted(suite, row, environment, probe):
    """One run under `wavetap profile`, with the number of kernels in its report."""
    name, _, counters = probe.partition(":")
    report = suite.work / f"{row.name}.json"
    report.unlink(missing_ok=True)
    options = ["--probe", name] + (["--counters", counters] if counters else [])
    command = ["wavetap", "profile", "--stack", "rocm", *options, "--format", "json", "--report", report.name, "--"]
    outcome = Outcome(*suite.enter(command + row.command, environment, row.limit * 4))
    if report.exists():
        found = json.loads(report.read_text())
        outcome.kernels = len(found["kernels"])
    return outcome


def judge(suite, row, stage, outcome, reference):
    """None if a run did what it should, or the reason why not."""
    problem = None
    if outcome.code is None and not (row.may_be_cut and outcome.right and not outcome.wrong):
        problem = f"did not end within {row.limit} s"
    elif outcome.code:
        problem = f"ended with {outcome.code}"
    elif outcome.wrong:
        problem = f"{outcome.wrong} comparisons are wrong"
    elif reference is None and outcome.right == 0:
        problem = "compared nothing"
    elif reference is not None and outcome.out != reference:
        problem = "the output is not that of the CPU"
    elif stage not in ("run", "strict") and not outcome.kernels:
        problem = "no kernel was counted"
    known = KNOWN.get((suite.name, row.name, stage)) or KNOWN.get((suite.name, row.name, "*"))
    if known is None:
        return problem
    if problem is None:
        return f"succeeded, but known.py expects {known!r}"
    return None if re.search(known, outcome.text) or re.search(known, problem) else f"{problem}, not as {known!r}"


def run_row(suite, row, options, table):
    environment = dict(row.environment)
    if row.python:
        environment.update(suite.python(row.python_version, row.python))
    for command in row.prepare:
        suite.must(["env", *(f"{k}={v}" for k, v in environment.items()), *command])
    reference = None
    if row.reference:
        code, reference, error, _ = suite.enter(row.reference, environment, row.limit)
        if code != 0 or not reference:
            fail(f"{suite.name} {row.name}: the run on the CPU failed\n{error}")
    plain = ["wavetap", "run", "--stack", "rocm"]
    stages = [("run", lambda: Outcome(*suite.enter([*plain, "--", *row.command], environment, row.limit)))]
    if options.strict:
        strict = [*plain, "--strict", "--seed", "1", "--", *row.command]
        longer = row.limit if row.may_be_cut else 4 * row.limit
        stages.append(("strict", lambda: Outcome(*suite.enter(strict, environment, longer))))
    for probe in options.probe if row.counted else []:
        stages.append((probe, lambda probe=probe: counted(suite, row, environment, probe)))
    unexpected = 0
    for stage, go in stages:
        outcome = go()
        log = suite.folder / f"{row.name}.{stage.replace(':', '-')}.log"
        log.write_text(outcome.text)
        problem = judge(suite, row, stage, outcome, reference)
        values = outcome.values()
        if reference is not None:
            values = "as on the CPU" if outcome.out == reference else "not as on the CPU"
        kernels = "" if outcome.kernels is None else f"{outcome.kernels} kernels"
        table.add(suite.name, row.name, stage, outcome.state(), values, kernels, f"{outcome.seconds:.0f}", problem, log)
        unexpected += problem is not None
    return unexpected


class Table:
    """Printed as it grows: columns of fixed width."""

    WIDTHS = (12, 14, 15, 14, 15, 11, 7)

    def __init__(self):
        self.line("suite", "what", "how", "runs", "values", "counted", "seconds")

    def line(self, *cells):
        print(" ".join(cell.ljust(width) for cell, width in zip(cells, self.WIDTHS)).rstrip(), flush=True)

    def add(self, suite, name, stage, state, values, kernels, seconds, problem, log):
        self.line(suite, name, stage, state, values, kernels, seconds)
        if problem:
            print(f"    unexpected: {problem} ({log})", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--roots", type=Path, default=PROJECT / "target" / "frameworks", metavar="FOLDER")
    parser.add_argument("--suite", choices=sorted(rows.SUITES), action="append")
    parser.add_argument("--probe", action="append", metavar="PROBE[:COUNTERS]", help="or `no`: nothing is counted")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--operators", metavar="NAME,…", help="ggml: instead of the usual ones; `all`")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="instead of each row's own time limit")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--wavetap", type=Path, default=PROJECT / "target/release/wavetap")
    options = parser.parse_args()
    options.probe = [one for one in options.probe or ["blocks"] if one != "no"]
    return options


def main():
    options = arguments()
    chosen = [(suite, row) for suite in options.suite or rows.SUITES for row in rows.rows(suite, options.operators)]
    for _, row in chosen:
        row.limit = options.limit or row.limit
    if options.list:
        for suite, row in chosen:
            print(f"{suite:14}{row.name:16}{row.about}")
        return
    names = {row.name for _, row in chosen} | {row.group for _, row in chosen}
    for name in options.rows:
        if name not in names:
            fail(f"no row {name}; there are {', '.join(sorted(filter(None, names)))}")
    if options.rows:
        chosen = [(suite, row) for suite, row in chosen if row.name in options.rows or row.group in options.rows]
    if os.geteuid() != 0:
        fail("needs root, to mount and to change the root folder")
    for needed in (options.wavetap, *(options.wavetap.with_name(f"libwavetap_{one}.so") for one in ("kfd", "hsa"))):
        if not needed.exists():
            fail(f"no {needed}: cargo build --release, or --wavetap")
    options.roots.mkdir(parents=True, exist_ok=True)
    suites = {name: Suite(name, options.roots.resolve(), options.wavetap.resolve()) for name, _ in chosen}
    for suite in suites.values():
        suite.make()
    table = Table()
    unexpected = sum(run_row(suites[name], row, options, table) for name, row in chosen)
    print(f"{unexpected} unexpected" if unexpected else "all as expected")
    sys.exit(unexpected != 0)


if __name__ == "__main__":
    main()
