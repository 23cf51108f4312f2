//! A small assembler for listings with inserted lines: the original is what is left without them.

use std::collections::BTreeMap;

use crate::{Finding, KernelCode, Rule, check_code};
use wavetap_amdgpu::{Inst, Memory, Reg, Role, Target, Value, scalar};
use wavetap_analysis::cfg::Program;
use wavetap_analysis::dataflow::{Summaries, used_registers};
use wavetap_analysis::kernel::{BodyKind, Image};
use wavetap_object::code_object::InitialRegisters;
use wavetap_profile::map::AddressPair;

/// Where the original and the new code are.
const ORIGINAL: u64 = 0x1000;
const NEW: u64 = 0x1_0000;

/// Scratch memory that is there for inserted code, if it accesses any.
const SCRATCH: (u64, u64) = (16, 40);

/// One line: an instruction, or a label.
struct Line {
    inserted: bool,
    /// An access that lanes may not execute.
    drops: bool,
    /// In the new code it is `s_nop 0`.
    becomes_nop: bool,
    label: Option<String>,
    inst: Option<Inst>,
    /// Where it branches to.
    to: Option<String>,
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `s4`, `s[4:5]`, `v3`, `vcc`, `exec_lo`, a number, `off`; `#5` is an immediate beside constants, `=5` a literal where
/// a constant would do.
fn value(text: &str, immediate: bool) -> Option<Value> {
    let named = |first, dwords| Some(Value::Reg(Reg::scalar(first, dwords)));
    let run = |text: &str| {
        let text = text.strip_prefix('[')?.strip_suffix(']')?;
        let (first, last) = text.split_once(':')?;
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        Some((first, (last - first + 1) as u8))
    };
    match text {
        "vcc" => return named(scalar::VCC, 2),
        "vcc_lo" => return named(scalar::VCC, 1),
        "vcc_hi" => return named(scalar::VCC + 1, 1),
        "exec" => return named(scalar::EXEC, 2),
        "exec_lo" => return named(scalar::EXEC, 1),
        "m0" => return named(scalar::M0, 1),
        "null" => return named(scalar::NULL, 1),
        "off" => return Some(Value::Off),
        _ => {}
    }
    if let Some(immediate) = text.strip_prefix('#') {
        return number(immediate).map(Value::Imm);
    }
    if let Some(literal) = text.strip_prefix('=') {
        return number(literal).map(|number| Value::Literal(number as u32));
    }
    if let Some(number) = number(text) {
        return Some(match number {
            _ if immediate => Value::Imm(number),
            -16..=64 => Value::InlineInt(number as i8),
            _ => Value::Literal(number as u32),
        });
    }
    let (file, rest) = text.split_at(1);
    let (first, dwords) = run(rest).or_else(|| Some((rest.parse().ok()?, 1)))?;
    match file {
        "s" => Some(Value::Reg(Reg::scalar(first, dwords))),
        "v" => Some(Value::Reg(Reg::vector(first, dwords))),
        "a" => Some(Value::Reg(Reg::accum(first, dwords))),
        _ => None,
    }
}

fn parse(target: Target, text: &str) -> Vec<Line> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (inserted, line) = line.strip_prefix("+ ").map_or((false, line), |line| (true, line));
            let (drops, line) = line.strip_prefix("~ ").map_or((false, line), |line| (true, line));
            let (becomes_nop, line) = line.strip_prefix("= ").map_or((false, line), |line| (true, line));
            if let Some(label) = line.strip_suffix(':') {
                return Line { inserted, drops, becomes_nop, label: Some(label.to_owned()), inst: None, to: None };
            }
            let (line, offset) =
                line.split_once(" offset:").map_or((line, None), |(line, offset)| (line, offset.parse().ok()));
            let (mnemonic, operands) = line.split_once(' ').unwrap_or((line, ""));
            let operands: Vec<&str> =
                operands.split(',').map(str::trim).filter(|operand| !operand.is_empty()).collect();
            let to = operands.iter().find_map(|operand| operand.strip_prefix('@')).map(str::to_owned);
            let build = |immediate: bool| {
                let values = operands.iter().map(|operand| match operand.strip_prefix('@') {
                    Some(_) => Some(Value::Imm(0)),
                    None => value(operand, immediate),
                });
                let values: Option<Vec<Value>> = values.collect();
                wavetap_amdgpu::build(target, mnemonic, &values.unwrap_or_else(|| panic!("{line}")))
            };
            // Some have an immediate that is not written.
            let inst = build(false)
                .or_else(|_| build(true))
                .or_else(|_| wavetap_amdgpu::build(target, mnemonic, &[Value::Imm(0)]));
            let mut inst = inst.unwrap_or_else(|error| panic!("{line}: {error}"));
            if let Some(offset) = offset {
                inst.modifiers.offset = offset;
            }
            Line { inserted, drops, becomes_nop, label: None, inst: Some(inst), to }
        })
        .collect()
}

/// Bytes of the original or the new code, and the address of every line that is an instruction.
fn assemble(target: Target, lines: &[&Line], base: u64) -> (Vec<u8>, Vec<u64>) {
    let mut labels = BTreeMap::new();
    let mut at = base;
    for line in lines {
        match (&line.label, &line.inst) {
            (Some(label), _) => drop(labels.insert(label.as_str(), at)),
            (_, Some(inst)) => at += u64::from(inst.size),
            _ => {}
        }
    }
    let (mut bytes, mut addresses) = (Vec::new(), Vec::new());
    for line in lines {
        let Some(mut inst) = line.inst.clone() else { continue };
        if line.becomes_nop && base == NEW {
            inst = wavetap_amdgpu::build(target, "s_nop", &[Value::Imm(0)]).expect("s_nop");
        }
        let address = base + bytes.len() as u64;
        if let Some(to) = &line.to {
            let displacement = (labels[to.as_str()] as i64 - (address + u64::from(inst.size)) as i64) / 4;
            let operand = inst.operands.iter_mut().find(|operand| operand.role == Role::SimmTarget);
            operand.expect("a branch").value = Value::Imm(displacement);
        }
        bytes.extend(wavetap_amdgpu::encode(target, &inst).expect("encodes"));
        addresses.push(address);
    }
    (bytes, addresses)
}

