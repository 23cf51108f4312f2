"""What rows have in common, so that an operation is written once: its forms are under a heading, and what differs
between operations is in columns."""

import collections
import json
import re

from llvm_names import FILES, opcode_places
from records import segments

# What a heading has; the rest of a row is its mnemonic, opcode and sets.
HEADING = (
    "encoding",
    "mask",
    "match",
    "layout",
    "operands",
    "image",
    "print",
    "reads",
    "writes",
    "branch",
    "memory",
    "bytes",
    "counters",
    "latency",
    "flags",
    "wave",
)
# Encodings whose operations have the same forms and differ in the width of the data.
WITH_DATA = {"smem", "ds", "flat", "global", "scratch", "mubuf", "mtbuf", "mimg", "vimage", "vsample"}
# The operands that are the data.
DATA = ("vdata", "vdst", "sdata", "sdst", "data0", "data1")
# What else is a column if it differs.
COLUMNS = ("bytes", "flags")


def heading(row, generation):
    """The part of a row that rows share: the opcode is taken out of the fixed bits."""
    places = opcode_places(row["encoding"], generation)
    head = {key: row[key] for key in HEADING if key in row}
    opcode_bits = sum(1 << place for place in places.values())
    # Opcode bits that a form leaves open stay where they are.
    if row["mask"] & opcode_bits != opcode_bits:
        opcode_bits = 0
    head["match"] = row["match"] & ~opcode_bits
    head["op_at"] = segments(places) if opcode_bits else ""
    op = sum((row["match"] >> place & 1) << bit for bit, place in places.items()) if opcode_bits else row["op"]
    return head, op


def lines(rows, families, sets):
    """[(opcode, mnemonic, name, [set], [form])]: every operation with all of its forms, for the sets that have the same
    ones."""
    forms = collections.defaultdict(lambda: collections.defaultdict(list))
    for row, generation, chosen in rows:
        if row["encoding"] in families:
            head, op = heading(row, generation)
            for s in chosen:
                forms[op, row["mnemonic"], row["name"], head["op_at"]][s].append(head)
    found = []
    for (op, mnemonic, name, _), by_set in forms.items():
        same = collections.defaultdict(list)
        for s in sets:
            if s in by_set:
                ordered = sorted(
                    by_set[s],
                    key=lambda head: (families.index(head["encoding"]), head["match"], head["mask"], json.dumps(head)),
                )
                same[json.dumps(ordered)].append(s)
        found += [(op, mnemonic, name, chosen, json.loads(text)) for text, chosen in same.items()]
    return found


def data_operand(operand):
    """(role, access, what kind of register, its width and type) of an operand that is data."""
    parts = operand.strip("()").split()
    if len(parts) != 3 or parts[0] not in DATA:
        return None
    stem = re.match(r"(.*?_)(\d+_.*|mask_.*)$", parts[2])
    return (parts[0], parts[1], *stem.groups()) if stem else None


def abstract(forms):
    """The forms with variables for what differs between operations of a kind, and the values."""
    values = {}
    forms = [dict(form) for form in forms]
    if not all(form["encoding"] in WITH_DATA for form in forms):
        return forms, values
    for key in COLUMNS:
        if all(form[key] == forms[0][key] for form in forms):
            values[key] = forms[0][key]
            for form in forms:
                form[key] = None
    data = [(data_operand(operand), form) for form in forms for operand in form["operands"] if data_operand(operand)]
    accesses, widths = collections.defaultdict(set), collections.defaultdict(list)
    for (role, access, _, width), _ in data:
        accesses[role].add(access)
        if width not in widths[role]:
            widths[role].append(width)
    for role, found in widths.items():
        for place, width in enumerate(found):
            values[column(role, place, width, data)] = width
        if len(accesses[role]) == 1:
            values[f"{role}_access"] = accesses[role].copy().pop()
    for form in forms:
        form["operands"] = [variable(operand, widths, accesses, data) for operand in form["operands"]]
    return forms, values


def column(role, place, width, data):
    """The name for the place-th width of a role: what makes it another one is usually the status dword behind it."""
    if place == 0:
        return role
    status = all("tfe" in form["print"] for (r, _, _, w), form in data if (r, w) == (role, width))
    return f"{role}_tfe" if status and place == 1 else f"{role}_{place + 1}"


def variable(operand, widths, accesses, data):
    found = data_operand(operand)
    if not found:
        return operand
    role, access, stem, width = found
    written = f"{role} ${role}_access" if len(accesses[role]) == 1 else f"{role} {access}"
    written += f" {stem}${column(role, widths[role].index(width), width, data)}"
    return f"({written})" if operand.startswith("(") else written


def groups(rows, file, sets):
    """[(what all forms share, [what each has of its own], [column], [(opcode, mnemonic, name, [set], [value])])] of a
    file, in order."""
    families = FILES[file]
    same = collections.defaultdict(list)
    for op, mnemonic, name, chosen, forms in lines(rows, families, sets):
        forms, values = abstract(forms)
        same[json.dumps(forms), tuple(values)].append((op, mnemonic, name, chosen, values))

    def place(item):
        (text, _), members = item
        first = min(sets.index(member[3][0]) for member in members)
        return (
            families.index(json.loads(text)[0]["encoding"]),
            first,
            min((op, mnemonic) for op, mnemonic, *_ in members),
            text,
        )

    for (text, names), members in sorted(same.items(), key=place):
        forms = json.loads(text)
        # What does not differ after all goes back into the forms.
        columns = [name for name in names if len({json.dumps(member[4][name]) for member in members}) > 1]
        for name in set(names) - set(columns):
            value = members[0][4][name]
            for form in forms:
                if name in COLUMNS:
                    form[name] = value
                else:
                    form["operands"] = [re.sub(rf"\${name}\b", value, operand) for operand in form["operands"]]
        for form in forms:
            for name in set(COLUMNS) & set(columns):
                del form[name]
        shared = {key: value for key, value in forms[0].items() if all(form[key] == value for form in forms)}
        own = [{key: value for key, value in form.items() if key not in shared} for form in forms]
        members = [
            (op, mnemonic, name, chosen, [values[name] for name in columns])
            for op, mnemonic, name, chosen, values in members
        ]
        members.sort(key=lambda member: (member[0], member[1], sets.index(member[3][0])))
        yield shared, own if len(own) > 1 else [], columns, members
