"""What image instructions say in LLVM's tables of base operations: how many registers of data and address they take.

LLVM has a record for every number of registers; those that decode are the narrowest, and its disassembler widens them
afterwards. Here is one row for
each of them, with the facts that give the numbers.
"""

import collections

FAMILIES = ("mimg", "vimage", "vsample")

# What LLVM says about a base operation.
BASE = ("BVH", "Atomic", "AtomicX2", "Gather4", "NumExtraArgs", "Coordinates", "LodOrClampOrMip", "Gradients", "G16")

# Addresses that are not consecutive: the first one is in the encoding, which has so many bits, the others follow it,
# four in a dword.
ENCODED = 64
PER_DWORD = 4
# The most that an operation takes.
MOST = 12
# What of them does not fit into 128 bits is numbered by itself.
BEHIND = 128
# The kinds of one register.
ONE = "vector_v_1_b32"
ONE_BEHIND = "vector_behind_v_1_b32"


def number(bits):
    """The number that a field of a record has, which TableGen lists bit by bit."""
    return bits if isinstance(bits, int) else sum(bit << place for place, bit in enumerate(bits))


def runs(numbers):
    """{1, 2, 3, 8} -> '1..3 8'."""
    out = []
    for n in sorted(numbers):
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return " ".join(f"{a}..{b}" if a != b else f"{a}" for a, b in out)


class Images:
    def __init__(self, records):
        self.r = records
        # The numbers of address registers that each operation has forms for, by encoding.
        self.sizes = collections.defaultdict(set)
        for name in records.classes["MIMG"]:
            record = records.get(name)
            if record is not None:
                self.sizes[self.key(record)].add(number(record["VAddrDwords"]))

    def key(self, record):
        return record["BaseOpcode"]["def"], record["MIMGEncoding"]["def"]

    def separate(self, record, family):
        """How many address registers follow the encoding: as many as there is room for, unless the operation has a
        fixed number."""
        if family != "mimg" or "NSA" not in record["MIMGEncoding"]["def"]:
            return 0
        count = number(record["VAddrOperands"]) - 1
        if "Gfx11" in record["MIMGEncoding"]["def"]:
            count = min(count, PER_DWORD)
        return count if self.fixed(record) else min(-(-count // PER_DWORD) * PER_DWORD, MOST - 1)

    def impossible(self, record):
        """Whether it is for separate addresses of an operation that has only one, its level of detail: LLVM has no such
        form once it has counted."""
        base = self.base(record) if "BaseOpcode" in record else None
        return base is not None and "NSA" in record["MIMGEncoding"]["def"] and not number(base["Coordinates"])

    def fixed(self, record):
        return number(self.base(record)["BVH"])

    def fields(self, record, family):
        """The fields of the addresses that follow the encoding: {name: {value bit: instruction bit}}."""
        places = {f"vaddr{i}": ENCODED + 8 * (i - 1) for i in range(1, self.separate(record, family) + 1)}
        return {name: {bit: place % BEHIND + bit for bit in range(8)} for name, place in places.items()}

    def size(self, record, family):
        """Bytes of the encoding, without what does not fit into 128 bits."""
        return min(record["Size"] + -(-self.separate(record, family) // PER_DWORD) * 4, BEHIND // 8)

    def operands(self, operands, record, family, generation):
        """The operands of a row, with the addresses that follow the encoding, and with kinds of one register where
        their number is computed."""
        places = self.fields(record, family)
        if generation < 10 or self.fixed(record) and not places:
            return operands
        out = {}
        for operand, (role, access, kind) in operands.items():
            if operand in places:
                continue
            computed = (role == "vdata" or role.startswith("vaddr")) and not self.fixed(record)
            out[operand] = (role, access, ONE if computed else kind)
            if operand == "vaddr0":
                for name in places:
                    _, access, kind = operands.get(name, (name, "r", ONE))
                    behind = int(name.removeprefix("vaddr")) > (BEHIND - ENCODED) // 8
                    out[name] = (name, access, ONE_BEHIND if behind else kind if self.fixed(record) else ONE)
        return out

    def syntax(self, items, record, family):
        """The addresses that follow the encoding, in their place."""
        items = [item for item in items if item not in self.fields(record, family)]
        if "vaddr0" in items:
            place = items.index("vaddr0") + 1
            items[place:place] = list(self.fields(record, family))
        return items

    def base(self, record):
        return self.r[record["BaseOpcode"]["def"]]

    def facts(self, record, family, generation):
        """What the row says about the numbers of registers."""
        base = {name: number(self.base(record)[name]) for name in BASE}
        facts = {}
        if base["BVH"]:
            facts["data"] = "fixed"
        elif base["Atomic"]:
            facts["data"] = "swap" if base["AtomicX2"] else "atomic"
        elif base["Gather4"]:
            facts["data"] = "four"
        else:
            facts["data"] = "mask"
        if "[" in record["AsmString"]:
            facts["separate"] = True
        if generation < 10 or base["BVH"]:
            return facts
        if base["NumExtraArgs"]:
            facts["extra"] = base["NumExtraArgs"]
        if not base["Coordinates"]:
            facts["coordinates"] = 0
        if base["LodOrClampOrMip"]:
            facts["lod"] = 1
        if base["Gradients"]:
            facts["gradients"] = "half" if base["G16"] else "whole"
        sizes = self.sizes[self.key(record)]
        if "Gfx10NSA" in record["MIMGEncoding"]["def"]:
            # Later ones have what is too much for the encoding behind the last one.
            sizes = {size for size in sizes if size <= 1 + self.separate(record, family)}
        facts["sizes"] = runs(sizes)
        return facts
