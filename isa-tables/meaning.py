"""What an operation does that its encoding does not say: memory, counters, control flow, latency class."""

import re

from llvm_names import PACKED_FLAG

LATENCY = {
    "Write32Bit": "valu32", "WriteFloatCvt": "valu32", "WriteFloatFMA": "valu32", "Write64Bit": "valu64", "WriteIntMul": "valu32",
    "WriteQuarterRate32": "trans", "WriteTrans32": "trans", "WriteTrans64": "trans", "WriteDouble": "valu_f64",
    "WriteDoubleAdd": "valu_f64", "WriteDoubleCvt": "valu_f64", "WriteSALU": "salu", "WriteSMEM": "smem", "WriteLDS": "lds",
    "WriteVMEM": "vmem", "WriteBranch": "branch", "WriteBarrier": "barrier", "WriteExport": "export",
}  # fmt: skip


def writes_partly(base, family, role):
    """Destinations of which a part keeps its old value although LLVM does not tie them."""
    if family in ("mubuf", "mtbuf", "flat", "global", "scratch", "ds", "mimg") and role in ("vdst", "vdata"):
        return "d16" in base
    return base.startswith(("s_cmov", "s_bitset", "s_cmovk"))


def half_result(base):
    """Whether the result has 16 bits, so that op_sel can leave the other half of the destination alone."""
    return re.search(r"_(f16|i16|u16|b16)$", base) and not re.search(r"_(i32|u32|f32|b32)_|_pk", base)


def implicit(base, family, uses, changes):
    names = {"SCC": "scc", "VCC": "vcc", "EXEC": "exec", "M0": "m0", "FLAT_SCR": "flat_scratch", "MODE": "mode"}
    reads = {names[u] for u in uses}
    writes = {names[c] for c in changes}
    if base in ("s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join"):
        reads.add("exec")
        writes.add("exec")
    order = list(names.values())
    return [n for n in order if n in reads], [n for n in order if n in writes]


def branch_of(base):
    conditions = {
        "s_cbranch_scc0": "scc0", "s_cbranch_scc1": "scc1", "s_cbranch_vccz": "vccz", "s_cbranch_vccnz": "vccnz",
        "s_cbranch_execz": "execz", "s_cbranch_execnz": "execnz",
    }  # fmt: skip
    if base in conditions:
        return conditions[base]
    if base.startswith("s_cbranch_cdbg"):
        return "debug"
    if base in ("s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join", "s_setvskip"):
        return "obsolete"
    if base.startswith("s_endpgm"):
        return "end"
    return {
        "s_branch": "jump", "s_call_b64": "call", "s_swappc_b64": "indirect_call", "s_setpc_b64": "indirect_jump",
        "s_rfe_b64": "indirect_jump", "s_rfe_restore_b64": "indirect_jump", "s_trap": "trap",
    }.get(base, "none")  # fmt: skip


def memory_of(base, family, fields, mask, match):
    """The memory accessed, and the bytes per lane where the operation alone fixes them."""
    if family == "smem":
        return ("scalar", scalar_bytes(base)) if base.startswith(("s_load", "s_store", "s_scratch", "s_buffer", "s_atomic")) else ("none", 0)
    if family in ("flat", "global", "scratch"):
        return family, vector_bytes(base)
    if family in ("mubuf", "mtbuf"):
        return ("none", 0) if base.startswith("buffer_wb") or base.startswith("buffer_inv") else ("buffer", vector_bytes(base))
    if family == "mimg":
        return "image", 0
    if family == "ds":
        if "gws" in base or base in ("ds_ordered_count",):
            return "gds", 0
        if base in ("ds_permute_b32", "ds_bpermute_b32", "ds_swizzle_b32", "ds_nop"):
            return "none", 0
        return "lds", lds_bytes(base)
    if base in ("s_sendmsg", "s_sendmsghalt"):
        return "message", 0
    return "none", 0


