"""LLVM's names for encodings, operands and classes, and ours."""

# Decoder tables that LLVM consults for a processor, in its order: (name, features that must be present), by size in
# bytes.
GFX9 = "FeatureGFX9"
GFX10 = "FeatureGFX10"
GFX11 = "FeatureGFX11"
GFX12 = "FeatureGFX12"
GFX1250 = "FeatureGFX1250Insts"
VI = "FeatureVolcanicIslands"
DECODER_TABLES = {
    16: [("GFX1250", [GFX1250]), ("GFX940", ["FeatureGFX950Insts"])],
    12: [
        ("GFX11", [GFX11]), ("GFX11_FAKE16", [GFX11]), ("GFX1250", [GFX1250]), ("GFX1250_FAKE16", [GFX1250]), ("GFX12",
        [GFX12]),
        ("GFX12_FAKE16", [GFX12]), ("GFX12W64", [GFX12]),
    ],
    8: [
        ("GFX10_B", ["FeatureGFX10_BEncoding", GFX10]), ("GFX80_UNPACKED", ["FeatureUnpackedD16VMem"]), ("GFX950",
        ["FeatureGFX950Insts"]),
        ("GFX9_DL", ["FeatureFmaMixInsts", GFX9]), ("GFX940", ["FeatureGFX940Insts"]), ("GFX90A",
        ["FeatureGFX90AInsts", GFX9]), ("GFX8", [VI]),
        ("GFX8", [GFX9]), ("GFX9", [GFX9]), ("GFX10", [GFX10]), ("GFX1250", [GFX1250]), ("GFX1250_FAKE16", [GFX1250]),
        ("GFX12", [GFX12]),
        ("GFX12_FAKE16", [GFX12]), ("GFX11", [GFX11]), ("GFX11_FAKE16", [GFX11]), ("GFX11W64", [GFX11]), ("GFX12W64",
        [GFX12]),
    ],
    4: [
        ("GFX8", [VI]), ("GFX8", [GFX9]), ("AMDGPU", []), ("GFX9", [GFX9]), ("GFX950", ["FeatureGFX950Insts"]),
        ("GFX90A", ["FeatureGFX90AInsts", GFX9]),
        ("GFX10_B", ["FeatureGFX10_BEncoding", GFX10]), ("GFX10", [GFX10]), ("GFX11", [GFX11]), ("GFX11_FAKE16",
        [GFX11]), ("GFX1250", [GFX1250]),
        ("GFX1250_FAKE16", [GFX1250]), ("GFX12", [GFX12]), ("GFX12_FAKE16", [GFX12]),
    ],
}  # fmt: skip

# Which record classes make a family, first match wins.
FAMILIES = [
    ("smem", "SM_Real"),
    ("sop1", "SOP1_Real"),
    ("sop2", "SOP2_Real"),
    ("sopk", "SOPK_Real"),
    ("sopc", "SOPC_Real"),
    ("sopp", "SOPP_Real"),
    ("vopd", "VOPD_Base"),
    ("vopc_sdwa", "VOPC_SDWA9e"),
    ("vopc_sdwa", "VOPC_SDWAe"),
    ("vop1_sdwa", "VOP1_SDWA9Ae"),
    ("vop1_sdwa", "VOP1_SDWAe"),
    ("vop2_sdwa", "VOP2_SDWA9Ae"),
    ("vop2_sdwa", "VOP2_SDWAe"),
    ("vop3p_dpp8", "VOP3P_DPP8_Base"),
    ("vop3p_dpp", "VOP3P_DPP"),
    ("vop3_dpp8", "VOP3_DPP8e_Fields"),
    ("vop3_dpp8", "VOP3_DPP8e_Fields_t16"),
    ("vop3_dpp", "VOP3_DPPe_Fields_Base"),
    ("vopc_dpp8", "VOPC_DPP8_Base"),
    ("vopc_dpp", "VOPC_DPP_Base"),
    ("vop1_dpp8", "VOP1_DPP8"),
    ("vop2_dpp8", "VOP2_DPP8"),
    ("vop1_dpp", "VOP1_DPP"),
    ("vop1_dpp", "VOP1_DPPe"),
    ("vop2_dpp", "VOP2_DPP"),
    ("vop2_dpp", "VOP2_DPPe"),
    ("vinterp", "VINTERP_Real"),
    ("vop3p", "VOP3P_Real"),
    ("vop3", "VOP3_Real"),
    ("vop1", "VOP1_Real"),
    ("vop2", "VOP2_Real"),
    ("vopc", "VOPC_Real"),
    ("vintrp", "VINTRPCommon"),
    ("ldsdir", "DSDIR_Real"),
    ("ds", "DS_Real"),
    ("flat", "FLAT_Real"),
    ("flat", "VFLAT_Real"),
    ("mubuf", "MUBUF_Real"),
    ("mtbuf", "MTBUF_Real"),
    ("vbuffer", "VBUFFER_Real"),
    ("tensor", "VIMAGE_TENSOR_Real"),
    ("vsample", "VSAMPLEe"),
    ("vimage", "VIMAGEe"),
    ("mimg", "MIMG"),
    ("exp", "EXPCommon"),
    ("vop1", "V_ILLEGAL"),
]

