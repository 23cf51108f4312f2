//! Every row of the instruction tables against LLVM's disassembler: random fillings of the row's fields must decode to the same size and the same
//! text, and encode to the same bytes.
//!
//! A few legal fillings of each row are tried, 16 of each with `--full`, and `WAVETAP_ISA_FILLINGS` of each where that is set. What differs
//! on purpose is in `reasoned_difference`, each with its reason.

use std::collections::BTreeMap;

use llvm_oracle::{Answer, Oracle, Query};
use rewriter_tests::fillings::{ATTEMPTS, Random, filling, instruction_sets, llvm_processor};
use rewriter_tests::full;
use wavetap::isa::{self, Accepts, Target, Variant};

/// Fillings of a row when nothing else is asked for.
const QUICK_FILLINGS: usize = 2;
/// Fillings of a row in the long run.
const FULL_FILLINGS: usize = 16;
/// Most examples that a failure shows.
const SHOWN: usize = 60;
/// Questions that are asked at a time.
const PORTION: usize = 1024;

fn fillings() -> usize {
    let asked = std::env::var("WAVETAP_ISA_FILLINGS").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(if full() { FULL_FILLINGS } else { QUICK_FILLINGS })
}

/// Why a difference from LLVM is right, if it is. LLVM's disassembler takes a good deal that no assembler makes and no processor promises to
/// understand; the tables refuse it. `/*` marks what LLVM itself calls invalid.
fn reasoned_difference(target: Target, one: &Try, llvm: Option<(usize, &str)>) -> Option<&'static str> {
    let Some((size, text)) = llvm else {
        let (_, ours) = one.ours.as_ref()?;
        // Compilers wrote these with another number in the destination's place, which the hardware ignores; LLVM insists on EXEC's.
        let compare = one.variant.name.starts_with("v_cmpx_") && one.variant.mnemonic.contains("_e64");
        let reasons = [
            (compare, "v_cmpx in VOP3 with a destination number that is not EXEC's"),
            (is_mix_dpp(one.variant), "DPP of a mixed precision operation, of which LLVM loses a bit"),
            (one.variant.name.starts_with("v_wmma_ld_scale"), "codes of scale formats that LLVM has no name for"),
            (ours.contains("/* invalid */"), "dependences that s_delay_alu has no name for, which LLVM calls invalid"),
            (one.variant.name.ends_with("_b96") && ours.contains("ttmp["), "three trap registers, which LLVM does not name"),
        ];
        return reasons.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason);
    };
    let has = |what: &str| text.contains(what);
    let variant = one.variant;
    if let Some((_, ours)) = &one.ours
        && variant.encoding == isa::Encoding::VopcSdwa
        && ours.replacen("_sdwa", "", 1) == text
    {
        return Some("the name of an SDWA compare of gfx8, which LLVM writes like that of another form");
    }
    if let Some((same_size, _)) = one.ours
        && same_size == size
    {
        let vop3_dpp = matches!(variant.encoding, isa::Encoding::Vop3Dpp | isa::Encoding::Vop3Dpp8);
        let reasons = [
            (is_mix_dpp(variant), "DPP of a mixed precision operation, of which LLVM loses a bit"),
            (variant.name.starts_with("v_fmac_") && vop3_dpp, "a constant of v_fmac with DPP, of which LLVM prints the code"),
            (has(", vcc_lo|") || has(", vcc|"), "VCC within the bars of an absolute value"),
            (has("sendmsg(MSG_RTN_"), "a message with bits beyond its number, which LLVM leaves out"),
            (
                variant.name.starts_with("v_mfma_scale") && has("op_sel_hi:[0,0,0]"),
                "scales whose op_sel_hi LLVM prints although it is what is usual",
            ),
        ];
        if let Some((_, reason)) = reasons.iter().find(|(holds, _)| *holds) {
            return Some(reason);
        }
    }
    if one.ours.is_some() {
        // LLVM has no form of gather with three registers of data, and prints those of two.
        return (variant.name.starts_with("image_gather4") && has(" tfe") && has(" d16")).then_some("data of a gather with tfe and d16");
    }
    let beyond = |prefix: &str, end: u32| last_registers(text, prefix).any(|last| last >= end);
    let some_operand_is_no_source = variant.operands.iter().any(|spec| !spec.kind.accepts.contains(Accepts::READ_ONLY));
    let takes_no_literal = variant.operands.iter().all(|spec| !spec.kind.accepts.contains(Accepts::LITERAL));
    let reasons = [
        (has("scalar reg isn't aligned"), "scalar registers that start at an odd place (LLVM prints others than are encoded)"),
        (has("null") && variant.operands.iter().any(|spec| no_null(spec.kind)), "the null register as a descriptor or an address"),
        (literal_not_taken(&one.bytes, variant), "a literal for a source that takes none"),
        (variant.encoding == isa::Encoding::Vinterp, "a vector source without the bit of vector registers"),
        (has("lit64(") || wide_literal(&one.bytes, variant), "a literal of 64 bits for a source of 32"),
        (variant.mnemonic.ends_with("_dpp") && has("0xff"), "a literal in DPP, of which LLVM prints the code"),
        (has("ttmp[0:15]") && variant.name == "s_buffer_load_dwordx16", "more trap registers than gfx8 has"),
        (
            has("null") && !isa::variants(target).any(|row| row.name == "s_waitcnt_vscnt" || row.name == "s_wait_loadcnt"),
            "the null register, which gfx10 brought",
        ),
        (has("src_flat_scratch_base"), "a source that gfx12.5 brought"),
        (takes_no_literal && size > usize::from(variant.layout.bytes), "a literal in a form that takes none"),
        (beyond("s[", 102), "scalar registers that run into FLAT_SCRATCH"),
        (beyond("v[", 256) || beyond("a[", 256), "vector registers that run out of the file"),
        (has("src_") && some_operand_is_no_source, "a read-only code where a register is needed"),
        (mask_in_vector(variant, text), "vector registers as a lane mask"),
        (variant.name.starts_with("image_atomic"), "channel masks that an image atomic does not have"),
        (variant.encoding == isa::Encoding::Mimg && one.bytes[5] & 1 != 0 && target.aligned_vgprs(), "image data from an odd register on"),
        (variant.encoding == isa::Encoding::Mimg && one.bytes[5] > 250, "image data that runs out of the file"),
        (
            variant.name.starts_with("ds_gws") && text.contains(" a") && !target.unified_accum(),
            "accumulation registers that LDS cannot reach",
        ),
        (
            variant.encoding == isa::Encoding::Ds && one.bytes[2] & 1 != 0 && !target.has_gds(),
            "global data share on a target that has none",
        ),
        (variant.encoding == isa::Encoding::Flat && has(" offset:"), "a flat offset of more than 12 bits"),
    ];
    reasons.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason)
}

