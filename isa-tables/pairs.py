"""Pairs of operations in one instruction (VOPD): which operations can be the first and which the second, from the rows
of all pairs.

A pair is what its halves are: fixed bits, fields, operands and registers are those of the one and of the other. That is
checked for every pair.
"""

import collections
import functools

from llvm_names import OPCODES, PAIR_OPCODES
from records import segments

ENCODING = "vopd"
LITERAL = "imm - literal32"


def field_bits(layout):
    """A layout's fields as {(name, value bit, instruction bit)}."""
    bits = set()
    for name, places in layout:
        for run in places.split(","):
            place, _, shift = run.partition("@")
            high, _, low = place.partition(":")
            low = int(low or high)
            bits |= {(name, int(shift or 0) + at, low + at) for at in range(int(high) - low + 1)}
    return frozenset(bits)


def fields(bits):
    """The same as in layouts.yaml."""
    by_name = collections.defaultdict(dict)
    for name, value_bit, position in bits:
        by_name[name][value_bit] = position
    return {name: segments(places) for name, places in sorted(by_name.items())}


def common(values):
    return functools.reduce(lambda a, b: a & b, values)


def field(place):
    high, low = place
    return ((1 << (high - low + 1)) - 1) << low


def ordered(registers):
    return [name for name in ("vcc", "exec", "mode") if name in registers]


class Half:
    """What one of the operations adds to what all pairs have."""

    def __init__(self, name, op, place, rows, shared):
        self.name, self.op = name, op
        mask, bits, reads, prints = shared
        self.mask = common(row["mask"] for row, _ in rows) & ~mask
        self.bits = common(b for _, b in rows) - bits
        self.reads = common(set(row["reads"]) for row, _ in rows) - reads
        self.print = common(set(row["print"]) for row, _ in rows) - prints
        # No second operation is slower than a first one.
        (self.latency,) = {row["latency"] for row, _ in rows} if place == 0 else {""}
        # A first operation whose literal is the second's has the same one elsewhere.
        operands = {tuple(LITERAL if o == "literal_x" else o for o in halves(row)[place]) for row, _ in rows}
        (self.operands,) = operands

    def form(self):
        return {
            "mask": self.mask, "fields": fields(self.bits), "operands": list(self.operands),
            "print": sorted(self.print), "reads": ordered(self.reads),
            "latency": self.latency,
        }  # fmt: skip


def halves(row):
    at = row["operands"].index("second")
    return row["operands"][:at], row["operands"][at + 1 :]


def pairs(rows, layouts, sets):
    """[(what all pairs share, [forms of first operations], [forms of second operations])], the forms as [(form,
    [(opcode, name, [set])])]."""
    named = {name: key for key, name in layouts.items()}
    classes = collections.defaultdict(lambda: collections.defaultdict(list))
    for row, _, chosen in rows:
        if row["encoding"] == ENCODING:
            bits = field_bits(named[row["layout"]][3])
            for s in chosen:
                classes[row["match"] >> 26 & 63, row.get("wave", 0)][s].append((row, bits))
    for (family, wave), by_set in sorted(classes.items()):
        first_at, second_at = PAIR_OPCODES[family]
        found = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
        for s, members in by_set.items():
            shared, firsts, seconds = split(members, first_at, second_at)
            key = tuple(sorted((k, repr(v)) for k, v in shared.items()))
            found[key]["shared"] = shared
            for which, operations in (("first", firsts), ("second", seconds)):
                for half in operations:
                    found[key][which][repr(half.form()), half.op, half.name].append((s, half.form()))
        for group in found.values():
            shared = {
                **group["shared"],
                "wave": wave,
                "first_at": f"{first_at[0]}:{first_at[1]}",
                "second_at": f"{second_at[0]}:{second_at[1]}",
            }
            yield shared, by_form(group["first"], sets), by_form(group["second"], sets)


def split(members, first_at, second_at):
    """What all pairs of a set share, and its first and second operations."""
    opcodes = field(first_at) | field(second_at)
    mask, bits = common(row["mask"] for row, _ in members), common(b for _, b in members)
    reads, prints = common(set(row["reads"]) for row, _ in members), common(set(row["print"]) for row, _ in members)
    (match,) = {row["match"] & ~opcodes for row, _ in members}
    (flags,) = {tuple(row["flags"]) for row, _ in members}
    assert not any(row["writes"] or row["counters"] or row["bytes"] or row["memory"] != "none" for row, _ in members)
    by_name = [collections.defaultdict(list), collections.defaultdict(list)]
    for row, b in members:
        for names, name, (high, low) in zip(by_name, row["name"].split("::"), (first_at, second_at)):
            names[name, row["match"] >> low & ((1 << (high - low + 1)) - 1)].append((row, b))
    own = (mask, bits, reads, prints)
    firsts, seconds = (
        [Half(name, op, place, rows, own) for (name, op), rows in names.items()] for place, names in enumerate(by_name)
    )
    # Every first operation goes with every second one, and a pair is no more than both.
    assert len(members) == len(firsts) * len(seconds)
    for row, b in members:
        x, y = row["name"].split("::")
        x, y = next(h for h in firsts if h.name == x), next(h for h in seconds if h.name == y)
        assert row["mask"] == mask | x.mask | y.mask and b == bits | x.bits | y.bits, row["name"]
        assert set(row["reads"]) == reads | x.reads | y.reads and set(row["print"]) == prints | x.print | y.print, row[
            "name"
        ]
    shared = {
        "encoding": ENCODING, "mask": mask, "match": match, "fields": fields(bits), "print": sorted(prints),
        "reads": ordered(reads), "flags": list(flags),
        "op_at": "{}:{}".format(*OPCODES[ENCODING]),
    }  # fmt: skip
    return shared, firsts, seconds


def by_form(operations, sets):
    forms = collections.defaultdict(list)
    for (text, op, name), found in operations.items():
        forms[text].append((op, name, sorted((s for s, _ in found), key=sets.index), found[0][1]))
    for members in forms.values():
        members.sort(key=lambda m: (m[0], m[1]))
    return [
        (members[0][3], [m[:3] for m in members])
        for members in sorted(forms.values(), key=lambda members: members[0][:2])
    ]