# Where the opcode is, high bit and low bit: the family's, or the family's of a generation.
OPCODES = {
    "smem": (25, 18), ("smem", 12): (18, 13), ("smem", 1250): (18, 13), "sop1": (15, 8), "sop2": (29, 23), "sopk": (27,
    23), "sopc": (22, 16),
    "sopp": (22, 16), "vopc_sdwa": (24, 17), "vop1_sdwa": (16, 9), "vop2_sdwa": (30, 25), "vop1_dpp": (16, 9),
    "vop1_dpp8": (16, 9),
    "vop2_dpp": (30, 25), "vop2_dpp8": (30, 25), "vopc_dpp": (24, 17), "vopc_dpp8": (24, 17), "vop3p": (22, 16),
    "vop3p_dpp": (22, 16),
    "vop3p_dpp8": (22, 16), "vop3": (25, 16), "vop3_dpp": (25, 16), "vop3_dpp8": (25, 16), "vop1": (16, 9),
    "vop2": (30, 25), "vopc": (24, 17),
    "vintrp": (17, 16), "vinterp": (22, 16), "ldsdir": (21, 20), ("ldsdir", 12): (21, 20), "ds": (25, 18), ("ds",
    8): (24, 17),
    ("ds", 9): (24, 17), "flat": (24, 18), ("flat", 12): (21, 14), ("flat", 1250): (21, 14), "mubuf": (24, 18),
    ("mubuf", 10): (25, 18),
    ("mubuf", 11): (25, 18), "mtbuf": (18, 15), ("mtbuf", 10): (18, 16), "vbuffer": (21, 14), "tensor": (21, 14),
    "mimg": (24, 18), ("mimg", 11): (25, 18),
    "vsample": (21, 14), "vimage": (21, 14), "vopd": (25, 17),
    **{(f, g): (21, 14) for f in ("mubuf", "mtbuf", "global", "scratch") for g in (12, 1250)}, "global": (24, 18),
    "scratch": (24, 18),
}  # fmt: skip

# Pairs of operations: where the first and the second one's opcode are, by the top six bits (VOPDe and VOPD3e of
# VOPDInstructions.td).
PAIR_OPCODES = {0b110010: ((25, 22), (21, 17)), 0b110011: ((23, 18), (17, 12))}
# The highest bit of the opcode where it is apart from the others: family and generation -> (value bit, place).
OPCODE_APART = {("mimg", generation): (7, 0) for generation in (8, 9, 10)}


def opcode_places(family, generation):
    """Where the bits of the opcode are: {value bit: instruction bit}."""
    if (place := OPCODES.get((family, generation), OPCODES.get(family))) is None:
        return {}
    places = {bit - place[1]: bit for bit in range(place[1], place[0] + 1)}
    if (apart := OPCODE_APART.get((family, generation))) is not None:
        places[apart[0]] = apart[1]
    return places


# Which file of instructions/ a family's rows are in.
FILES = {
    "scalar": ["sop1", "sop2", "sopk", "sopc", "sopp"],
    "scalar_memory": ["smem"],
    "vector_1": ["vop1", "vop1_dpp", "vop1_dpp8", "vop1_sdwa"],
    "vector_2": ["vop2", "vop2_dpp", "vop2_dpp8", "vop2_sdwa"],
    "vector_compare": ["vopc", "vopc_dpp", "vopc_dpp8", "vopc_sdwa"],
    "vector_3": ["vop3", "vop3_dpp", "vop3_dpp8", "vintrp", "vinterp"],
    "vector_packed": ["vop3p", "vop3p_dpp", "vop3p_dpp8"],
    "vector_dual": ["vopd"],
    "lds": ["ds", "ldsdir"],
    "flat": ["flat", "global", "scratch"],
    "buffer": ["mubuf", "mtbuf"],
    "image_export": ["mimg", "vimage", "vsample", "tensor", "exp"],
}

