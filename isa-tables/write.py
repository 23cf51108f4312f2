"""The tables as text: rows that differ in name and opcode only are written under one heading."""

import collections
import json
import os
import re

from llvm_names import FILES, OPCODES

# What a heading has; the rest of a row is its mnemonic, opcode and sets.
HEADING = ("encoding", "mask", "match", "layout", "operands", "print", "reads", "writes", "branch", "memory", "bytes", "counters", "latency", "flags", "wave")


def flow(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    if re.fullmatch(r"[A-Za-z_][\w ./()-]*", value) and value not in ("yes", "no", "on", "off", "true", "false", "null"):
        return value
    return "'" + value + "'"


def ranges(chosen, sets):
    """['gfx1010', 'gfx1011', …] -> 'gfx1010..gfx1030': runs of neighbours in the list of instruction sets."""
    places = sorted(sets.index(s) for s in chosen)
    runs = []
    for place in places:
        if runs and runs[-1][1] + 1 == place:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return " ".join(sets[a] if a == b else f"{sets[a]}..{sets[b]}" for a, b in runs)


def heading(row, generation):
    """The part of a row that rows share: the opcode is taken out of the fixed bits."""
    place = OPCODES.get((row["encoding"], generation), OPCODES.get(row["encoding"]))
    head = {key: row[key] for key in HEADING if key in row}
    opcode_bits = 0
    if place:
        high, low = place
        opcode_bits = ((1 << (high - low + 1)) - 1) << low
        # Opcode bits that a form leaves open stay where they are.
        if row["mask"] & opcode_bits != opcode_bits:
            opcode_bits = 0
    head["match"] = row["match"] & ~opcode_bits
    head["op_at"] = f"{place[0]}:{place[1]}" if opcode_bits else ""
    op = (row["match"] & opcode_bits) >> place[1] if opcode_bits else row["op"]
    return head, op


def write_tables(folder, rows, kinds, layouts, sets):
    """rows: [(row, generation, [set])]."""
    families = collections.defaultdict(lambda: collections.defaultdict(list))
    for row, generation, chosen in rows:
        head, op = heading(row, generation)
        families[row["encoding"]][json.dumps(head)].append((op, row["mnemonic"], row["name"], chosen))
    used_kinds, used_layouts = set(), set()
    for file, names in FILES.items():
        with open(os.path.join(folder, "instructions", file + ".yaml"), "w", encoding="utf-8") as out:
            out.write("# Written by import.py; the README says what the columns mean.\n")
            for family in names:
                groups = sorted(families[family].items(), key=lambda item: (min(sets.index(s[0]) for _, _, _, s in item[1]), min(item[1]), item[0]))
                for text, members in groups:
                    head = json.loads(text)
                    used_layouts.add(head["layout"])
                    used_kinds.update(operand.strip("()").split()[-1] for operand in head["operands"])
                    write_group(out, head, members, sets)
    with open(os.path.join(folder, "operands.yaml"), "w", encoding="utf-8") as out:
        out.write("# Written by import.py: what a field's number means. The README explains the columns.\n")
        for name, kind in sorted(kinds.items()):
            if name in used_kinds:
                out.write(f"{name}: {{" + ", ".join(f"{k}: {flow(v)}" for k, v in kind.items() if v not in (False, "")) + "}\n")
    with open(os.path.join(folder, "layouts.yaml"), "w", encoding="utf-8") as out:
        out.write("# Written by import.py: where the fields of an encoding are. '17,14@1' puts bit 14 into value bit 1 and bit 17 below it.\n")
        for (family, size, signed, fields), name in sorted(layouts.items(), key=lambda i: (i[0][0], int(i[1].rsplit("_", 1)[1]))):
            if name in used_layouts:
                out.write(f"{name}: {{bytes: {size}, " + ("signed_offset: true, " if signed else "") + "fields: {" + ", ".join(f"{k}: '{v}'" for k, v in fields) + "}}\n")
    return len(used_kinds), len(used_layouts)


def write_group(out, head, members, sets):
    parts = []
    for key, value in head.items():
        if value in ([], 0, "", None) or key in ("branch", "memory") and value == "none":
            continue
        parts.append(f"{key}: {hex(value) if key in ('mask', 'match') else flow(value)}")
    out.write("- form: {" + ", ".join(parts) + "}\n  rows:\n")
    for op, mnemonic, name, chosen in sorted(members, key=lambda m: (m[0], m[1], sets.index(m[3][0]))):
        spelled = mnemonic if re.sub(r"(_e32|_e64|_dpp|_sdwa|_e64_dpp)$", "", mnemonic) == name else f"{mnemonic}={name}"
        out.write(f"  - {op} {spelled} {ranges(chosen, sets)}\n")
