"""What an operation does that its encoding does not say: memory, counters, control flow, latency class."""

import re

from llvm_names import PACKED_FLAG

LATENCY = {
    "Write32Bit": "valu32", "WriteFloatCvt": "valu32", "WriteFloatFMA": "valu32", "Write64Bit": "valu64",
    "WriteIntMul": "valu32",
    "WriteQuarterRate32": "trans", "WriteTrans32": "trans", "WriteTrans64": "trans", "WriteDouble": "valu_f64",
    "WriteDoubleAdd": "valu_f64", "WriteDoubleCvt": "valu_f64", "WriteSALU": "salu", "WriteSMEM": "smem",
    "WriteLDS": "lds",
    "WriteVMEM": "vmem", "WriteBranch": "branch", "WriteBarrier": "barrier", "WriteExport": "export",
    "WriteSFPU": "salu",
    "WritePseudoScalarTrans": "trans",
}  # fmt: skip


MEMORY_FAMILIES = ("smem", "flat", "global", "scratch", "mubuf", "mtbuf", "mimg", "vimage", "vsample", "ds")
IMAGES = ("mimg", "vimage", "vsample")


def writes_partly(base, family, role):
    """Destinations of which a part keeps its old value although LLVM does not tie them."""
    if family in MEMORY_FAMILIES and role in ("vdst", "vdata"):
        return "d16" in base
    return base.startswith(("s_cmov", "s_bitset", "s_cmovk", "s_setreg"))


TYPES_IN_NAMES = re.compile(r"(?:b|i|u|f|bf|fp)(?:4|6|8|16|24|32|64)")
# 16-bit sources or sums of them in the name, 32-bit results.
WIDER = re.compile(r"v_sad_u16|v_interp_p1ll_f16|v_interp_p1lv_f16|v_interp_p10_(rtz_)?f16_f32")


def half_result(base):
    """Whether a vector operation's result has 16 bits and not a pair of them: the first type in its name is the
    result's."""
    first = next((part for part in base.split("_") if TYPES_IN_NAMES.fullmatch(part)), "")
    if base.startswith(("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")) or WIDER.fullmatch(base):
        return False
    return first in ("f16", "bf16", "i16", "u16", "b16") and "_pk" not in base or base == "v_sat_pk_u8_i16"


def keeps_other_half(base, family, role, generation, fields):
    """Whether the half of the result's register that the operation does not write stays: where op_sel chooses one, and
    always since gfx10."""
    if not family.startswith(("vop", "vint")) or role != "vdst":
        return False
    if generation == 11 and re.match(r"v_wmma_b?f16_", base):
        return True
    return half_result(base) and (generation >= 10 or "op_sel" in fields and family == "vop3")


def reads_vcc(base):
    """VOP2 operations that take a lane mask; where it has no field it is VCC."""
    return base.startswith(
        (
            "v_cndmask_b32",
            "v_add_co_ci_u32",
            "v_sub_co_ci_u32",
            "v_subrev_co_ci_u32",
            "v_addc_",
            "v_subb_",
            "v_subbrev_",
        )
    )


def implicit(base, generation, uses, changes):
    # Since gfx10 FLAT_SCRATCH is no scalar register.
    flat_scratch = "flat_scratch" if generation < 10 else None
    names = {
        "SCC": "scc", "VCC": "vcc", "EXEC": "exec", "M0": "m0", "FLAT_SCR": flat_scratch, "MODE": "mode",
        "XNACK_MASK": "xnack_mask",
        "ASYNCcnt": None, "TENSORcnt": None,
    }  # fmt: skip
    reads = {names[u] for u in uses} - {None}
    writes = {names[c] for c in changes} - {None}
    # LLVM's records of these leave it out, but they move in the active lanes only (RDNA2 ISA guide, "VOP1 Opcodes").
    if base in ("v_movrelsd_2_b32", "v_swaprel_b32"):
        reads.add("exec")
    if base in (
        "s_cbranch_g_fork",
        "s_cbranch_i_fork",
        "s_cbranch_join",
        "s_subvector_loop_begin",
        "s_subvector_loop_end",
    ):
        reads.add("exec")
        writes.add("exec")
    # It sets a bit of MODE and leaves SCC alone, which LLVM's records of its format write (Vega ISA guide, "SOPC
    # Instructions").
    if base == "s_setvskip":
        reads, writes = {"mode"}, {"mode"}
    order = [n for n in names.values() if n]
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
    if base in (
        "s_cbranch_g_fork",
        "s_cbranch_i_fork",
        "s_cbranch_join",
        "s_subvector_loop_begin",
        "s_subvector_loop_end",
    ):
        return "obsolete"
    if base.startswith("s_endpgm"):
        return "end"
    return {
        "s_branch": "jump", "s_call_b64": "call", "s_call_i64": "call", "s_swappc_b64": "indirect_call",
        "s_swap_pc_i64": "indirect_call",
        "s_setpc_b64": "indirect_jump", "s_set_pc_i64": "indirect_jump", "s_add_pc_i64": "indirect_jump",
        "s_rfe_b64": "indirect_jump",
        "s_rfe_i64": "indirect_jump", "s_rfe_restore_b64": "indirect_jump", "s_trap": "trap",
    }.get(base, "none")  # fmt: skip