# Bits that a family's rows fix but that are modifiers of the decoded instruction: position -> our name, by generation.
GFX89 = (8, 9)
FIXED_MODIFIERS = [
    ("smem", GFX89, {16: "glc", 17: "imm_en", 14: "soffset_en"}),
    ("smem", (10,), {16: "glc", 14: "dlc"}),
    ("smem", (11,), {14: "glc", 13: "dlc"}),
    ("mubuf", GFX89, {12: "offen", 13: "idxen", 14: "glc", 15: "scc", 16: "lds", 17: "slc", 55: "tfe"}),
    ("mubuf", (10,), {12: "offen", 13: "idxen", 14: "glc", 15: "dlc", 16: "lds", 54: "slc", 55: "tfe"}),
    ("mubuf", (11,), {54: "offen", 55: "idxen", 14: "glc", 13: "dlc", 12: "slc", 53: "tfe"}),
    ("mtbuf", GFX89, {12: "offen", 13: "idxen", 14: "glc", 53: "scc", 54: "slc", 55: "tfe"}),
    ("mtbuf", (10,), {12: "offen", 13: "idxen", 14: "glc", 15: "dlc", 54: "slc", 55: "tfe"}),
    ("mtbuf", (11,), {54: "offen", 55: "idxen", 14: "glc", 13: "dlc", 12: "slc", 53: "tfe"}),
    ("vbuffer", (12, 1250), {62: "offen", 63: "idxen", 22: "tfe", **{52 + i: ("th", i) for i in range(3)}}),
    ("flat", GFX89, {13: "lds", 16: "glc", 17: "slc", 25: "scc"}),
    ("flat", (10,), {13: "lds", 16: "glc", 17: "slc", 12: "dlc"}),
    ("flat", (11,), {14: "glc", 15: "slc", 13: "dlc"}),
    ("flat", (12, 1250), {52 + i: ("th", i) for i in range(3)}),
    ("mimg", GFX89, {13: "glc", 25: "slc", 7: "scc", 12: "unorm", 14: "da", 16: "tfe", 17: "lwe", 63: "d16"}),
    ("mimg", (10,), {13: "glc", 25: "slc", 7: "dlc", 12: "unorm", 16: "tfe", 17: "lwe", 62: "a16", 63: "d16",
    1: ("nsa", 0), 2: ("nsa", 1)}),
    ("mimg", (11,), {14: "glc", 12: "slc", 13: "dlc", 7: "unorm", 53: "tfe", 54: "lwe", 16: "a16", 17: "d16",
    0: ("nsa", 0)}),
    ("vimage", (12, 1250), {55: "tfe", 6: "a16", 5: "d16", **{52 + i: ("th", i) for i in range(3)}}),
    ("vsample", (12, 1250), {6: "a16", 5: "d16", 3: "tfe", 40: "lwe", 13: "unorm", **{52 + i: ("th",
    i) for i in range(3)}}),
    ("ds", GFX89, {16: "gds"}),
    ("ds", (10, 11), {17: "gds"}),
    ("exp", (8, 9, 10, 11, 12, 1250), {11: "done", 13: "row_en"}),
]  # fmt: skip

# LLVM's operand name -> our role (lower-case name of Role).
ROLES = {
    "vdst": "vdst", "sdst": "sdst", "src0": "src0", "src1": "src1", "src2": "src2", "idx": "src2", "imm": "imm",
    "sbase": "sbase",
    "soffset": "soffset", "sdata": "sdata", "vaddr": "vaddr", "saddr": "saddr", "vdata": "vdata", "srsrc": "srsrc",
    "ssamp": "ssamp", "rsrc": "srsrc",
    "samp": "ssamp", "addr": "addr", "data0": "data0", "data1": "data1", "attr": "attribute",
    "attrchan": "attribute_channel", "tgt": "export_target",
    "format": "format", "dmask": "dmask", "src3": "other", "vsrc": "src0", "vdstX": "vdst", "src0X": "src0",
    "vsrc1X": "src1", "vsrc2X": "src2",
    "vdstY": "vdst_y", "src0Y": "src0_y", "vsrc1Y": "src1_y", "vsrc2Y": "src2_y", "scale_src0": "scale0",
    "scale_src1": "scale1",
    "vaddr0": "vaddr", "vaddr1": "vaddr1", "vaddr2": "vaddr2", "vaddr3": "vaddr3", "vaddr4": "vaddr4",
    **{f"vaddr{i}": f"vaddr{i}" for i in range(5, 12)},
}  # fmt: skip