def scalar_bytes(base):
    match = re.search(r"dword(?:x(\d+))?", base)
    if match:
        return 4 * int(match.group(1) or 1)
    if "atomic" in base:
        return 8 if base.endswith("_x2") else 4
    return 0


def vector_bytes(base):
    if "atomic" in base:
        return 8 if base.endswith(("_x2", "_f64")) else 4
    for text, count in (("dwordx2", 8), ("dwordx3", 12), ("dwordx4", 16), ("dword", 4), ("short", 2), ("byte", 1)):
        if text in base:
            return count
    return 0


def lds_bytes(base):
    pairs = 2 if re.search(r"(read2|write2|wrxchg2)", base) else 1
    for text, count in (("b128", 16), ("b96", 12), ("64", 8), ("b8", 1), ("u8", 1), ("i8", 1), ("b16", 2), ("u16", 2), ("i16", 2), ("32", 4)):
        if re.search(rf"_?{text}(_|$)", base.replace("st64", "")):
            return count * pairs
    return 4 if re.search(r"_(pk_add|append|consume|ordered)", base) else 0


def counters_of(base, family, record, memory):
    if family == "smem":
        return ["lgkm"]
    if family == "flat":
        return ["vm", "lgkm"]
    if family in ("global", "scratch", "mimg", "mtbuf"):
        return ["vm"]
    if family == "mubuf":
        return [] if base == "buffer_wbinvl1_sc" else ["vm"]
    if family == "ds":
        return ["lgkm", "exp"] if memory == "gds" else [] if base == "ds_nop" else ["lgkm"]
    if family == "exp":
        return ["exp"]
    if base in ("s_sendmsg", "s_sendmsghalt"):
        return ["lgkm"]
    return []


def latency_of(base, family, record):
    if base.startswith(("v_mfma", "v_smfmac")):
        return "mfma"
    if family == "sopp":
        if base.startswith("s_waitcnt"):
            return "wait"
        if base.startswith("s_sendmsg"):
            return "message"
    classes = [LATENCY[s["def"]] for s in record["SchedRW"]]
    if branch_of(base) not in ("none", "trap"):
        return "branch"
    for first in ("vmem", "lds", "smem"):
        if first in classes:
            return first
    return classes[0] if classes else "salu"


def flags_of(base, family, record, operands, defs):
    flags = []
    vector_alu = family.startswith(("vop", "vintrp"))
    memory = family in ("smem", "flat", "global", "scratch", "mubuf", "mtbuf", "mimg", "ds")
    if vector_alu:
        flags.append("valu")
    if family.startswith("sop"):
        flags.append("salu")
    atomic = "_atomic_" in base or (family == "ds" and is_lds_atomic(base))
    if memory:
        if atomic or re.search(r"_load|_read|image_(sample|gather|get)|ds_consume|ds_append|_scratch_load", base):
            flags.append("load")
        if atomic or re.search(r"_store|_write", base):
            flags.append("store")
    if atomic:
        flags.append("atomic")
        if (family in ("flat", "global", "scratch", "ds") and "vdst" in operands) or record.get("IsAtomicRet") or atomic_returns(record):
            flags.append("returns")
    if base.startswith(("v_mfma", "v_smfmac")):
        flags.append("mfma")
    if vector_alu and any("Trans" in s["def"] for s in record["SchedRW"]):
        flags.append("trans")
    if record["TSFlags"][PACKED_FLAG]:
        flags.append("packed")
    if memory and "d16" in base:
        flags.append("d16")
    if base == "s_barrier":
        flags.append("barrier")
    if base.startswith("s_waitcnt"):
        flags.append("wait")
    return flags


def atomic_returns(record):
    return "GLC" in next((a[0]["def"] for a in record["InOperandList"]["args"] if a[1] == "cpol"), "").replace("NonGLC", "")


def is_lds_atomic(base):
    return not re.search(r"ds_(read|write|permute|bpermute|swizzle|nop|gws|ordered|bvh)", base) or base.startswith("ds_wrxchg")
