"""LLVM's names for encodings, operands and classes, and ours."""

# Decoder tables that a processor consults, first match wins: (name, feature that must be present or None), by size in bytes.
DECODER_TABLES = {
    8: [("GFX9_DL", "FeatureFmaMixInsts"), ("GFX940", "FeatureGFX940Insts"), ("GFX90A", "FeatureGFX90AInsts"), ("GFX8", None), ("GFX9", None)],
    4: [("GFX8", None), ("AMDGPU", None), ("GFX9", None), ("GFX90A", "FeatureGFX90AInsts")],
}

# Where the opcode is, and which record classes make the family.
FAMILIES = [
    # (family, record class, opcode bits high:low)
    ("smem", "SMEM_Real_vi", (25, 18)),
    ("sop1", "SOP1_Real", (15, 8)),
    ("sop2", "SOP2_Real", (29, 23)),
    ("sopk", "SOPK_Real", (27, 23)),
    ("sopc", "SOPC_Real", (22, 16)),
    ("sopp", "SOPP_Real", (22, 16)),
    ("vopc_sdwa", "VOPC_SDWA9e", (24, 17)),
    ("vop1_sdwa", "VOP1_SDWA9Ae", (16, 9)),
    ("vop2_sdwa", "VOP2_SDWA9Ae", (30, 25)),
    ("vop1_dpp", "VOP1_DPPe", (16, 9)),
    ("vop2_dpp", "VOP2_DPPe", (30, 25)),
    ("vop2_dpp", "VOP2_DPP", (30, 25)),
    ("vop3p", "VOP3P_Real", (22, 16)),
    ("vop3", "VOP3_Real", (25, 16)),
    ("vop1", "VOP1_Real", (16, 9)),
    ("vop2", "VOP2_Real", (30, 25)),
    ("vopc", "VOPC_Real", (24, 17)),
    ("vintrp", "VINTRPCommon", (17, 16)),
    ("ds", "DS_Real", (24, 17)),
    ("flat", "FLAT_Real", (24, 18)),
    ("mubuf", "MUBUF_Real", (24, 18)),
    ("mtbuf", "MTBUF_Real", (18, 15)),
    ("mimg", "MIMG", (24, 18)),
    ("exp", "EXPCommon", None),
]

# Which file of instructions/ a family's rows are in.
FILES = {
    "scalar": ["sop1", "sop2", "sopk", "sopc", "sopp"],
    "scalar_memory": ["smem"],
    "vector_1": ["vop1", "vop1_dpp", "vop1_sdwa"],
    "vector_2": ["vop2", "vop2_dpp", "vop2_sdwa"],
    "vector_compare": ["vopc", "vopc_sdwa"],
    "vector_3": ["vop3", "vintrp"],
    "vector_packed": ["vop3p"],
    "lds": ["ds"],
    "flat": ["flat", "global", "scratch"],
    "buffer": ["mubuf", "mtbuf"],
    "image_export": ["mimg", "exp"],
}

# Bits that a family's rows fix but that are modifiers of the decoded instruction: position -> our name.
FIXED_MODIFIERS = {
    "smem": {16: "glc", 17: "imm_en", 14: "soffset_en"},
    "mubuf": {12: "offen", 13: "idxen", 14: "glc", 15: "scc", 16: "lds", 17: "slc", 55: "tfe"},
    "mtbuf": {12: "offen", 13: "idxen", 14: "glc", 53: "scc", 54: "slc", 55: "tfe"},
    "flat": {13: "lds", 16: "glc", 17: "slc", 25: "scc"},
    "global": {13: "lds", 16: "glc", 17: "slc", 25: "scc"},
    "scratch": {13: "lds", 16: "glc", 17: "slc", 25: "scc"},
    "mimg": {13: "glc", 25: "slc", 7: "scc", 12: "unorm", 14: "da", 16: "tfe", 17: "lwe", 63: "d16"},
    "ds": {16: "gds"},
    "exp": {11: "done"},
}

# LLVM's operand name -> our role (lower-case name of Role).
ROLES = {
    "vdst": "vdst", "sdst": "sdst", "src0": "src0", "src1": "src1", "src2": "src2", "idx": "src2", "imm": "imm", "sbase": "sbase",
    "soffset": "soffset", "sdata": "sdata", "vaddr": "vaddr", "saddr": "saddr", "vdata": "vdata", "srsrc": "srsrc", "ssamp": "ssamp",
    "addr": "addr", "data0": "data0", "data1": "data1", "attr": "attribute", "attrchan": "attribute_channel", "tgt": "export_target",
    "format": "format", "dmask": "dmask", "src3": "other", "vsrc": "src0",
}  # fmt: skip

# LLVM's immediate operand name -> our modifier.
MODIFIERS = {
    "clamp": "clamp", "omod": "omod", "offset": "offset", "offset0": "offset", "offset1": "offset1", "gds": "gds", "tfe": "tfe",
    "lwe": "lwe", "unorm": "unorm", "da": "da", "r128": "r128", "d16": "d16", "cbsz": "cbsz", "abid": "abid", "blgp": "blgp",
    "high": "high", "dpp_ctrl": "dpp_ctrl", "row_mask": "row_mask", "bank_mask": "bank_mask", "bound_ctrl": "bound_ctrl",
    "dst_sel": "dst_sel", "dst_unused": "dst_unused", "src0_sel": "src0_sel", "src1_sel": "src1_sel", "en": "export_enable",
    "compr": "export_compressed", "vm": "export_valid_mask", "op_sel": "op_sel", "op_sel_hi": "op_sel_hi", "neg_lo": "neg",
    "neg_hi": "neg_hi",
}  # fmt: skip

KNOWN_MODIFIERS = set(MODIFIERS.values()) | {"abs", "sext", "glc", "slc", "scc", "lds", "imm_en", "soffset_en", "idxen", "offen", "done"}

# The bit of TSFlags that says that an operation works on packed pairs; the records that decode lack the field.
PACKED_FLAG = 49

# Type of a source by LLVM's operand type.
TYPES = [
    ("V2INT16", "v2i16"), ("V2FP16", "v2f16"), ("V2BF16", "v2bf16"), ("V2INT32", "v2i32"), ("V2FP32", "v2f32"),
    ("INT16", "i16"), ("INT32", "i32"), ("INT64", "i64"), ("BF16", "bf16"), ("FP16", "f16"), ("FP32", "f32"), ("FP64", "f64"),
]  # fmt: skip

# What a register class holds. Letters: v vector, a accumulation, s scalar, m M0, f EXEC_LO, e EXEC_HI, r read-only src_*, d LDS direct.
# A 64-bit EXEC needs both f and e.
SCALAR_CLASSES = {
    "SReg_32": "smfer", "SReg_32_XM0": "sfer", "SReg_32_XM0_XEXEC": "sr", "SReg_32_XEXEC_HI": "smfr", "SReg_32_XEXEC": "smr",
    "SReg_64": "sfe", "SReg_64_Encodable": "sfer", "SReg_64_XEXEC": "s", "SReg_64_XEXEC_XNULL": "s", "SReg_128": "s",
    "SReg_128_XNULL": "s", "SReg_256": "s", "SReg_256_XNULL": "s", "SReg_512": "s", "SReg_1": "sfe", "SReg_1_XEXEC": "sfe",
    "VS_32": "vsmferd", "VS_64_AlignTarget": "vsfer", "VRegOrLds_32": "vd",
}  # fmt: skip