# LLVM's immediate operand name -> our modifier.
MODIFIERS = {
    "clamp": "clamp", "omod": "omod", "offset": "offset", "Offset": "offset", "offset0": "offset",
    "offset1": "offset1", "gds": "gds", "tfe": "tfe",
    "lwe": "lwe", "unorm": "unorm", "da": "da", "r128": "r128", "a16": "a16", "d16": "d16", "cbsz": "cbsz",
    "abid": "abid", "blgp": "blgp",
    "high": "high", "dpp_ctrl": "dpp_ctrl", "row_mask": "row_mask", "bank_mask": "bank_mask",
    "bound_ctrl": "bound_ctrl", "fi": "fi", "dpp8": "dpp8",
    "dst_sel": "dst_sel", "dst_unused": "dst_unused", "src0_sel": "src0_sel", "src1_sel": "src1_sel",
    "en": "export_enable",
    "compr": "export_compressed", "vm": "export_valid_mask", "op_sel": "op_sel", "op_sel_hi": "op_sel_hi",
    "neg_lo": "neg",
    "neg_hi": "neg_hi", "dim": "dim", "waitexp": "wait_exp", "waitvdst": "wait_vdst", "waitvsrc": "wait_vsrc",
    "bitop3": "bitop3",
    "byte_sel": "byte_sel", "scale_sel": "scale_sel", "index_key_8bit": "index_key", "index_key_16bit": "index_key",
    "index_key_32bit": "index_key",
    "matrix_a_fmt": "matrix_a_fmt", "matrix_b_fmt": "matrix_b_fmt", "matrix_a_scale": "matrix_a_scale",
    "matrix_b_scale": "matrix_b_scale",
    "matrix_a_scale_fmt": "matrix_a_scale_fmt", "matrix_b_scale_fmt": "matrix_b_scale_fmt",
    "matrix_a_reuse": "matrix_a_reuse",
    "matrix_b_reuse": "matrix_b_reuse",
}  # fmt: skip

KNOWN_MODIFIERS = set(MODIFIERS.values()) | {
    "abs", "sext", "glc", "slc", "dlc", "scc", "lds", "imm_en", "soffset_en", "idxen", "offen", "done", "th", "scope",
    "nv", "scale_offset", "nsa", "row_en", "dpp8_fi",
}  # fmt: skip

# The bit of TSFlags that says that an operation works on packed pairs; the records that decode lack the field.
PACKED_FLAG = 49

# Type of a source by LLVM's operand type.
TYPES = [
    ("V2INT16", "v2i16"), ("NOINLINE_V2FP16", "v2f16_literal"), ("V2FP16_SPLAT", "v2f16_splat"), ("V2FP16", "v2f16"),
    ("V2BF16", "v2bf16"),
    ("V2INT32", "v2i32"), ("V2FP32", "v2f32"), ("INT16", "i16"), ("INT32", "i32"), ("INT64", "i64"), ("BF16", "bf16"),
    ("FP16", "f16"),
    ("FP32", "f32"), ("FP64", "f64"),
]  # fmt: skip

# What a register class holds. Letters: v vector, a accumulation, s scalar, m M0, f EXEC_LO, e EXEC_HI, r read-only
# src_*, d LDS direct, n null.
# A 64-bit EXEC needs both f and e. Where LLVM's disassembler tells no difference between classes, neither do we.
SCALAR_CLASSES = {
    "SReg_32": "smfern", "SReg_32_XM0": "sfern", "SReg_32_XM0_XEXEC": "srn", "SReg_32_XEXEC_HI": "smfrn",
    "SReg_32_XEXEC": "smrn",
    "SReg_64": "sfen", "SReg_64_Encodable": "sfern", "SReg_64_XEXEC": "sn", "SReg_64_XEXEC_XNULL": "s",
    "SReg_96": "sn", "SReg_128": "sn",
    "SReg_128_XNULL": "s", "SReg_256": "sn", "SReg_256_XNULL": "s", "SReg_512": "sn", "SReg_1": "smfen",
    "SReg_1_XEXEC": "smfen",
    "VS_32": "vsmfernd", "VS_32_Lo256": "vsmfern", "VS_64_AlignTarget": "vsfern", "VS_64_Lo256": "vsfern",
    "VRegOrLds_32": "vd", "SRegOrLds_32": "smfernd",
    "VS_16": "vsmfern", "VS_16_Lo128": "vsmfern",
}  # fmt: skip