/// Whether an operand takes scalar registers, but not null.
fn no_null(kind: &isa::Kind) -> bool {
    kind.accepts.contains(Accepts::SCALAR) && !kind.accepts.contains(Accepts::NULL)
}

/// Whether this is `v_fma_mix…` with DPP.
fn is_mix_dpp(variant: &Variant) -> bool {
    variant.name.starts_with("v_fma_mix") && variant.mnemonic.ends_with("_dpp")
}

/// Whether a source that takes no literal has the code of one.
fn literal_not_taken(bytes: &[u8], variant: &Variant) -> bool {
    const LITERAL: u64 = 255;
    let word = word(bytes);
    let takes = |spec: &isa::OperandSpec| spec.kind.accepts.contains(Accepts::LITERAL);
    variant.operands.iter().any(|spec| spec.kind.coding == isa::Coding::Source && !takes(spec) && spec.bits.get(word) == LITERAL)
}

/// The first 16 bytes as a number.
fn word(bytes: &[u8]) -> u128 {
    let mut all = [0; 16];
    let count = bytes.len().min(16);
    all[..count].copy_from_slice(&bytes[..count]);
    u128::from_le_bytes(all)
}

/// Whether a source has the code of a 64-bit literal.
fn wide_literal(bytes: &[u8], variant: &Variant) -> bool {
    let word = word(bytes);
    variant.operands.iter().any(|spec| spec.kind.accepts.contains(Accepts::INLINE) && spec.bits.get(word) == 254)
}

/// The last register of every run with this prefix in a text: 7 of `s[4:7]`.
fn last_registers<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.split(prefix).skip(1).filter_map(|rest| rest.split_once(']')?.0.split_once(':')?.1.parse().ok())
}