def memory_of(base, family, generation):
    """The memory accessed, and the bytes per lane where the operation alone fixes them."""
    if family == "smem":
        if base.startswith(("s_load", "s_store", "s_scratch", "s_buffer", "s_atomic")) and "prefetch" not in base:
            return "scalar", scalar_bytes(base)
        return "none", 0
    if family in ("flat", "global", "scratch"):
        if base in ("global_inv", "global_wb", "global_wbinv") or "prefetch" in base:
            return "none", 0
        return family, vector_bytes(base)
    if family in ("mubuf", "mtbuf"):
        cache = base.startswith(("buffer_wb", "buffer_inv", "buffer_gl0_inv", "buffer_gl1_inv"))
        return ("none", 0) if cache else ("buffer", vector_bytes(base))
    if family in IMAGES:
        return "image", 0
    if family == "tensor":
        return "global", 0
    if family == "ldsdir":
        return "lds", 4
    if family == "ds":
        if "gws" in base or base in ("ds_ordered_count", "ds_add_gs_reg_rtn", "ds_sub_gs_reg_rtn"):
            return "gds", 0
        if base in ("ds_permute_b32", "ds_bpermute_b32", "ds_bpermute_fi_b32", "ds_swizzle_b32", "ds_nop"):
            return "none", 0
        return "lds", lds_bytes(base)
    if base in ("s_sendmsg", "s_sendmsghalt", "s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64"):
        return "message", 0
    return "none", 0


def scalar_bytes(base):
    match = re.search(r"dword(?:x(\d+))?", base)
    if match:
        return 4 * int(match.group(1) or 1)
    if "atomic" in base:
        return 8 if base.endswith("_x2") else 4
    match = re.search(r"_[biu](\d+)$", base)
    return int(match.group(1)) // 8 if match else 0


def vector_bytes(base):
    if "atomic" in base:
        return 8 if base.endswith(("_x2", "64")) else 4
    if "_block" in base:
        return 0
    for text, count in (("dwordx2", 8), ("dwordx3", 12), ("dwordx4", 16), ("dword", 4), ("short", 2), ("byte", 1)):
        if text in base:
            return count
    match = re.search(r"_(?:lds_)?[biu](\d+)", base.replace("d16_hi_", "").replace("d16_", ""))
    return int(match.group(1)) // 8 if match else 0


def lds_bytes(base):
    pairs = 2 if re.search(r"(read2|write2|wrxchg2|load_2|store_2|storexchg_2)", base) else 1
    for text, count in (
        ("b128", 16),
        ("b96", 12),
        ("64", 8),
        ("b8", 1),
        ("u8", 1),
        ("i8", 1),
        ("b16", 2),
        ("u16", 2),
        ("i16", 2),
        ("32", 4),
    ):
        if re.search(rf"_?{text}(_|$)", base.replace("st64", "").replace("stride64", "")):
            return count * pairs
    return 4 if re.search(r"_(pk_add|append|consume|ordered)", base) else 0


