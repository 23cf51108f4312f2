#!/usr/bin/env python3
"""Writes the instruction tables from LLVM's TableGen records.

    llvm-tblgen --dump-json -I llvm/include -I llvm/lib/Target/AMDGPU llvm/lib/Target/AMDGPU/AMDGPU.td > amdgpu.json
    isa-tables/import.py amdgpu.json

Reads facts (bits, registers, access, predicates) and writes them in the project's own names and form; README.md explains
the rows. Only the standard library is needed. Which processors are imported is the list in targets.yaml.
"""

import collections
import json
import os
import re
import sys

from llvm_names import (
    DECODER_TABLES,
    FAMILIES,
    FILES,
    FIXED_MODIFIERS,
    KNOWN_MODIFIERS,
    MODIFIERS,
    ROLES,
    SCALAR_CLASSES,
    TYPES,
)
from meaning import branch_of, counters_of, flags_of, half_result, implicit, latency_of, memory_of, writes_partly

HERE = os.path.dirname(os.path.abspath(__file__))

class Records:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.all = json.load(file)
        self.classes = self.all["!instanceof"]

    def __getitem__(self, name):
        return self.all[name]

    def get(self, name):
        return self.all.get(name)

    def features(self, cpu):
        processor = next(self.all[n] for n in self.classes["ProcessorModel"] if self.all[n]["Name"] == cpu)
        found, todo = set(), [f["def"] for f in processor["Features"]]
        while todo:
            feature = todo.pop()
            if feature not in found:
                found.add(feature)
                todo += [f["def"] for f in self.all[feature]["Implies"]]
        return found

    def holds(self, dag, features):
        if "args" not in dag:
            return dag["def"] in features
        parts = [self.holds(arg[0], features) for arg in dag["args"]]
        return {"all_of": all(parts), "any_of": any(parts), "not": not parts[0]}[dag["operator"]["def"]]

    def available(self, record, features):
        for predicate in record["Predicates"]:
            predicate = self.all[predicate["def"]]
            if predicate.get("AssemblerMatcherPredicate") and not self.holds(predicate["AssemblerCondDag"], features):
                return False
        return True


def tables(features, size):
    return [name for name, feature in DECODER_TABLES.get(size, []) if feature is None or feature in features]


def bit(record, position):
    """'?' (ignored), 0, 1 or (variable, index)."""
    entry = record["Inst"][position]
    if entry is None:
        return "?"
    if isinstance(entry, int):
        return entry
    if entry["kind"] == "varbit":
        return (entry["var"], entry["index"])
    if entry["kind"] == "var" and entry["var"] == "SOffsetEn":
        return 0  # The forms with both offsets fix this bit to 1; for the others it must be 0.
    if entry["kind"] == "var" and entry["var"] in MODIFIERS:
        return (entry["var"], 0)
    return "?"


def modifier_bit(variable, index, kind, family, base):
    """Our modifier name and bit for one bit of LLVM's srcN_modifiers."""
    source = int(variable[3])
    if index == 0:
        return ("neg", source)
    if index == 1:
        return ("neg_hi" if "Packed" in kind else "abs", source)
    if index == 2:
        return ("op_sel", source)
    if index == 3:
        if family == "vop3p":
            return ("op_sel_hi", source)
        # The 8-bit float conversions choose a byte with the first two bits of op_sel.
        return ("op_sel", 1 if re.match(r"v_cvt_(pk_)?f32_(fp8|bf8)", base) else 3)
    if index == 4:
        return ("sext", source)
    raise ValueError((variable, index, kind))


def segments(bits):
    """{value bit: instruction bit} -> 'high:low' runs, most significant first, joined by ','. A gap in the value bits is 'xN'."""
    runs = []
    for value_bit in sorted(bits):
        position = bits[value_bit]
        if runs and runs[-1][2] + runs[-1][1] == value_bit and runs[-1][0] + runs[-1][1] == position:
            runs[-1][1] += 1
        else:
            runs.append([position, 1, value_bit])
    out = []
    for position, length, value_bit in runs:
        text = f"{position + length - 1}:{position}" if length > 1 else f"{position}"
        out.append(text + (f"@{value_bit}" if value_bit else ""))
    return ",".join(reversed(out))


