"""The mnemonics of Triton's assembly text, and how its kernels begin: compared with a disassembly, and with the list
of those that were seen with the pinned release (seen.json)."""

import json
import re
from pathlib import Path

SEEN = Path(__file__).resolve().parent / "seen.json"
KINDS = ("mnemonics", "prologues", "hardware registers")
INSTRUCTION = re.compile(r"^\s*([a-z][a-z0-9_]+)\b(?!:)(.*)$")


def assembly(text):
    """The instructions of an assembly text, as (mnemonic, operands), and None for an alignment."""
    result = []
    inside = False
    for line in text.splitlines():
        line = line.split(";")[0].rstrip()
        if re.match(r"[A-Za-z_]\w*:$", line):
            inside = True
        elif line.startswith(".Lfunc_end"):
            inside = False
        elif inside and line.lstrip().startswith(".p2align"):
            result.append(None)
        elif inside and (match := INSTRUCTION.match(line)):
            result.append((match[1], " ".join(match[2].split())))
    return result


def disassembly(text):
    """The same of `wavetap disasm --plain`."""
    result = []
    for line in text.splitlines():
        line = line.split("//")[0].rstrip()
        if match := INSTRUCTION.match(line):
            result.append((match[1], " ".join(match[2].split())))
        elif line.lstrip().startswith(".long"):
            result.append((".long", line.split()[-1]))
    return result


def compare(theirs, ours):
    """The first difference between Triton's assembly text and a disassembly of the object, if there is one."""
    ours = disassembly(ours)
    at = 0
    aligned = False
    for step in assembly(theirs):
        if step is None:
            aligned = True
            continue
        while aligned and at < len(ours) and ours[at][0] == "s_nop" and ours[at] != step:
            at += 1
        # What fills an alignment is what the text has, too: a run of s_nop 0.
        aligned = aligned and step[0] == "s_nop"
        if at >= len(ours):
            return f"the disassembly ends before {step[0]} {step[1]}"
        # Only what users wrote as inline assembly lacks the suffix of its encoding.
        if ours[at][0] not in (step[0], step[0] + "_e32", step[0] + "_e64"):
            return f"{ours[at][0]} {ours[at][1]} is {step[0]} {step[1]} in the assembly text"
        at += 1
    rest = [step for step in ours[at:] if step[0] not in ("s_code_end", "s_nop") and step != (".long", "0x00000000")]
    return f"the disassembly has {rest[0][0]} {rest[0][1]} after the end" if rest else None


def prologue(steps):
    """How a kernel begins: the mnemonics before the first vector instruction or the first alignment, without
    repetitions; what the entry does is what a rewriter has to know."""
    words = []
    for step in steps:
        if step is None:
            words.append("align")
            break
        if step[0].startswith(("v_", "global_", "buffer_", "ds_", "flat_")):
            break
        if not words or words[-1] != step[0]:
            words.append(step[0])
        if len(words) == 8:
            break
    return " ".join(words)


def check(objects, archs, names, bless=False):
    """What is new in the assembly texts, in lines; nothing if they have only what was seen."""
    seen = json.loads(SEEN.read_text()) if SEEN.exists() else {}
    lines = []
    for arch in archs:
        known = {kind: [] for kind in KINDS} | seen.get(arch, {})
        now = {kind: {} for kind in KINDS}
        for name in names:
            path = Path(objects) / arch / f"{name}.s"
            if not path.exists():
                continue
            steps = assembly(path.read_text())
            for step in steps:
                if step:
                    now["mnemonics"].setdefault(step[0], name)
                    for register in re.findall(r"hwreg\((\w+)", step[1]):
                        now["hardware registers"].setdefault(f"{step[0]} {register}", name)
            now["prologues"].setdefault(prologue(steps), name)
        for kind in KINDS:
            new = {what: where for what, where in now[kind].items() if what not in known[kind]}
            lines += [f"{arch}: {kind} not seen before: {what} (in {where})" for what, where in sorted(new.items())]
            known[kind] = sorted(set(known[kind]) | set(now[kind]))
        seen[arch] = known
    if bless:
        SEEN.write_text(json.dumps(seen, indent=1) + "\n")
        return []
    return lines