def counters_of(generation, base, family, memory, flags):
    """The wait counters that an operation increments (LLVM's SIInsertWaitcnts). Where a field decides, every one that
    may be."""
    atomic, returns = "atomic" in flags, "returns" in flags
    store = "store" in flags and "load" not in flags
    loads, stores = ("vm", "vm") if generation < 10 else ("vm", "vs") if generation < 12 else ("load", "store")
    lds, scalar = ("lgkm", "lgkm") if generation < 12 else ("ds", "km")
    translated = ["x"] if generation == 1250 else []
    if base.startswith("tensor_"):
        return ["tensor"]
    if "_async_" in base:
        # LLVM 24 puts no wait for xcnt after copies that asynccnt counts, and leaves them out where it counts others.
        return ["async"]
    if "prefetch" in base:
        return translated
    if family == "smem":
        return [] if base.startswith("s_atc_probe") else [scalar] + translated
    if base.startswith("s_sendmsg"):
        return [scalar]
    if base in ("s_get_barrier_state", "s_barrier_signal_isfirst", "s_barrier_leave"):
        return [scalar]
    if family == "ds":
        return [] if base == "ds_nop" else [lds, "exp"] if memory == "gds" else [lds]
    if family in ("ldsdir", "exp"):
        return ["exp"]
    if base == "global_inv":
        return ["load"]
    if base in ("global_wb", "global_wbinv"):
        return ["store"]
    if family == "mubuf" and memory == "none":
        return [] if base == "buffer_wbinvl1_sc" else ["vm"]
    if family not in MEMORY_FAMILIES:
        return []
    if family in IMAGES and generation >= 12 and base.startswith("image_bvh"):
        found = ["bvh"]
    elif family == "vsample":
        found = ["sample"]
    elif family in IMAGES and atomic:
        found = sorted({loads, stores})
    elif "_lds_" in base and not base.startswith("buffer_store"):
        found = [loads]  # Copies from memory into LDS.
    elif atomic and not returns or store:
        found = [stores]
    else:
        found = [loads]
    return found + ([lds] if family == "flat" else []) + translated


def latency_of(base, family, record):
    if base.startswith(("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")):
        return "mfma"
    if family == "sopp" or family == "sopk":
        if base.startswith(("s_waitcnt", "s_wait_")):
            return "wait"
        if base.startswith("s_sendmsg"):
            return "message"
    if base.startswith("s_barrier"):
        return "barrier"
    classes = [LATENCY[s["def"]] for s in record["SchedRW"] if s["def"] in LATENCY]
    if branch_of(base) not in ("none", "trap"):
        return "branch"
    if family in ("mimg", "vimage", "vsample", "tensor"):
        return "vmem"
    for first in ("vmem", "lds", "smem"):
        if first in classes:
            return first
    return classes[0] if classes else "salu"


def flags_of(base, family, record, operands, generation):
    flags = []
    vector_alu = family.startswith(("vop", "vint"))
    memory = family in MEMORY_FAMILIES
    if vector_alu:
        flags.append("valu")
    if family.startswith("sop"):
        flags.append("salu")
    atomic = "_atomic_" in base and "barrier_arrive" not in base or (family == "ds" and is_lds_atomic(base))
    if memory or family in ("ldsdir", "tensor"):
        if atomic or re.search(
            r"_load|_read|image_(sample|gather|get|msaa|bvh)|ds_consume|ds_append|_scratch_load"
            r"|ds_(direct|param)|ds_bvh",
            base,
        ):
            flags.append("load")
        if atomic or re.search(r"_store|_write|_load_(async_to_)?lds|_load_to_lds|ds_bvh", base):
            flags.append("store")
    copies = family in ("mubuf", "global", "scratch", "tensor") and "_LDS" in record["!name"].upper()
    if copies or "barrier_arrive" in base:
        # From memory to LDS or back; barriers in LDS.
        flags += [flag for flag in ("load", "store") if flag not in flags]
    if atomic:
        flags.append("atomic")
        if (
            (family in ("flat", "global", "scratch", "ds") and "vdst" in operands)
            or record.get("IsAtomicRet")
            or atomic_returns(record)
        ):
            flags.append("returns")
    if base.startswith(("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")):
        flags.append("mfma")
    if vector_alu and any("Trans" in s["def"] for s in record["SchedRW"]):
        flags.append("trans")
    if family.endswith("dpp") and base in ("v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u32"):
        flags.append("double_rate")
    if record["TSFlags"][PACKED_FLAG]:
        flags.append("packed")
    if memory and "d16" in base:
        flags.append("d16")
    if base.startswith("s_barrier") or base == "s_barrier":
        flags.append("barrier")
    if base.startswith(("s_waitcnt", "s_wait_")):
        flags.append("wait")
    return flags


def atomic_returns(record):
    return "GLC" in next((a[0]["def"] for a in record["InOperandList"]["args"] if a[1] == "cpol"), "").replace(
        "NonGLC", ""
    )


def is_lds_atomic(base):
    plain = (
        r"ds_(read|write|load|store_|permute|bpermute|swizzle|nop|gws|ordered|bvh|add_gs|sub_gs|direct|param|atomic_)"
    )
    return not re.search(plain, base) or base.startswith(("ds_wrxchg", "ds_storexchg"))