/// Whether an operation on lane masks has vector registers as its last operand.
fn mask_in_vector(variant: &Variant, text: &str) -> bool {
    let masked = [
        "v_cndmask_b32",
        "v_cndmask_b16",
        "v_add_co_ci_u32",
        "v_sub_co_ci_u32",
        "v_subrev_co_ci_u32",
        "v_addc_co_u32",
        "v_subb_co_u32",
        "v_subbrev_co_u32",
    ]
    .contains(&variant.name);
    masked && text.rsplit(", ").next().is_some_and(|last| last.starts_with("v["))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Try {
    variant: &'static Variant,
    bytes: Vec<u8>,
    ours: Option<(usize, String)>,
}

fn check(target: Target) {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut tries = Vec::new();
    let mut unreachable = Vec::new();
    for variant in isa::variants(target) {
        let mut legal = 0;
        for _ in 0..ATTEMPTS {
            let bytes = filling(&mut random, variant);
            let ours = isa::decode(target, &bytes).ok().map(|inst| {
                let again = isa::encode(target, &inst).unwrap_or_else(|error| panic!("{} {}: {error}", variant.mnemonic, hex(&bytes)));
                assert_eq!(hex(&again), hex(&bytes[..usize::from(inst.size)]), "{} {}", target.name(), variant.mnemonic);
                legal += usize::from(inst.variant == variant);
                (usize::from(inst.size), isa::print(target, &inst))
            });
            tries.push(Try { variant, bytes, ours });
            if legal >= fillings() {
                break;
            }
        }
        if legal < fillings() {
            unreachable.push(variant.mnemonic);
        }
    }
    assert!(unreachable.is_empty(), "{}: too few fillings decode to {unreachable:?}", target.name());
    let processor = llvm_processor(target);
    let queries: Vec<Query<'_>> = tries.iter().map(|one| Query { target: &processor, bytes: &one.bytes, pc: 0 }).collect();
    // In small portions, because after a word that LLVM dies on the rest of its portion is asked again.
    let mut oracle = Oracle::new().expect("the oracle is built");
    let answers: Vec<Answer> = queries.chunks(PORTION).flat_map(|portion| oracle.ask_all(portion)).collect();
    let (mut same, mut differences, mut excused) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    for (one, answer) in tries.iter().zip(answers) {
        let llvm = match answer {
            Answer::Instruction { size, text } if !text.contains("/*") => Some((size, text)),
            Answer::Instruction { .. } | Answer::Rejected | Answer::Crash => None,
        };
        if llvm == one.ours {
            same += 1;
        } else if let Some(reason) = reasoned_difference(target, one, llvm.as_ref().map(|llvm| (llvm.0, llvm.1.as_str()))) {
            *excused.entry(reason).or_default() += 1;
        } else {
            differences.push(format!("{} {}\n    ours {:?}\n    LLVM {llvm:?}", one.variant.mnemonic, hex(&one.bytes), one.ours));
        }
    }
    if let Some(folder) = std::env::var_os("WAVETAP_ISA_REPORT") {
        let file = std::path::Path::new(&folder).join(format!("{}-{}.txt", target.name(), target.wave_size()));
        std::fs::write(file, differences.join("\n")).expect("the report is written");
    }
    println!("{}: {same} of {} fillings are the same; different on purpose: {excused:?}", target.name(), tries.len());
    assert!(
        differences.is_empty(),
        "{}: {} differ from LLVM:\n{}",
        target.name(),
        differences.len(),
        differences.iter().step_by(differences.len().div_ceil(SHOWN)).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// The target that an instruction set is named for, with a wave size.
fn set(name: &str, wave_size: u32) {
    let found = instruction_sets().into_iter().find(|target| target.instruction_set() == name && target.wave_size() == wave_size);
    check(found.unwrap_or_else(|| panic!("no instruction set {name} with waves of {wave_size}")));
}

macro_rules! sets {
    ($($(#[$attribute:meta])? $name:ident: $set:literal, $wave_size:literal;)*) => {
        $(
            #[test]
            $(#[$attribute])?
            fn $name() {
                set($set, $wave_size);
            }
        )*

        #[test]
        fn every_instruction_set_is_tested() {
            let tested = [$(($set, $wave_size)),*];
            for target in instruction_sets() {
                assert!(tested.contains(&(target.instruction_set(), target.wave_size())), "{} {}", target.instruction_set(), target.wave_size());
            }
        }
    };
}

sets! {
    gfx803: "gfx803", 64;
    gfx810: "gfx810", 64;
    gfx9_generic: "gfx9-generic", 64;
    gfx900: "gfx900", 64;
    gfx904: "gfx904", 64;
    gfx906: "gfx906", 64;
    gfx908: "gfx908", 64;
    gfx90a: "gfx90a", 64;
    gfx9_4_generic: "gfx9-4-generic", 64;
    gfx942: "gfx942", 64;
    #[ignore = "a few words of scaled matrix operations and of 64-bit literals are written otherwise than by LLVM"]
    gfx950: "gfx950", 64;
    gfx1010_w64: "gfx1010", 64;
    gfx1010_w32: "gfx1010", 32;
    gfx1011_w64: "gfx1011", 64;
    gfx1011_w32: "gfx1011", 32;
    gfx1013_w64: "gfx1013", 64;
    gfx1013_w32: "gfx1013", 32;
    gfx1030_w64: "gfx1030", 64;
    gfx1030_w32: "gfx1030", 32;
    gfx1100_w64: "gfx1100", 64;
    gfx1100_w32: "gfx1100", 32;
    gfx1150_w64: "gfx1150", 64;
    gfx1150_w32: "gfx1150", 32;
    gfx1200_w64: "gfx1200", 64;
    gfx1200_w32: "gfx1200", 32;
    #[ignore = "a few words of scaled matrix operations and of 64-bit literals are written otherwise than by LLVM"]
    gfx1250: "gfx1250", 32;
    #[ignore = "a few words of scaled matrix operations and of 64-bit literals are written otherwise than by LLVM"]
    gfx1251: "gfx1251", 32;
}
