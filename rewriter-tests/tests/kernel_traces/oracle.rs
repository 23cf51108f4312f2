//! What an instruction is, from its text as LLVM prints it: the class and the operations that are expected of it.
//!
//! The rules are those of rocprof-compute's documentation of the instruction mix (which counter takes which
//! instructions) and of AMD's ISA guides, by the parts of a mnemonic: what it begins with says what is done, the types
//! that it ends in say of what.

use rewriter_tests::Failure;

/// What is expected of one operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Expected {
    /// `valu.f32.fma`.
    pub class: String,
    /// What it computes.
    pub operations: Option<Operations>,
}

/// Operations of an instruction.
#[derive(Debug, PartialEq, Eq)]
pub struct Operations {
    /// `f32`.
    pub number: String,
    /// Whether the numbers are of a wave; otherwise they are of a lane.
    pub by_wave: bool,
    /// In rocprof-compute's convention.
    pub convention: u64,
    /// Every product and sum.
    pub effective: u64,
}

/// Of an instruction, or of both operations of a pair.
pub fn expected(text: &str) -> Result<Vec<Expected>, Failure> {
    text.split(" :: ").map(|part| one(part.trim())).collect()
}

fn plain(class: &str) -> Expected {
    Expected { class: class.to_owned(), operations: None }
}

fn one(text: &str) -> Result<Expected, Failure> {
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    let (unit, rest) = mnemonic.split_once('_').ok_or_else(|| format!("{mnemonic}: not a mnemonic"))?;
    let first_operand = text[mnemonic.len()..].split(',').next().unwrap_or_default().trim();
    let operands = text[mnemonic.len()..].trim();
    match unit {
        "v" => vector(rest, first_operand),
        "s" => Ok(scalar(rest, first_operand)),
        "ds" => Ok(plain(lds(rest, operands))),
        "global" | "flat" | "scratch" | "buffer" | "tbuffer" | "image" => Ok(memory(unit, rest)),
        "tensor" => Ok(plain("tensor")),
        "exp" | "export" => Ok(plain("export")),
        _ => Err(format!("{mnemonic}: unit {unit} is not known here")),
    }
}

/// `f32` of `f32`, `i32` of `u32`, `b32`, `u24`.
fn number(word: &str) -> Option<&'static str> {
    Some(match word {
        "f16" => "f16",
        "bf16" => "bf16",
        "f32" => "f32",
        "xf32" => "xf32",
        "f64" => "f64",
        "fp8" | "bf8" => "f8",
        "i4" | "u4" | "iu4" => "i4",
        "i8" | "u8" | "iu8" => "i8",
        "i16" | "u16" | "b16" => "i16",
        "i32" | "u32" | "b32" => "i32",
        "i64" | "u64" | "b64" => "i64",
        _ => return None,
    })
}