/// What the checker finds in a kernel whose lines that begin with `+` were inserted. Kernel arguments are in s[0:1];
/// bytes 16 to 40 of scratch memory are there for inserted code that accesses it; where software sets FLAT_SCRATCH,
/// s[2:3] and s4 have what it is made of (for the original, too, if it sets it), and where buffer instructions reach
/// scratch memory, s[4:7] describe that of all waves and s8 is the wave's offset. A line `LABEL:` before a
/// function that is called is a label like any other. An access after `~ ` may be executed in fewer lanes, what
/// follows `= ` becomes `s_nop 0`.
pub(super) fn check(target: Target, text: &str) -> Vec<Finding> {
    let lines = parse(target, text);
    let original: Vec<&Line> = lines.iter().filter(|line| !line.inserted).collect();
    let new: Vec<&Line> = lines.iter().collect();
    let (old_bytes, old_addresses) = assemble(target, &original, ORIGINAL);
    let (new_bytes, new_addresses) = assemble(target, &new, NEW);
    let insts = new.iter().filter(|line| line.inst.is_some());
    let kept = insts.zip(&new_addresses).filter(|(line, _)| !line.inserted).map(|(_, address)| *address);
    let addresses: Vec<AddressPair> = old_addresses
        .iter()
        .zip(kept)
        .map(|(original, rewritten)| AddressPair { original: *original, rewritten })
        .collect();
    let of_original = original.iter().filter(|line| line.inst.is_some()).zip(&old_addresses);
    let dropping = of_original.filter(|(line, _)| line.drops).map(|(_, address)| *address).collect();
    let mut image = Image::new();
    image.add_code(ORIGINAL, &old_bytes);
    image.set_wave_size(ORIGINAL, target.wave_size());
    let mut new_image = image.clone();
    new_image.add_code(NEW, &new_bytes);
    new_image.set_wave_size(NEW, target.wave_size());
    let program = Program::build(target, &image, [("kernel".to_owned(), BodyKind::Kernel, ORIGINAL)]);
    let new = Program::build(target, &new_image, [("kernel".to_owned(), BodyKind::Kernel, NEW)]);
    assert!(
        program.undecodable().is_empty() && new.undecodable().is_empty(),
        "{:?} {:?}",
        program.undecodable(),
        new.undecodable()
    );
    let registers = InitialRegisters {
        kernarg_ptr: Some(0),
        user_sgprs: 2,
        used_user_sgprs: 2,
        total: 2,
        ..InitialRegisters::default()
    };
    let by_buffer = target.offset_flat_scratch();
    let registers = InitialRegisters { private_segment_buffer: by_buffer.then_some(4), ..registers };
    let accesses = |inst: &Inst| inst.variant.memory == if by_buffer { Memory::Buffer } else { Memory::Scratch };
    let added = new.ids().flat_map(|id| new.body(id).insts()).any(accesses);
    let (base, offset) = (Some(2), Some(4));
    let (used_user_sgprs, user_sgprs, total) = (4, 4, 5);
    let led = InitialRegisters {
        flat_scratch_init: base,
        private_segment_wave_offset: offset,
        used_user_sgprs,
        user_sgprs,
        total,
        ..registers
    };
    let registers = if program.ids().any(|id| program.body(id).sets_flat_scratch()) { led } else { registers };
    let after = if added && by_buffer {
        InitialRegisters { private_segment_wave_offset: Some(8), total: 9, ..registers }
    } else if added && !target.architected_flat_scratch() {
        led
    } else {
        registers
    };
    check_code(&KernelCode {
        program: &program,
        image: &image,
        kernel: program.at(ORIGINAL).expect("the kernel"),
        new: &new,
        entry: NEW,
        new_code: NEW,
        addresses: &addresses,
        entry_before: &registers,
        entry_after: &after,
        vector_registers: 256,
        scratch: if added { SCRATCH } else { (0, 0) },
        used: used_registers(&program, &image),
        summaries: &Summaries::compute(&program),
        dropping: &dropping,
        replays: false,
    })
}

/// A target by name; `/64` after it for wave64.
pub(super) fn target(name: &str) -> Target {
    let (name, lanes) = name.split_once('/').map_or((name, None), |(name, lanes)| (name, lanes.parse().ok()));
    let target = Target::by_name(name).expect(name);
    lanes.map_or(target, |lanes| target.with_wave_size(lanes).expect("such waves"))
}

/// Asserts what is found: the rule, and a part of the message.
#[track_caller]
pub(super) fn finds(name: &str, text: &str, rule: Rule, part: &str) {
    let found = check(target(name), text);
    assert!(
        found.iter().any(|finding| finding.rule == rule && finding.message.contains(part)),
        "{name}: {found:#?}\n{text}"
    );
}

/// Asserts that nothing is found.
#[track_caller]
pub(super) fn accepts(name: &str, text: &str) {
    let found = check(target(name), text);
    assert!(found.is_empty(), "{name}: {found:#?}\n{text}");
}
