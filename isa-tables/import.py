#!/usr/bin/env python3
"""Writes the instruction tables from LLVM's TableGen records.

    llvm-tblgen --dump-json -I llvm/include -I llvm/lib/Target/AMDGPU llvm/lib/Target/AMDGPU/AMDGPU.td > amdgpu.json
    isa-tables/import.py amdgpu.json

Reads facts (bits, registers, access, predicates) and writes them in the project's own names and form; README.md
explains
the rows. Only the standard library is needed. Which instruction sets are imported is the list in instruction_sets.yaml.
"""

import collections
import json
import os
import re
import sys

from records import Records, select
from rows import Importer
from write import write_tables

HERE = os.path.dirname(os.path.abspath(__file__))

# Fields of the image format that copies of tensors have no use for (DIM, DMASK, VADDR4): LLVM writes 1, 1 and null
# there, AMD's own assembler 0.
UNUSED_OF_TENSORS = 0x7C << 56 | 1 << 22 | 1
# The third source of what loads scales of matrices, which has none: v0 as LLVM 22 writes it, 0 as LLVM 24 does.
UNUSED_OF_SCALES = {0x100 << 50: 0x80 << 50}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(os.path.join(HERE, "instruction_sets.yaml"), encoding="utf-8") as file:
        sets = {
            name: int(generation)
            for name, generation in re.findall(r"^- \{name: ([\w-]+), generation: (\d+)", file.read(), re.M)
        }
    records = Records(sys.argv[1])
    importer = Importer(records)
    rows = {}
    for name, where in select(records, sets).items():
        for generation in sorted({sets[s] for s, _ in where}):
            if importer.images.impossible(records[name]):
                continue
            row = importer.row(name, generation)
            places = {place: order for place, order in where.items() if sets[place[0]] == generation}
            spellings = [row]
            if row["encoding"] == "tensor":
                spellings.append({**row, "match": row["match"] & ~UNUSED_OF_TENSORS})
            if re.match(r"v_wmma_(ld_)?scale", row["name"]):
                third = row["match"] & 0x1FF << 50
                spellings.append({**row, "match": row["match"] ^ third ^ UNUSED_OF_SCALES[third]})
            for row in spellings:
                rows.setdefault(json.dumps(row), (row, generation, {}, name))[2].update(places)
    # Where two records have the same bits on a target, the first in LLVM's order counts, but on gfx9 the one that is
    # written for gfx9 itself (the
    # others are LDS records of gfx8, which read M0).
    taken = {}
    for key, (row, generation, where, name) in rows.items():
        for place, order in where.items():
            bits = (place, row["encoding"], row["mask"], row["match"])
            preference = (0 if name.endswith("gfx9") else 1, order, name)
            if bits not in taken or preference < taken[bits][0]:
                taken[bits] = (preference, key)
    kept = collections.defaultdict(set)
    for (place, *_), (_, key) in taken.items():
        kept[key].add(place)
    chosen = []
    total = collections.Counter()
    for key, places in kept.items():
        row, generation, _, name = rows[key]
        # A form that only one of the wave sizes has, where the processor has both.
        by_waves = collections.defaultdict(list)
        for s in sets:
            sizes = tuple(size for size in (32, 64) if (s, size) in places)
            if sizes:
                both = 10 <= sets[s] < 1250
                by_waves[sizes[0] if len(sizes) == 1 and both else 0].append(s)
                total[s] += 1
        for wave, members in by_waves.items():
            chosen.append(({**row, "wave": wave}, generation, members))
    kinds, layouts = write_tables(HERE, chosen, importer.kinds, importer.layouts, list(sets))
    print("rows:", len(chosen), "by set:", dict(total), file=sys.stderr)
    print("layouts:", layouts, "operand kinds:", kinds, file=sys.stderr)


if __name__ == "__main__":
    main()