class Importer:
    def __init__(self, records, targets):
        self.r = records
        self.targets = targets
        self.features = {t: records.features(t) for t in targets}
        self.kinds = {}
        self.layouts = {}
        self.layout_names = collections.Counter()
        self.rows = collections.defaultdict(list)
        self.widest_address = collections.Counter()

    # -- selection ------------------------------------------------------------------------------------------------------------

    def select(self):
        chosen = collections.defaultdict(dict)
        counts = collections.Counter()
        for name in sorted(self.r.classes["InstructionEncoding"]):
            record = self.r[name]
            if "Inst" not in record or record.get("isPseudo"):
                continue
            match = re.match(r"(IMAGE_\w+?)_V\d+_V(\d+)", name)
            if match:
                self.widest_address[match.group(1)] = max(self.widest_address[match.group(1)], int(match.group(2)))
            if record["isCodeGenOnly"] or record["isAsmParserOnly"]:
                continue
            for target, features in self.features.items():
                order = tables(features, record["Size"])
                if record["DecoderNamespace"] in order and self.r.available(record, features):
                    chosen[name][target] = order.index(record["DecoderNamespace"])
                    counts[target] += 1
        print("records that decode:", dict(counts), file=sys.stderr)
        return chosen

    # -- one record -------------------------------------------------------------------------------------------------------------

    def family(self, record):
        supers = set(record["!superclasses"])
        for family, cls, opcode in FAMILIES:
            if cls in supers:
                return family, opcode
        raise ValueError(record["!name"])

    def kind(self, operand, family, size, signs=False):
        """Our operand kind for LLVM's operand definition: (name, description)."""
        d = self.r[operand]
        is_class = "RegisterClassLike" in d["!superclasses"] or "RegisterClass" in d["!superclasses"]
        register_class = operand if is_class else (d.get("RegClass") or {}).get("def")
        decoder = d.get("DecoderMethod") or ""
        optype = d.get("OperandType") or ""
        if register_class is None:
            return None
        # A literal follows 32-bit forms; `v_madmk` and `v_madak` share theirs with a source.
        literal = "_IMM_" in optype and (size == 4 or family == "vop2")
        inline = "_IMM_" in optype or "_INLINE_" in optype
        match = re.search(r"_(\d+)", register_class)
        dwords = 2 if register_class.startswith("SReg_1") and match.group(1) == "1" else int(match.group(1)) // 32
        if register_class in SCALAR_CLASSES:
            accepts = SCALAR_CLASSES[register_class]
        elif register_class.startswith("AV_"):
            accepts = "va"
        elif register_class.startswith(("VReg_", "VGPR_")):
            accepts = "v"
        elif register_class.startswith(("AReg_", "AGPR_")):
            accepts = "a"
        else:
            raise ValueError(register_class)
        aligned = "AlignTarget" in register_class or "Align2" in register_class
        if "SDWAVopcDst" in decoder:
            coding = "sdwa_sdst"
        elif "SDWASrc" in decoder:
            coding = "sdwa"
        elif "decodeSrcAV10" in decoder:
            coding = "src_acc"
        elif "A9" in decoder:
            coding = "src_accum"
        elif "decodeSrcReg" in decoder or "VSrc_f64" in decoder:
            coding = "src"
        elif "decodeAVLdSt" in decoder or "decodeAV10" in decoder or register_class == "AV_LdSt_32_Align2":
            coding = "vector_acc"
        elif accepts[0] == "s":
            coding = "src"
        elif accepts == "a":
            coding = "accum"
        else:
            coding = "vector"
        if inline:
            accepts += "i"
        if literal:
            accepts += "l"
        typ = next((ours for theirs, ours in TYPES if theirs in optype), None)
        if typ is None:
            typ = {1: "b32", 2: "b64"}.get(dwords, "untyped")
        data_pair = "_LdSt_32_Align2" in register_class
        if data_pair:
            aligned = True
        name = f"{coding}_{accepts}_{dwords}_{typ}" + ("_even" if aligned and (dwords > 1 or data_pair) else "")
        name += "_signed" if signs else ""
        self.kinds[name] = {
            "coding": coding,
            "accepts": accepts,
            "dwords": dwords,
            "type": typ,
            "even": aligned and (dwords > 1 or data_pair),
            "signs": signs,
        }
        return name

    def row(self, name):
        record = self.r[name]
        family, opcode_bits = self.family(record)
        size = record["Size"]
        bits = [bit(record, i) for i in range(size * 8)]
        mask = sum(1 << i for i, b in enumerate(bits) if b in (0, 1) and not isinstance(b, tuple))
        match = sum(1 << i for i, b in enumerate(bits) if b == 1 and not isinstance(b, tuple))
        opcode = 0
        if opcode_bits:
            high, low = opcode_bits
            opcode = (match >> low) & ((1 << (high - low + 1)) - 1)
        if family == "flat":
            family = {0: "flat", 1: "scratch", 2: "global"}[match >> 14 & 3]
        if family == "mimg":
            opcode |= (match & 1) << 7

        base = re.match(r"\w+?(?=_e32|_e64|_dpp|_sdwa|\W|$)", record["AsmString"]).group(0)
        defs = {}
        outs = [(a[1], a[0]["def"]) for a in record["OutOperandList"]["args"]]
        ins = [(a[1], a[0]["def"]) for a in record["InOperandList"]["args"]]
        for operand, definition in ins + outs:
            defs[operand] = definition

        # Fields: operand or modifier name -> {value bit: instruction bit}.
        fields = collections.defaultdict(dict)
        variables = set()
        for position, b in enumerate(bits):
            if not isinstance(b, tuple):
                if b in (0, 1) and position in FIXED_MODIFIERS.get(family, {}):
                    fields[FIXED_MODIFIERS[family][position]][0] = position
                continue
            variable, index = b
            variables.add(variable)
            if variable.endswith("_modifiers"):
                modifier, value_bit = modifier_bit(variable, index, defs[variable], family, base)
                fields[modifier][value_bit] = position
            elif variable == "cpol":
                fields[{0: "glc", 1: "slc", 4: "scc"}[index]][0] = position
            elif variable in MODIFIERS and variable not in ROLES:
                fields[MODIFIERS[variable]][index] = position
            else:
                fields[variable][index] = position

        mnemonic, syntax = self.syntax(record, family, dict(outs + ins), outs)
        assert base == re.sub(r"_(e32|e64|dpp|sdwa)$", "", mnemonic), (base, mnemonic)

        # Access: outputs are written; an output tied to an input is also read.
        out_names = [o for o, _ in outs]
        in_names = [i for i, _ in ins]
        # Sources whose sign modifiers are written around them, `-|v0|`; elsewhere the bits are there and not written.
        signed = {
            o
            for o in in_names
            if f"${o}_modifiers" in record["AsmString"]
            and self.r[defs[f"{o}_modifiers"]].get("PrintMethod") == "printOperandAndFPInputMods"
        }
        tied = set()
        for constraint in re.findall(r"\$(\w+) = \$(\w+)", record["Constraints"]):
            tied.update(constraint)
        operands = {}
        for operand, definition in outs + ins:
            if operand not in variables or operand.endswith("_modifiers"):
                continue
            role = ROLES.get(operand)
            if role is None and operand == "simm16":
                role = {"hwreg": "hwreg", "SendMsg": "message", "SWaitCnt": "wait_count", "SOPPBrTarget": "simm_target"}.get(
                    definition, "simm16"
                )
            if role is None:
                continue
            if operand == "sdst" and operand not in out_names and not base.startswith("s_movreld"):
                role = "src0"
            kind = self.kind(definition, family, size, signs=operand in signed)
            if kind is None:
                kind = self.immediate(definition, role, fields[operand])
                access = "-"
            elif operand in out_names:
                access = "w"
                if operand in tied or f"{operand}_in" in in_names:
                    access = "rw"
            else:
                access = "r"
                if operand in tied and operand not in ("sdata",):
                    access = "rw"
            if access == "w" and (writes_partly(base, family, role) or "op_sel" in fields and family == "vop3" and half_result(base)):
                access = "rw"
            if base.startswith("s_movreld") and operand == "sdst":
                access = "rw"  # The register that is written is this one plus M0.
            if operand == "sdata" and "sdst" in out_names:
                continue
            operands[operand] = (role, access, kind)
        if base == "v_swap_b32":
            operands = {k: (v[0], "rw", v[2]) for k, v in operands.items()}
        if family == "smem" and "sdst" in operands and "atomic" in base:
            role, access, kind = operands["sdst"]
            operands["sdst"] = ("sdata", "rw", kind)
        if family == "mimg" and "vdata" in operands and "atomic" in base:
            role, access, kind = operands["vdata"]
            operands["vdata"] = (role, "rw", kind)
        if family == "mimg" and "vaddr" in operands:
            role, access, kind = operands["vaddr"]
            widest = self.widest_address[re.match(r"(IMAGE_\w+?)_V\d+_V(\d+)", name).group(1)]
            operands["vaddr"] = (role, access, self.wider(kind, widest))

        # Field names in the layout are roles for operands, so rows need not repeat them.
        renamed = {}
        for field, positions in fields.items():
            if field in operands:
                renamed[operands[field][0]] = segments(positions)
            elif field in KNOWN_MODIFIERS:
                renamed[field] = segments(positions)
        ops, suffix = [], []
        for item in syntax:
            if item in operands:
                role, access, kind = operands[item]
                ops.append(f"{role} {access} {kind}")
            elif item in ("vcc", "off"):
                ops.append(item)
            else:
                suffix.append(item)
        listed = {o.split()[0] for o in ops}
        for operand, (role, access, kind) in operands.items():
            if role not in listed and operand != "src3":
                ops.append(f"({role} {access} {kind})")
        layout = self.layout(family, size, renamed)

        uses = {u["def"] for u in record["Uses"]}
        changes = {u["def"] for u in record["Defs"]}
        reads, writes = implicit(base, family, uses, changes)
        memory, count = memory_of(base, family, renamed, mask, match)
        row = {
            "name": base,
            "mnemonic": mnemonic,
            "encoding": family,
            "op": opcode,
            "mask": mask,
            "match": match,
            "layout": layout,
            "operands": ops,
            "print": suffix,
            "reads": reads,
            "writes": writes,
            "branch": branch_of(base),
            "memory": memory,
            "bytes": count,
            "counters": counters_of(base, family, record, memory),
            "latency": latency_of(base, family, record),
            "flags": flags_of(base, family, record, operands, defs),
        }
        return row

    def wider(self, kind, dwords):
        description = dict(self.kinds[kind])
        shown = description["dwords"]
        if dwords <= shown:
            return kind
        name = f"{kind}_up_to_{dwords}"
        description["shown"] = shown
        description["dwords"] = dwords
        self.kinds[name] = description
        return name

    def immediate(self, definition, role, positions):
        width = max(positions) + 1
        signed = role == "simm_target" or (role == "simm16" and definition == "s16imm")
        if role == "imm":
            name = "literal16" if definition == "KImmFP16" else "literal32"
            self.kinds[name] = {"coding": "literal", "accepts": "l", "dwords": 1, "type": "f16" if definition == "KImmFP16" else "b32"}
            return name
        name = f"{'signed' if signed else 'unsigned'}{width}"
        form = {"printGPRIdxMode": "_index_mode", "printInterpSlot": "_slot", "printU16ImmOperand": "_hex", "printEndpgm": "_endpgm"}
        method = self.r[definition].get("PrintMethod")
        plain = self.r[definition].get("OperandType") == "OPERAND_IMMEDIATE" and method == "printOperand"
        name += form.get(method, "_inline" if plain else "")
        self.kinds[name] = {"coding": "signed" if signed else "unsigned", "accepts": "", "dwords": 1, "type": "b32", "form": name.partition("_")[2] or "decimal"}
        return name

    def layout(self, family, size, fields):
        key = (family, size, tuple(sorted(fields.items())))
        if key not in self.layouts:
            self.layout_names[family] += 1
            self.layouts[key] = f"{family}_{self.layout_names[family]}"
        return self.layouts[key]

    def syntax(self, record, family, defs, outs):
        """The mnemonic and the order in which operands and modifiers are written."""
        text = record["AsmString"]
        head, rest = re.match(r"([\w]+)\s*(.*)$", text).groups()
        supers = set(record["!superclasses"])
        suffix = ""
        if outs and self.r[outs[0][1]].get("PrintMethod") in ("printVOPDst", "printVINTRPDst"):
            if self.r[outs[0][1]].get("PrintMethod") == "printVINTRPDst":
                suffix = "_e32"
            elif family in ("vop3", "vop3p"):
                suffix = "_e64" if record.get("VOP3") and not record.get("IsSingle") else ""
            elif "dpp" in family:
                suffix = "_dpp"
            elif "sdwa" in family:
                suffix = "_sdwa"
            elif family in ("vop1", "vop2") and not record.get("IsSingle"):
                suffix = "_e32"
        items = []
        for token in re.findall(r"\$\w+|\w+", rest):
            name = token.lstrip("$")
            if token[0] == "$":
                name = re.sub(r"^(src\d)_modifiers$", r"\1", name)
                if name == "cpol":
                    items.append("cache")
                else:
                    items.append(MODIFIERS.get(name, name) if name not in ROLES else name)
            else:
                items.append(name)
        if family == "vopc" or (family == "vopc_sdwa" and "sdst" not in defs):
            items.insert(0, "vcc")
        if head == "v_cndmask_b32" or head.startswith("v_cndmask_b32_e32"):
            if family == "vop2":
                items.append("vcc")
        return head + suffix, items