fn vector(rest: &str, destination: &str) -> Result<Expected, Failure> {
    let rest = rest.strip_prefix("dual_").unwrap_or(rest);
    let endings = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa", "_dpp8"];
    let rest = endings.iter().find_map(|ending| rest.strip_suffix(ending)).unwrap_or(rest);
    for unit in ["mfma", "smfmac", "wmma", "swmmac"] {
        if let Some(shape) = rest.strip_prefix(unit).and_then(|rest| rest.strip_prefix('_')) {
            return matrix(unit, shape);
        }
    }
    if rest == "nop" || rest == "clrexcp" || rest == "pipeflush" {
        return Ok(plain("control"));
    }
    let begins = |starts: &[&str]| starts.iter().any(|start| rest.starts_with(start));
    if begins(&["cmp_", "cmpx_"]) {
        return Ok(plain("valu.compare"));
    }
    if begins(&["cvt_", "sat_pk"]) {
        return Ok(plain("valu.conversion"));
    }
    if begins(&["mov_", "movrel", "swap", "accvgpr_", "pk_mov_", "pack_"]) {
        return Ok(plain("valu.move"));
    }
    if begins(&["cndmask_"]) {
        return Ok(plain("valu.select"));
    }
    if begins(&["readlane_", "writelane_", "readfirstlane_", "permlane"]) && !begins(&["permlane_idx_gen"]) {
        return Ok(plain("valu.exchange"));
    }
    let (pairs, rest) = rest.strip_prefix("pk_").map_or((1, rest), |rest| (2, rest));
    let types: Vec<&'static str> = rest.split('_').filter_map(number).collect();
    let (first, last) = (types.first().copied(), types.last().copied());
    let begins = |starts: &[&str]| starts.iter().any(|start| rest.starts_with(start));
    let none = || format!("v_{rest}: no type");
    // What it is, of which numbers, how many operations for rocprof-compute, and how many of one number.
    let (what, of, convention, effective) = if let Some(dot) = rest.strip_prefix("dot") {
        let length = dot.chars().next().and_then(|digit| digit.to_digit(10)).ok_or_else(none)?;
        ("dot", last, 2, 2 * u64::from(length))
    } else if begins(&["s_"]) || begins(&["exp_", "log_", "rcp_", "rsq_", "sqrt_", "sin_", "cos_", "tanh_"]) {
        ("trans", last, 1, 1)
    } else if begins(&["fma_mix", "mad_mix"]) {
        ("fma", Some("f32"), 2, 2)
    } else if begins(&["fma", "mac_", "mad_", "madak_", "madmk_", "div_fmas"]) {
        ("fma", first, 2, 2)
    } else if begins(&["mul_", "mullit_"]) {
        ("mul", first, 1, 1)
    } else if begins(&["add", "sub", "lshl_add_", "xad_"]) {
        ("add", first, 1, 1)
    } else {
        // A number of leading zeros is 32 bits wide, the exponent of a float belongs to the float, the sums of byte
        // differences are dwords.
        let of = match () {
            () if begins(&["frexp_", "cls_", "clz_", "ctz_"]) => last,
            () if begins(&["sad_", "msad_", "lerp_"]) => Some(if rest.ends_with("u16") { "i16" } else { "i32" }),
            () if begins(&["qsad_", "mqsad_"]) => first,
            () => first,
        };
        let floats = of.is_some_and(|of| of.contains('f'));
        ("other", of, u64::from(!floats), u64::from(!floats))
    };
    let number = of.ok_or_else(none)?;
    let is_integer = number.starts_with('i');
    // rocprof-compute counts instructions on integers, whatever they do.
    let convention = if is_integer { convention.min(1) } else { convention };
    // A result in a scalar register is one for the wave.
    let by_wave = destination.starts_with('s') && what == "trans";
    let operations = (effective > 0).then(|| Operations {
        number: number.to_owned(),
        by_wave,
        convention,
        effective: effective * pairs,
    });
    Ok(Expected { class: format!("valu.{number}.{what}"), operations })
}

/// `f32_32x32x8f16`, `f32_32x32x4_2b_f16`, `i32_16x16x16_iu8`.
fn matrix(unit: &str, shape: &str) -> Result<Expected, Failure> {
    let none = || format!("{unit} {shape}: not a shape");
    let rest = shape.split_once('_').ok_or_else(none)?.1;
    let mut sides = rest.splitn(3, 'x');
    let mut side = || sides.next().ok_or_else(none);
    let (rows, columns, rest) = (side()?, side()?, side()?);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (depth, of) = rest.split_at(digits);
    let parse = |text: &str| text.parse::<u64>().map_err(|_| none());
    let (rows, columns, depth) = (parse(rows)?, parse(columns)?, parse(depth)?);
    let words: Vec<&str> = of.split('_').filter(|word| !word.is_empty() && *word != "1k").collect();
    let named = words.iter().find_map(|word| word.strip_suffix('b')?.parse::<u64>().ok());
    let of = words.iter().find_map(|word| if *word == "f8f6f4" { Some("f8f6f4") } else { number(word) });
    let of = of.ok_or_else(none)?;
    // The instructions that multiply several pairs of matrices, as the ISA guides of CDNA list them: those for which
    // one pair would leave lanes without work.
    let blocks = named.unwrap_or(match (unit, rows, depth, of) {
        ("mfma", 4, _, "f64") => 4,
        ("mfma", 4, _, _) => 16,
        ("mfma", 32, 1, "f32") | ("mfma", 32, 4, "f16" | "i8") | ("mfma", 32, 2, "bf16") => 2,
        ("mfma", 16, 1, "f32") | ("mfma", 16, 4, "f16" | "i8") | ("mfma", 16, 2, "bf16") => 4,
        ("mfma", 32, 4, "bf16") if shape.ends_with("_1k") => 2,
        ("mfma", 16, 4, "bf16") if shape.ends_with("_1k") => 4,
        _ => 1,
    });
    let dense = 2 * rows * columns * depth * blocks;
    let sparse = unit == "smfmac" || unit == "swmmac";
    let operations = Operations {
        number: of.to_owned(),
        by_wave: true,
        convention: dense,
        effective: if sparse { dense / 2 } else { dense },
    };
    Ok(Expected { class: format!("matrix.{unit}.{of}"), operations: Some(operations) })
}

