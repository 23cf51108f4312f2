"""See which branches of a GPU program diverge and what its waves wait for, from its binary alone.

The module runs the command ``wavetap`` that is installed with it and gives what it says as tables.

>>> import wavetap
>>> profile = wavetap.run(["./app"], probes=["branches"])  # doctest: +SKIP
>>> profile.sites("branches", "exec").to_pandas()  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from ._table import Table

__all__ = [
    "Error",
    "Profile",
    "Table",
    "command",
    "disassembly",
    "kernels",
    "objects",
    "profile",
    "run",
    "slices",
]

PathLike = Union[str, "os.PathLike[str]"]

#: Schemas of profiles that this module reads.
_PROFILES = ("wavetap.profile/2",)
#: What the command sets for the processes that it starts.
_CONFIG = "WAVETAP_CONFIG"
#: The libraries that mark ranges, in the order in which they are looked for.
_RANGES = ("libroctx64.so", "libroctx64.so.4", "librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1")


class Error(Exception):
    """What the command refused, with its message and exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        #: 2: bad usage or bad input; otherwise that of the program that was run.
        self.code = code


def command() -> Path:
    """The command: the one of this environment, else the first on PATH.

    Raises FileNotFoundError if there is none.
    """
    beside = Path(sys.executable).parent / "wavetap"
    if beside.is_file():
        return beside
    found = shutil.which("wavetap")
    if found is None:
        raise FileNotFoundError(f"no wavetap beside {sys.executable}, and none on PATH")
    return Path(found)


def _json(arguments: Sequence[PathLike], accepted: Sequence[int] = (0, 1)) -> Any:
    """What the command prints as JSON. Code 1 is of findings and of single things that were refused."""
    line = [os.fspath(command()), *map(os.fspath, arguments)]
    ended = subprocess.run(line, capture_output=True, check=False)
    if ended.returncode not in accepted:
        raise Error(ended.stderr.decode(errors="replace").strip(), ended.returncode)
    return json.loads(ended.stdout)


def run(
    application: Sequence[PathLike],
    *,
    probes: Sequence[str] = (),
    target: Optional[str] = None,
    options: Sequence[str] = (),
    output: Optional[PathLike] = None,
    env: Optional[Mapping[str, str]] = None,
) -> "Profile":
    """Runs a program under ``wavetap profile`` and gives its profile.

    application: the program with its arguments.
    probes: what is counted (``branches``, ``blocks``, ``memory``, ``time`` …); by default branches.
    target: the processor that is emulated; by default gfx90a, or the first that the program has code for.
    options: further options of ``wavetap profile``.
    output: where the profile is kept; by default it is not.
    env: the environment; by default this process's.

    What the program prints goes where this process prints. Raises Error if the command or the program ends with another
    code than 0.
    """
    with tempfile.TemporaryDirectory(prefix="wavetap-") as folder:
        path = Path(output) if output is not None else Path(folder) / "profile"
        line = [os.fspath(command()), "profile", "--force", "-o", os.fspath(path)]
        line += ["--report", os.path.join(folder, "report")]
        if probes:
            line += ["--probe", ",".join(probes)]
        if target is not None:
            line += ["--target", target]
        line += [*options, "--", *map(os.fspath, application)]
        ended = subprocess.run(line, stderr=subprocess.PIPE, env=None if env is None else dict(env), check=False)
        said = ended.stderr.decode(errors="replace")
        if ended.returncode != 0:
            raise Error(said.strip() or f"{application[0]} ended with code {ended.returncode}", ended.returncode)
        sys.stderr.write(said)
        return Profile.read(path)


