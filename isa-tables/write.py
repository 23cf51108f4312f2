"""The tables as text."""

import os
import re

from factor import groups
from llvm_names import FILES
from pairs import ENCODING, pairs


def operand_list(operands):
    """The operands of a heading; addresses that are alike as `vaddr1..vaddr3 r vector_v_1_b32`."""
    out = []
    for operand in operands:
        role, _, rest = operand.partition(" ")
        first, _, rest_before = out[-1].partition(" ") if out else ("", "", "")
        name, number = re.fullmatch(r"(.*?)(\d*)", role).groups()
        if (
            name == "vaddr"
            and number not in ("", "1")
            and rest == rest_before
            and first.rpartition("..")[2] == f"{name}{int(number) - 1}"
        ):
            out[-1] = f"{first.partition('..')[0]}..{role} {rest}"
        else:
            out.append(operand)
    return out


def flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    if re.fullmatch(r"[A-Za-z_][\w ./()$-]*", value) and value not in (
        "yes",
        "no",
        "on",
        "off",
        "true",
        "false",
        "null",
    ):
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


def write_tables(folder, rows, kinds, layouts, sets):
    """rows: [(row, generation, [set])]."""
    used_kinds, used_layouts = set(), set()
    for row, _, _ in rows:
        if row["encoding"] != ENCODING:
            used_layouts.add(row["layout"])
        used_kinds.update(operand.strip("()").split()[-1] for operand in row["operands"])
    for file in FILES:
        with open(os.path.join(folder, "instructions", file + ".yaml"), "w", encoding="utf-8") as out:
            out.write("# Written by import.py; the README says what the columns mean.\n")
            if FILES[file] == [ENCODING]:
                write_pairs(out, pairs(rows, layouts, sets), sets)
                continue
            for group in groups(rows, file, sets):
                write_group(out, *group, sets)
    with open(os.path.join(folder, "operands.yaml"), "w", encoding="utf-8") as out:
        out.write("# Written by import.py: what a field's number means. The README explains the columns.\n")
        for name, kind in sorted(kinds.items()):
            if name in used_kinds:
                out.write(
                    f"{name}: {{"
                    + ", ".join(f"{k}: {flow(v)}" for k, v in kind.items() if v not in (False, ""))
                    + "}\n"
                )
    with open(os.path.join(folder, "layouts.yaml"), "w", encoding="utf-8") as out:
        out.write(
            "# Written by import.py: where the fields of an encoding are. '17,14@1' puts bit 14 into value bit 1 and "
            "bit 17 below it.\n"
        )
        for (family, size, signed, fields), name in sorted(
            layouts.items(), key=lambda i: (i[0][0], int(i[1].rsplit("_", 1)[1]))
        ):
            if name in used_layouts:
                out.write(
                    f"{name}: {{bytes: {size}, "
                    + ("signed_offset: true, " if signed else "")
                    + "fields: {"
                    + ", ".join(f"{k}: '{v}'" for k, v in fields)
                    + "}}\n"
                )
    return len(used_kinds), len(used_layouts)


def attributes(head):
    """What a heading has, without what is taken for granted."""
    parts = []
    for key, value in head.items():
        value = operand_list(value) if key == "operands" else value
        if value in ([], {}, 0, "", None) or key in ("branch", "memory") and value == "none":
            continue
        parts.append(f"{key}: {hex(value) if key in ('mask', 'match') else flow(value)}")
    return "{" + ", ".join(parts) + "}"


def cell(value):
    """A value in a column: words, or nothing."""
    return (" ".join(value) if isinstance(value, list) else str(value)) or "-"


def write_group(out, shared, forms, columns, members, sets):
    out.write(f"- form: {attributes(shared)}\n")
    if forms:
        out.write("  forms:\n" + "".join(f"  - {attributes(form)}\n" for form in forms))
    if columns:
        out.write("  columns: [" + ", ".join(columns) + "]\n")
    out.write("  rows:\n")
    for op, mnemonic, name, chosen, values in members:
        spelled = (
            mnemonic if re.sub(r"(_e32|_e64|_dpp|_sdwa|_e64_dpp)$", "", mnemonic) == name else f"{mnemonic}={name}"
        )
        out.write(" | ".join([f"  - {op} {spelled} {ranges(chosen, sets)}", *map(cell, values)]) + "\n")


def write_pairs(out, found, sets):
    for shared, first, second in found:
        out.write(f"- pair: {attributes(shared)}\n")
        for which, forms in (("first", first), ("second", second)):
            out.write(f"  {which}:\n")
            for form, members in forms:
                out.write(f"  - form: {attributes(form)}\n    rows:\n")
                out.write("".join(f"    - {op} {name} {ranges(chosen, sets)}\n" for op, name, chosen in members))