# -- output ------------------------------------------------------------------------------------------------------------------------


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


def write_row(out, row):
    parts = []
    for key, value in row.items():
        if key in ("branch", "memory") and value == "none" or value in ([], 0) and key in ("reads", "writes", "bytes", "counters", "flags", "print"):
            continue
        if key == "mnemonic" and value == row["name"]:
            continue
        parts.append(f"{key}: {hex(value) if key in ('mask', 'match') else flow(value)}")
    out.write("- {" + ", ".join(parts) + "}\n")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(os.path.join(HERE, "targets.yaml"), encoding="utf-8") as file:
        targets = re.findall(r"^- name: (\w+)", file.read(), re.M)
    importer = Importer(Records(sys.argv[1]), targets)
    chosen = importer.select()
    rows = collections.OrderedDict()
    for name, where in chosen.items():
        # Where two records have the same bits on a target, the one that is written for gfx9 itself counts (it has no M0 use).
        row = importer.row(name)
        key = json.dumps(row)
        rows.setdefault(key, (row, {}, name))[1].update(where)
    taken = {}
    for key, (row, where, name) in rows.items():
        for target, order in where.items():
            place = (target, row["encoding"], row["mask"], row["match"])
            preference = (0 if name.endswith("gfx9") else 1, order, name)
            if place not in taken or preference < taken[place][0]:
                taken[place] = (preference, key)
    kept = collections.defaultdict(dict)
    for (target, *_), (preference, key) in taken.items():
        kept[key][target] = preference[1]
    for key, (row, _, name) in rows.items():
        if key in kept:
            row["targets"] = [t for t in targets if t in kept[key]]
            importer.rows[row["encoding"]].append((row["op"], row["mnemonic"], row["match"], row))
    used_kinds = set()
    used_layouts = set()
    for file, families in FILES.items():
        with open(os.path.join(HERE, "instructions", file + ".yaml"), "w", encoding="utf-8") as out:
            out.write("# Written by import.py; the README says what the columns mean.\n")
            for family in families:
                for _, _, _, row in sorted(importer.rows[family], key=lambda r: (r[0], r[1], r[2], json.dumps(r[3]))):
                    used_layouts.add(row["layout"])
                    for operand in row["operands"]:
                        used_kinds.add(operand.strip("()").split()[-1])
                    write_row(out, row)
    with open(os.path.join(HERE, "operands.yaml"), "w", encoding="utf-8") as out:
        out.write("# Written by import.py: what a field's number means. The README explains the columns.\n")
        for name, kind in sorted(importer.kinds.items()):
            if name in used_kinds:
                out.write(f"{name}: {{" + ", ".join(f"{k}: {flow(v)}" for k, v in kind.items() if v not in (False, "")) + "}\n")
    with open(os.path.join(HERE, "layouts.yaml"), "w", encoding="utf-8") as out:
        out.write("# Written by import.py: where the fields of an encoding are. '17,14@1' puts bit 14 into value bit 1 and bit 17 below it.\n")
        for (family, size, fields), name in sorted(importer.layouts.items(), key=lambda i: (i[0][0], int(i[1].rsplit("_", 1)[1]))):
            if name in used_layouts:
                out.write(f"{name}: {{bytes: {size}, fields: {{" + ", ".join(f"{k}: '{v}'" for k, v in fields) + "}}\n")
    total = {t: sum(1 for f in importer.rows.values() for r in f if t in r[3]["targets"]) for t in targets}
    print("rows:", sum(len(f) for f in importer.rows.values()), "by target:", total, file=sys.stderr)
    print("layouts:", len(used_layouts), "operand kinds:", len(used_kinds), file=sys.stderr)


if __name__ == "__main__":
    main()