class Profile:
    """What was counted in a run, or in several that were merged."""

    def __init__(self, document: Mapping[str, Any], path: Optional[Path] = None) -> None:
        #: The document as it is in the file (``docs/reference/schemas/profile.md``).
        self.document = document
        #: The file that it was read from.
        self.path = path

    @classmethod
    def read(cls, path: PathLike) -> "Profile":
        """Reads a profile file. Raises Error if it is none, or of a version that is not known."""
        try:
            document = json.loads(Path(path).read_bytes())
        except ValueError as error:
            raise Error(f"{os.fspath(path)}: no profile: {error}", 2) from error
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema not in _PROFILES:
            raise Error(f"{os.fspath(path)}: schema {schema!r}, expected one of {', '.join(_PROFILES)}", 2)
        return cls(document, Path(path))

    @property
    def complete(self) -> bool:
        """Whether the run ended and every dispatch was counted that was to be."""
        return bool(self.document["complete"])

    @property
    def rank(self) -> Optional[int]:
        """The rank of the process, if a launcher gave it one."""
        return self.document.get("rank")

    def __repr__(self) -> str:
        kernels = len(self.document["kernels"])
        state = "" if self.complete else ", incomplete"
        return f"<wavetap.Profile of {kernels} {'kernel' if kernels == 1 else 'kernels'}{state}>"

    def kernels(self) -> Table:
        """Kernels that were dispatched: names, target, dispatches, waves, resources, work."""
        rows = []
        for kernel in self.document["kernels"]:
            row = {name: value for name, value in kernel.items() if not isinstance(value, (list, dict))}
            before = kernel.get("before") or {}
            row.update({f"before_{name}": value for name, value in before.items()})
            row.update({name: value for name, value in (kernel.get("work") or {}).items()})
            rows.append(row)
        return Table(rows)

    def launches(self) -> Table:
        """Dispatches that were launched alike: kernel, grid, workgroup, LDS, how many."""
        return Table(
            [
                {"kernel": kernel["name"], "demangled": kernel["demangled"], "target": kernel["target"], **shape}
                for kernel in self.document["kernels"]
                for shape in kernel.get("launches", [])
            ]
        )

    def sites(self, probe: str, kind: Optional[str] = None) -> Table:
        """Sites of a probe, with a column for each of its counters. Raises ValueError if the profile has none of it.

        Kinds of one probe have different counters: without ``kind`` the probe must have one in this profile.
        """
        kinds = [one for one in self.document["kinds"] if one["probe"] == probe and kind in (None, one["name"])]
        if len(kinds) != 1:
            known = ", ".join(f"{one['probe']}/{one['name']}" for one in self.document["kinds"])
            what = "none" if not kinds else "several"
            raise ValueError(f"{what} of the kinds is {probe}{'' if kind is None else '/' + kind}: there are {known}")
        of = kinds[0]
        rows = []
        for kernel in self.document["kernels"]:
            for site in kernel["sites"]:
                if site["probe"] != probe or site["kind"] != of["name"]:
                    continue
                source = site.get("source") or {}
                row = {
                    "kernel": kernel["name"],
                    "demangled": kernel["demangled"],
                    "target": kernel["target"],
                    "address": int(site["address"], 16),
                    "instruction": site["instruction"],
                    "file": source.get("file"),
                    "line": source.get("line"),
                }
                for field in of["fields"]:
                    value = site["counts"][field["name"]]
                    # A minimum of nothing.
                    nothing = field["merge"] == "min" and value == 2**64 - 1
                    row[field["name"]] = None if nothing else value
                rows.append(row)
        return Table(rows)

    def not_counted(self) -> Table:
        """Kernels that were refused, and dispatches that were not counted, with the reason. Empty is good."""
        rows = [
            {"kernel": one["name"], "reason": one["reason"], "detail": one["detail"], "dispatches": None}
            for one in self.document["refused"]
        ]
        rows += [
            {"kernel": one["name"], "reason": one["why"], "detail": one["detail"], "dispatches": one["dispatches"]}
            for one in self.document.get("uncounted", [])
        ]
        return Table(rows)

    def save(self, path: PathLike) -> None:
        """Writes the profile."""
        Path(path).write_text(json.dumps(self.document))

    @contextlib.contextmanager
    def _file(self) -> Iterator[Path]:
        if self.path is not None and self.path.exists():
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="wavetap-") as folder:
            path = Path(folder) / "profile"
            self.save(path)
            yield path

    def findings(self, program: PathLike) -> Table:
        """What the report finds in a run of this program: rule, level, kernel, place, message, share of the run."""
        with self._file() as path:
            log = _json(["export", "sarif", program, "--counters", path])
        rows = []
        for result in log["runs"][0].get("results", []):
            location = (result.get("locations") or [{}])[0]
            physical = location.get("physicalLocation", {})
            logical = (location.get("logicalLocations") or [{}])[0]
            rows.append(
                {
                    "rule": result["ruleId"],
                    "level": result["level"],
                    "kernel": logical.get("decoratedName") or logical.get("fullyQualifiedName"),
                    "file": physical.get("artifactLocation", {}).get("uri"),
                    "line": physical.get("region", {}).get("startLine"),
                    "message": result["message"]["text"],
                    "rank": result.get("rank"),
                }
            )
        return Table(rows)


