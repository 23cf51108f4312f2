"""LLVM's TableGen records: which of them a processor decodes, and what their bits say."""

import collections
import json
import re
import sys

from llvm_names import DECODER_TABLES, MODIFIERS


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
        # 16-bit operations use the halves of registers on all processors that can; LLVM leaves the choice to the
        # compiler.
        if "FeatureTrue16BitInsts" in found:
            found.add("FeatureRealTrue16Insts")
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
    return [name for name, needed in DECODER_TABLES.get(size, []) if features.issuperset(needed)]


def select(records, sets):
    """{record name: {(set, wave size): place in LLVM's order}}; sets: {name: generation}."""
    waves = {}
    for name, generation in sets.items():
        features = records.features(name) - {"FeatureWavefrontSize32", "FeatureWavefrontSize64"}
        if 10 <= generation:
            waves[name, 32] = features | {"FeatureWavefrontSize32"}
        if generation < 1250:
            waves[name, 64] = features | {"FeatureWavefrontSize64"}
    orders = {(place, size): tables(features, size) for place, features in waves.items() for size in DECODER_TABLES}
    chosen = collections.defaultdict(dict)
    counts = collections.Counter()
    for name in sorted(records.classes["InstructionEncoding"]):
        # What a compiler without 16-bit registers makes: the same bits under other rules.
        if "_fake16" in name or name == "V_ILLEGAL":
            continue
        record = records.get(name)
        if (
            record is None
            or "Inst" not in record
            or record.get("isPseudo")
            or record["isCodeGenOnly"]
            or record["isAsmParserOnly"]
        ):
            continue
        for place, features in waves.items():
            if "_agpr" in name and "FeatureGFX90AInsts" not in features:
                continue  # Memory instructions reach accumulation registers from gfx90a on; not all records say so.
            order = orders.get((place, record["Size"]), [])
            if record["DecoderNamespace"] in order and records.available(record, features):
                chosen[name][place] = order.index(record["DecoderNamespace"])
                counts[place[0]] += place[1] == (64 if place[0] in ("gfx90a",) or (place[0], 32) not in waves else 32)
    print("records that decode:", dict(counts), file=sys.stderr)
    return chosen


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
    if entry["kind"] == "var" and (entry["var"] in MODIFIERS or entry["var"].endswith("_modifiers")):
        return (entry["var"], 0)
    return "?"


def modifier_bit(variable, index, kind, family, base, generation, packed):
    """Our modifier name and bit for one bit of LLVM's srcN_modifiers."""
    source = int(re.search(r"src(\d)", variable)[1])
    second = 4 if variable[5:6] == "Y" or variable.endswith("Y_modifiers") else 0
    if index == 0:
        return ("neg", source + second)
    if index == 1:
        return ("neg_hi" if packed else "abs", source)
    if index == 2:
        return ("op_sel", source)
    if index == 3:
        if family.startswith("vop3p"):
            return ("op_sel_hi", source)
        # The 8-bit float conversions choose a byte with the first two bits of op_sel.
        return ("op_sel", 1 if generation == 9 and re.match(r"v_cvt_(pk_)?f32_(fp8|bf8)", base) else 3)
    if index == 4:
        return ("sext", source)
    raise ValueError((variable, index, kind))


def segments(bits):
    """{value bit: instruction bit} -> 'high:low' runs, most significant first, joined by ','. A run's '@n' is its
    lowest value bit."""
    runs = []
    for value_bit in sorted(bits):
        position = bits[value_bit]
        adjacent = runs and runs[-1][2] + runs[-1][1] == value_bit and runs[-1][0] + runs[-1][1] == position
        # No run crosses the middle of an encoding of more than 64 bits.
        if adjacent and position != 64:
            runs[-1][1] += 1
        else:
            runs.append([position, 1, value_bit])
    out = []
    for position, length, value_bit in runs:
        text = f"{position + length - 1}:{position}" if length > 1 else f"{position}"
        out.append(text + (f"@{value_bit}" if value_bit else ""))
    return ",".join(reversed(out))
