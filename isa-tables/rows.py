"""One record of LLVM -> one row of the tables."""

import collections
import re

import images
from llvm_names import (
    FAMILIES,
    FIXED_MODIFIERS,
    KNOWN_MODIFIERS,
    MODIFIERS,
    ROLES,
    SCALAR_CLASSES,
    TYPES,
    opcode_places,
)
from meaning import (
    branch_of,
    counters_of,
    flags_of,
    implicit,
    keeps_other_half,
    latency_of,
    memory_of,
    reads_vcc,
    writes_partly,
)
from records import bit, modifier_bit, segments

# Immediate operands of one field, by the definition that LLVM gives them -> role.
IMMEDIATES = {
    "hwreg": "hwreg", "SendMsg": "message", "SWaitCnt": "wait_count", "SOPPBrTarget": "simm_target",
    "SDelayALU": "delay", "DepCtr": "dep_ctr",
    "VersionImm": "version", "WaitEvent": "wait_event",
}  # fmt: skip

# How an immediate is printed, by LLVM's printing method.
FORMS = {
    "printGPRIdxMode": "_index_mode",
    "printInterpSlot": "_slot",
    "printU16ImmOperand": "_hex",
    "printEndpgm": "_endpgm",
}


class Importer:
    def __init__(self, records):
        self.r = records
        self.kinds = {}
        self.layouts = {}
        self.layout_names = collections.Counter()
        self.images = images.Images(records)
        self.widest_address = collections.Counter()
        for name in records.classes["InstructionEncoding"]:
            match = re.match(r"(IMAGE_\w+?)_V\d+_V(\d+)", name)
            if match:
                self.widest_address[match.group(1)] = max(self.widest_address[match.group(1)], int(match.group(2)))

    def family(self, record):
        supers = set(record["!superclasses"]) | {record["!name"]}
        for family, cls in FAMILIES:
            if cls in supers:
                return family
        raise ValueError(record["!name"])

    def kind(self, operand, family, size, generation, signs=False):
        """Our operand kind for LLVM's operand definition: (name, description)."""
        d = self.r[operand]
        is_class = "RegisterClassLike" in d["!superclasses"] or "RegisterClass" in d["!superclasses"]
        register_class = operand if is_class else (d.get("RegClass") or {}).get("def")
        decoder = d.get("DecoderMethod") or ""
        optype = d.get("OperandType") or ""
        if optype == "OPERAND_INLINE_SPLIT_BARRIER_INT32":
            name = "src_smfeni_1_i32"
            self.kinds[name] = {
                "coding": "src",
                "accepts": "smfeni",
                "dwords": 1,
                "type": "i32",
                "even": False,
                "signs": False,
                "mask": False,
            }
            return name
        if register_class is None:
            return None
        vector_literals = generation >= 10 and family in ("vop3", "vop3p", "vopd", "vinterp")
        # A literal follows 32-bit forms, and since gfx10 VOP3; `v_madmk` and `v_madak` share theirs with a source.
        literal = "_IMM_" in optype and (size == 4 or family in ("vop2", "vopd", "sop2") or vector_literals)
        inline = "_IMM_" in optype or "_INLINE_" in optype
        match = re.search(r"_(\d+)", register_class)
        mask = bool(re.match(r"SReg_1(_|$)", register_class))
        dwords = 2 if mask else (int(match.group(1)) + 31) // 32
        half = re.match(r"(VGPR|VS)_16", register_class)
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
        aligned = "AlignTarget" in register_class or "Align2" in register_class or register_class == "VS_64_Lo256"
        if "SDWAVopcDst" in decoder:
            coding = "sdwa_sdst"
        elif "SDWASrc" in decoder:
            coding = "sdwa"
        elif "VOPDDstY" in decoder:
            coding = "vector_other_parity"
        elif "decodeSrcAV10" in decoder:
            coding = "src_acc"
        elif "A9" in decoder:
            coding = "src_accum"
        elif half and ("VSrcT16" in decoder or decoder == "decodeOperand_VGPR_16" or register_class.startswith("VS_")):
            coding = "src_low128" if "Lo128" in decoder or "Lo128" in register_class else "src_half"
        elif half:
            coding = "vector_low128" if "Lo128" in register_class else "vector_half"
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
        if typ == "v2f16_splat" and generation < 11:
            typ = "v2f16"
        if typ is None:
            typ = "b16" if half else {1: "b32", 2: "b64"}.get(dwords, "untyped")
        data_pair = "_LdSt_32_Align2" in register_class
        even = aligned and (dwords > 1 or data_pair) or data_pair
        name = (
            f"{coding}_{accepts}_{'mask' if mask else dwords}_{typ}"
            + ("_even" if even else "")
            + ("_signed" if signs else "")
        )
        self.kinds[name] = {
            "coding": coding,
            "accepts": accepts,
            "dwords": dwords,
            "type": typ,
            "even": even,
            "signs": signs,
            "mask": mask,
        }
        return name

    def fields(self, record, family, generation, base, defs):
        """Fields: operand or modifier name -> {value bit: instruction bit}; and the names of LLVM's fields."""
        bits = [bit(record, i) for i in range(record["Size"] * 8)]
        fixed = next(
            (places for f, generations, places in FIXED_MODIFIERS if f == family and generation in generations), {}
        )
        fields = collections.defaultdict(dict)
        variables = set()
        for position, b in enumerate(bits):
            if not isinstance(b, tuple):
                if b in (0, 1) and position in fixed:
                    name, value_bit = fixed[position] if isinstance(fixed[position], tuple) else (fixed[position], 0)
                    fields[name][value_bit] = position
                continue
            variable, index = b
            variables.add(variable)
            if variable.endswith("_modifiers"):
                kind = defs[variable]
                # Pairs without signs of their high halves have absolute values, which are written around them.
                signs = self.r[kind].get("PrintMethod") == "printOperandAndFPInputMods"
                packed = "$neg_hi" in record["AsmString"] or "Packed" in kind and not signs
                modifier, value_bit = modifier_bit(variable, index, kind, family, base, generation, packed)
                fields[modifier][value_bit] = position
            elif variable == "cpol":
                name, value_bit = cache_bit(index, generation)
                fields[name][value_bit] = position
            elif variable == "fi" and family.endswith("dpp8"):
                # The source code of DPP8 is 233, or 234 to read inactive lanes too: the upper bits are fixed.
                if index < 2:
                    fields["dpp8_fi"][index] = position
                else:
                    bits[position] = 233 >> index & 1
            elif variable in MODIFIERS and variable not in ROLES:
                fields[MODIFIERS[variable]][index] = position
            else:
                fields[variable][index] = position
        return bits, fields, variables

    def row(self, name, generation):
        record = self.r[name]
        family = self.family(record)
        size = record["Size"]
        base = re.match(r"\w+?(?=_e32|_e64|_dpp|_sdwa|\W|$)", record["AsmString"]).group(0)
        outs = [(a[1], a[0]["def"]) for a in record["OutOperandList"]["args"]]
        ins = [(a[1], a[0]["def"]) for a in record["InOperandList"]["args"]]
        defs = dict(ins + outs)
        bits, fields, variables = self.fields(record, family, generation, base, defs)
        if family in images.FAMILIES:
            separate = self.images.fields(record, family)
            fields.update(separate)
            variables.update(separate)
            size = self.images.size(record, family)
        if family == "smem" and generation == 8:
            fields["offset"].pop(20, None)  # One bit fewer than on gfx9, and unsigned.
        mask = sum(1 << i for i, b in enumerate(bits) if b in (0, 1) and not isinstance(b, tuple))
        match = sum(1 << i for i, b in enumerate(bits) if b == 1 and not isinstance(b, tuple))
        opcode = sum((match >> place & 1) << bit for bit, place in opcode_places(family, generation).items())
        if family == "flat":
            low = 24 if generation >= 12 else 16 if generation == 11 else 14
            family = {0: "flat", 1: "scratch", 2: "global"}[match >> low & 3]
        if family == "vbuffer":
            # One encoding serves both; typed operations have a format.
            family = "mtbuf" if base.startswith("tbuffer") else "mubuf"

        mnemonic, syntax = self.syntax(record, family, defs, outs)
        if family in images.FAMILIES:
            syntax = self.images.syntax(syntax, record, family)
        if family == "vopd":
            base = mnemonic
        operands = self.operands(record, family, generation, base, fields, variables, outs, ins)
        if family == "mimg" and generation < 10 and "vaddr" in operands:
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
        last = max((place for place, item in enumerate(syntax) if item in operands), default=-1)
        for place, item in enumerate(syntax):
            if item == "offset" and place < last:
                ops.append("offset")
            elif item in operands:
                role, access, kind = operands[item]
                written = f"{role} {access} {kind}"
                if written not in ops:  # Modifiers behind the operands name their operand once more.
                    ops.append(written)
            elif item in ("vcc", "off", "m0", "second", "literal_x"):
                ops.append(item)
            elif item in KNOWN_MODIFIERS or item == "cache":
                suffix.append(item)
            else:
                raise ValueError((name, item))
        listed = {o.split()[0] for o in ops}
        for operand, (role, access, kind) in operands.items():
            if role not in listed and operand != "src3":
                ops.append(f"({role} {access} {kind})")
        signed = (
            family in ("global", "scratch")
            or family == "smem"
            and generation >= 9
            or family == "flat"
            and generation >= 12
        )
        layout = self.layout(family, size, signed and "offset" in renamed, renamed)

        uses = {u["def"] for u in record["Uses"]}
        changes = {u["def"] for u in record["Defs"]}
        if family == "vopc_sdwa" and generation == 8:
            changes.add("VCC")  # The result has no field.
        reads, writes = implicit(base, generation, uses, changes)
        memory, count = memory_of(base, family, generation)
        flags = flags_of(base, family, record, operands, generation)
        facts = self.images.facts(record, family, generation) if family in images.FAMILIES else {}
        return {
            "name": base,
            "mnemonic": mnemonic,
            "encoding": family,
            "op": opcode,
            "mask": mask,
            "match": match,
            "layout": layout,
            "operands": ops,
            "image": facts,
            "print": suffix,
            "reads": reads,
            "writes": writes,
            "branch": branch_of(base),
            "memory": memory,
            "bytes": count,
            "counters": counters_of(generation, base, family, memory, flags),
            "latency": latency_of(base, family, record),
            "flags": flags,
        }

    def operands(self, record, family, generation, base, fields, variables, outs, ins):
        """LLVM's name -> (role, access, kind)."""
        # Access: outputs are written; an output tied to an input is also read.
        defs = dict(ins + outs)
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
        size = record["Size"]
        operands = {}
        for operand, definition in outs + ins:
            if operand not in variables or operand.endswith("_modifiers"):
                continue
            role = ROLES.get(operand)
            if role is None and operand == "simm16":
                role = IMMEDIATES.get(definition, "simm16")
            if role == "src0" and definition in IMMEDIATES:
                role = IMMEDIATES[definition]
            if role is None:
                continue
            if operand == "sdst" and operand not in out_names and not base.startswith("s_movreld"):
                role = "src0"
            kind = self.kind(definition, family, size, generation, signs=operand in signed)
            if definition == "SplitBarrier":
                # A constant; registers are forms of their own.
                kind = "src_i_1_i32"
                self.kinds[kind] = {"coding": "src", "accepts": "i", "dwords": 1, "type": "i32"}
                access = "r"
            elif kind is None:
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
            if access == "w" and (
                writes_partly(base, family, role) or keeps_other_half(base, family, role, generation, fields)
            ):
                access = "rw"
            if base.startswith("s_movreld") and operand == "sdst":
                access = "rw"  # The register that is written is this one plus M0.
            if operand == "sdata" and "sdst" in out_names:
                continue
            operands[operand] = (role, access, kind)
        if base in ("v_swap_b32", "v_swap_b16", "v_swaprel_b32", "v_permlane16_swap_b32", "v_permlane32_swap_b32"):
            operands = {k: (v[0], "rw", v[2]) for k, v in operands.items()}
        if family == "smem" and "sdst" in operands and "atomic" in base:
            role, access, kind = operands["sdst"]
            operands["sdst"] = ("sdata", "rw", kind)
        if family in ("mimg", "vimage") and "vdata" in operands and "atomic" in base:
            role, access, kind = operands["vdata"]
            operands["vdata"] = (role, "rw", kind)
        if family in images.FAMILIES:
            operands = self.images.operands(operands, record, family, generation)
            for name, coding in ((images.ONE, "vector"), (images.ONE_BEHIND, "vector_behind")):
                self.kinds.setdefault(name, {"coding": coding, "accepts": "v", "dwords": 1, "type": "b32"})
        return operands

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
            typ = {"KImmFP16": "f16", "KImmFP64": "f64"}.get(definition, "b32")
            name = {"f16": "literal16", "f64": "literal64"}.get(typ, "literal32")
            self.kinds[name] = {"coding": "literal", "accepts": "l", "dwords": 2 if typ == "f64" else 1, "type": typ}
            return name
        name = f"{'signed' if signed else 'unsigned'}{width}"
        method = self.r[definition].get("PrintMethod")
        plain = (
            self.r[definition].get("OperandType") in ("OPERAND_IMMEDIATE", "OPERAND_INLINE_SPLIT_BARRIER_INT32")
            and method == "printOperand"
        )
        name += FORMS.get(method, "_inline" if plain else "")
        self.kinds[name] = {
            "coding": "signed" if signed else "unsigned",
            "accepts": "",
            "dwords": 1,
            "type": "b32",
            "form": name.partition("_")[2] or "decimal",
        }
        return name

    def layout(self, family, size, signed_offset, fields):
        key = (family, size, signed_offset, tuple(sorted(fields.items())))
        if key not in self.layouts:
            self.layout_names[family] += 1
            self.layouts[key] = f"{family}_{self.layout_names[family]}"
        return self.layouts[key]

    def syntax(self, record, family, defs, outs):
        """The mnemonic and the order in which operands and modifiers are written."""
        # Alternatives of the mnemonic, `{_e64}`, are written out.
        text = record["AsmString"].replace("{", "").replace("}", "")
        for operand, definition in defs.items():
            # Bits of the sources that have no signs: what is written is op_sel itself.
            if definition in ("op_sel0", "op_sel_hi0") and operand.endswith("_modifiers"):
                text = text.replace(f"${operand}", f"${definition[:-1]}")
        head, rest = re.match(r"([\w]+)\s*(.*)$", text).groups()
        suffix = ""
        destination = outs[0][1] if outs else defs.get("vdst")
        method = self.r[destination].get("PrintMethod") if destination else None
        if method in ("printVOPDst", "printVINTRPDst"):
            if method == "printVINTRPDst":
                suffix = "_e32"
            elif "dpp" in family:
                suffix = "_e64_dpp" if family.startswith("vop3") else "_dpp"
            elif family in ("vop3", "vop3p", "vinterp"):
                suffix = "_e64" if record.get("VOP3") and not record.get("IsSingle") else ""
            elif "sdwa" in family:
                suffix = "_sdwa"
            elif family in ("vop1", "vop2") and not record.get("IsSingle"):
                suffix = "_e32"
        first, _, second = rest.partition("::")
        items = self.items(first)
        if second:
            # Two operations in one instruction; the first one's literal is the second's.
            other, rest = re.match(r"\s*([\w]+)\s*(.*)$", second).groups()
            second = self.items(rest)
            if "immX" in items:
                items[items.index("immX")] = "literal_x" if "imm" in second else "imm"
            head = f"{head}::{other}"
            items = items + ["second"] + second
        self.implied_vcc(record, family, head, defs, items)
        if family.endswith("dpp8"):
            items = ["dpp8_fi" if item == "fi" else item for item in items]
        return head + suffix, items

    def items(self, text):
        items = []
        for token in re.findall(r"\$\w+|\w+", text):
            name = token.lstrip("$")
            if token[0] == "$":
                name = re.sub(r"^(\w*src\d\w?)_modifiers$", r"\1", name)
                if name == "cpol":
                    items.append("cache")
                else:
                    items.append(MODIFIERS.get(name, name) if name not in ROLES else name)
            else:
                items.append(name)
        return items

    def implied_vcc(self, record, family, head, defs, items):
        """VCC where it is written and LLVM's syntax string does not have it."""
        vcc_written = any(u["def"] == "VCC" for u in record["Defs"])
        if family.startswith("vopc") and "sdst" not in defs and vcc_written:
            items.insert(0, "vcc")
        if family.startswith("vop2") and reads_vcc(head) and "vcc" not in items and "sdst" not in defs:
            if not head.startswith("v_cndmask"):
                items.insert(items.index("vdst") + 1, "vcc")
            items.insert(items.index("src1") + 1, "vcc")


def cache_bit(index, generation):
    """Our modifier and its bit for a bit of LLVM's cache policy."""
    if generation < 12:
        return {0: ("glc", 0), 1: ("slc", 0), 2: ("dlc", 0), 4: ("scc", 0)}[index]
    if index < 3:
        return ("th", index)
    if index < 5:
        return ("scope", index - 3)
    return {5: ("nv", 0), 11: ("scale_offset", 0)}[index]