def objects(path: PathLike) -> Table:
    """Code objects of a file: number, target, version, whether they can be rewritten."""
    document = _json(["inspect", "--format", "json", path])
    return Table([_plain(one) for one in document["objects"]])


def kernels(path: PathLike) -> Table:
    """Kernels of a file, with the registers and memory that they need."""
    document = _json(["inspect", "--format", "json", path])
    return Table(
        [
            {"object": one["id"], "target": one["target"], **_plain(kernel)}
            for one in document["objects"]
            for kernel in one.get("kernels", [])
        ]
    )


def disassembly(path: PathLike, *, kernel: Optional[str] = None, target: Optional[str] = None) -> Table:
    """Instructions of the kernels and functions of a file, in their order."""
    arguments = ["disasm", "--format", "json", path]
    for name, value in (("--kernel", kernel), ("--target", target)):
        arguments += [name, value] if value is not None else []
    rows = []
    for one in _json(arguments)["objects"]:
        for code in one["code"]:
            for instruction in code["instructions"]:
                source = instruction.get("source") or {}
                row = {"function": code["name"], "target": one["target"], **_plain(instruction)}
                row.update(file=source.get("file"), line=source.get("line"))
                rows.append(row)
    return Table(rows)


def slices(path: PathLike, profile: Optional[Profile] = None, *, target: Optional[str] = None) -> Table:
    """Waits of the kernels of a file, with what each waits for, the costliest first."""
    arguments: list[PathLike] = ["slice", "--format", "json", path]
    arguments += ["--target", target] if target is not None else []
    with contextlib.ExitStack() as stack:
        if profile is not None:
            arguments += ["--counters", stack.enter_context(profile._file())]
        document = _json(arguments)
    rows = []
    for kernel in document["kernels"]:
        for wait in kernel["waits"]:
            source = wait.get("source") or {}
            row = {"kernel": kernel["name"], "target": kernel["target"], **_plain(wait)}
            row.update(file=source.get("file"), line=source.get("line"), operations=wait["operations"])
            rows.append(row)
    return Table(rows)


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are no lists and no objects."""
    return {name: value for name, value in document.items() if not isinstance(value, (list, dict))}


@contextlib.contextmanager
def profile(name: str) -> Iterator[None]:
    """Marks a piece of a script that runs under ``wavetap profile``: ``--region NAME`` is of what was launched in it.

    Ranges may be inside others. Where the script does not run under the command, a RuntimeWarning says that nothing is
    counted.
    """
    library = _ranges()
    if library is None:
        warnings.warn(f"nothing is counted in {name!r}: not run under `wavetap profile -- …`", RuntimeWarning, 3)
        yield
        return
    if library.roctxRangePushA(os.fsencode(name)) < 0:
        raise OSError(f"the range {name!r} was not opened")
    try:
        yield
    finally:
        library.roctxRangePop()


def _ranges() -> Optional[ctypes.CDLL]:
    """What marks ranges, if this process was started by the command."""
    if _CONFIG not in os.environ:
        return None
    for name in _RANGES:
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(name)
            library.roctxRangePushA.argtypes = [ctypes.c_char_p]
            library.roctxRangePushA.restype = ctypes.c_int
            library.roctxRangePop.restype = ctypes.c_int
            return library
    return None