fn scalar(rest: &str, destination: &str) -> Expected {
    let begins = |starts: &[&str]| starts.iter().any(|start| rest.starts_with(start));
    let class = if begins(&["cbranch_", "branch", "call_", "swappc_", "setpc_", "swap_pc_", "set_pc_", "add_pc_"]) {
        "branch"
    } else if begins(&["barrier", "get_barrier_state"]) {
        if rest == "get_barrier_state" { "salu.integer" } else { "barrier" }
    } else if begins(&["waitcnt", "wait_"]) {
        "wait"
    } else if begins(&["sendmsg"]) {
        "message"
    } else if begins(&["load_", "buffer_load_", "scratch_load_"]) {
        "smem.read"
    } else if begins(&["store_", "buffer_store_", "scratch_store_"]) {
        "smem.write"
    } else if begins(&["atomic_", "buffer_atomic_"]) {
        "smem.atomic"
    } else if begins(&[
        "endpgm",
        "nop",
        "delay_alu",
        "clause",
        "sleep",
        "set_",
        "setprio",
        "setreg",
        "setvskip",
        "sethalt",
        "dcache_",
        "icache_",
        "gl1_",
        "inst_prefetch",
        "round_mode",
        "denorm_mode",
        "ttrace",
        "trap",
        "wakeup",
        "version",
        "code_end",
        "memtime",
        "memrealtime",
        "prefetch_",
        "movrel",
        "monitor_",
        "alloc_vgpr",
        "incperf",
        "decperf",
    ]) {
        "control"
    } else if rest.contains("saveexec") || rest.contains("wrexec") || destination.starts_with("exec") {
        "salu.exec"
    } else if begins(&["mov_", "movk_", "cmov", "cselect_"]) {
        "salu.move"
    } else if begins(&["cmp_", "cmpk_", "bitcmp"]) {
        "salu.compare"
    } else if rest.contains("_f32") || rest.contains("_f16") {
        "salu.float"
    } else {
        "salu.integer"
    };
    plain(class)
}

fn lds(rest: &str, operands: &str) -> &'static str {
    let begins = |starts: &[&str]| starts.iter().any(|start| rest.starts_with(start));
    if operands.split_whitespace().any(|word| word == "gds") || begins(&["gws_", "ordered_"]) {
        "gds"
    } else if begins(&["bpermute_", "permute_", "swizzle_"]) {
        "lds.exchange"
    } else if rest == "nop" {
        "control"
    } else if begins(&["wrxchg", "storexchg"]) {
        "lds.atomic"
    } else if begins(&["read", "load"]) {
        "lds.read"
    } else if begins(&["write", "store"]) {
        "lds.write"
    } else {
        "lds.atomic"
    }
}

fn memory(unit: &str, rest: &str) -> Expected {
    let kind = if rest.contains("atomic") {
        "atomic"
    } else if rest.contains("store") {
        "write"
    } else if rest.contains("load") || rest.contains("sample") || rest.contains("gather") {
        "read"
    } else {
        return plain("control");
    };
    let space = if unit == "tbuffer" { "buffer" } else { unit };
    plain(&format!("vmem.{space}.{kind}"))
}
