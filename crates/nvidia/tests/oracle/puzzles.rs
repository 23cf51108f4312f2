//! Code made by hand, instruction by instruction, with answers that follow from what the control bits say. Each is what
//! a reading of them gets wrong that takes bits from the other half of the word, counts scoreboards from 1, looks for
//! the nearest setter in the text, or gives every operand one register.

use wavetap_base::entity::InstId;
use wavetap_code::{Class, Code, Event, Operation, Values, WaitCertainty};
use wavetap_nvidia::container::{Cubin, open};
use wavetap_nvidia::isa::{Inst, Model, Word, decode};

use super::compare::names;
use super::tool::with_code;
use WaitCertainty::{May, Must};

/// An instruction: its halves without control bits.
#[derive(Clone, Copy)]
struct Bits(u64, u64);

impl Bits {
    fn control(mut self, first: u32, value: u64) -> Bits {
        let field = first - 64;
        let mask = if first == 116 { 63 } else { 7 };
        self.1 = self.1 & !(mask << field) | value << field;
        self
    }

    fn write(self, scoreboard: u64) -> Bits {
        self.control(110, scoreboard)
    }

    fn read(self, scoreboard: u64) -> Bits {
        self.control(113, scoreboard)
    }

    fn wait(self, mask: u64) -> Bits {
        self.control(116, mask)
    }

    fn guard(self, predicate: u64, negated: bool) -> Bits {
        Bits(self.0 & !(15 << 12) | predicate << 12 | u64::from(negated) << 15, self.1)
    }
}

/// No scoreboards, no waits, a stall count of 2.
fn bits(lower: u64, upper: u64) -> Bits {
    Bits(lower, upper | 2 << 41 | 63 << 46)
}

/// `LDG.E Rd, [R2.64]` of sm_80, as the next ones.
fn load(to: u64) -> Bits {
    bits(0x0000_0024_0200_7981 | to << 16, 0x0c1e_1900)
}

/// `FADD Rd, Ra, Ra`
fn add(to: u64, from: u64) -> Bits {
    bits(0x7221 | to << 16 | from << 24 | from << 32, 0)
}

/// `BRA` over so many instructions, backward if it is less than 0.
fn branch(instructions: i64) -> Bits {
    let upper = if instructions < 0 { 0x0383_ffff } else { 0x0380_0000 };
    bits(0x7947 | ((instructions * 4) as u64) << 34, upper)
}

fn exit() -> Bits {
    bits(0x794d, 0x0380_0000)
}

/// `DEPBAR.LE SB0, count`
fn depbar(count: u64) -> Bits {
    bits(0x0000_8000_0000_791a | count << 38, 0)
}

/// `LDGSTS.E.BYPASS.128 [R19], [R16.64]`
fn copy() -> Bits {
    bits(0x1013_7fae, 0x0b90_1c46)
}

/// `LDGDEPBAR`
fn group() -> Bits {
    bits(0x79af, 0)
}

/// `LDS Rd, [R4]`
fn shared(to: u64) -> Bits {
    bits(0x0400_7984 | to << 16, 0x800)
}

fn cubin(instructions: &[Bits]) -> Cubin {
    let file = include_bytes!("../../fixtures/plain.fatbin");
    let kernel = wavetap_nvidia::container::images(file).expect("images").remove(0).contents().expect("a cubin");
    let words: Vec<_> = instructions.iter().map(|bits| (bits.0, bits.1)).collect();
    let made = with_code(&kernel, &words);
    open(&made, "puzzle").expect("a cubin").cubins.remove(0)
}

/// By wait: the instruction, the name, and what it waits for.
type Waits = Vec<(u32, String, Vec<(Operation, WaitCertainty)>)>;

fn waits_of(code: &Code<'_>) -> Waits {
    let of = |wait: &wavetap_code::Wait| {
        let operations = wait.operations.iter().map(|each| (each.operation, each.certainty)).collect();
        (wait.inst.0, wait.name.as_deref().unwrap_or_default().to_owned(), operations)
    };
    code.waits().iter().map(of).collect()
}

fn waits(instructions: &[Bits]) -> Waits {
    waits_of(&cubin(instructions).functions().next().expect("a kernel").code(&()).expect("code"))
}

fn of(inst: u32, name: &str, operations: &[(u32, WaitCertainty)]) -> (u32, String, Vec<(Operation, WaitCertainty)>) {
    let operations = operations.iter().map(|(id, certainty)| (Operation::Inst(InstId(*id)), *certainty)).collect();
    (inst, name.to_owned(), operations)
}

/// Scoreboard 0 is one; bit k of the mask is scoreboard k.
#[test]
fn scoreboards_count_from_zero() {
    let code = [load(4).write(0), load(5).write(1), load(6).write(5), add(7, 4).wait(1), add(7, 5).wait(2)];
    let code = [&code[..], &[add(7, 6).wait(32), exit()]].concat();
    assert_eq!(waits(&code), [of(3, "SB0", &[(0, Must)]), of(4, "SB1", &[(1, Must)]), of(5, "SB5", &[(2, Must)])]);
}

/// Ones in the lower half of the word, where an immediate is, are no control bits.
#[test]
fn control_bits_are_in_the_upper_half() {
    // LOP3.LUT R16, R10, 0xffffffff, RZ, 0xc0
    let immediate = bits(0xffff_ffff_0a10_7812, 0x078e_c0ff);
    assert_eq!(waits(&[load(4).write(0), immediate, add(5, 4).wait(1), exit()]), [of(2, "SB0", &[(0, Must)])]);
    let inst = decode(Model::new(80).expect("known"), Word::new(immediate.0, immediate.1), 0).expect("known");
    assert_eq!((inst.control().stall, inst.control().write, inst.control().wait), (2, None, 0));
}

#[test]
fn all_on_one_scoreboard_are_waited_for() {
    let code = [load(4).write(0), load(5).write(0), add(6, 5).wait(1), exit()];
    assert_eq!(waits(&code), [of(2, "SB0", &[(0, Must), (1, Must)])]);
}

/// A read scoreboard has its own producer and event, and what was waited for is none any more.
#[test]
fn read_scoreboards_have_producers() {
    let store = bits(0x0000_0004_0200_7986, 0x0c10_1924).read(1);
    let code = [load(4).write(0), add(5, 4).wait(1), store, add(4, 5).wait(2), add(6, 5).wait(1), exit()];
    let expected = [of(1, "SB0", &[(0, Must)]), of(3, "SB1", &[(2, Must)]), of(4, "SB0", &[])];
    assert_eq!(waits(&code), expected);
    let cubin = cubin(&code);
    let code = cubin.functions().next().expect("a kernel").code(&()).expect("code");
    assert_eq!(code.waits()[1].operations[0].event, Event::Operands);
}

#[test]
fn both_sides_of_a_branch_are_waited_for() {
    let code = [branch(2).guard(0, false), load(4).write(0), branch(1), load(4).write(0), add(5, 4).wait(1), exit()];
    assert_eq!(waits(&code), [of(4, "SB0", &[(1, May), (3, May)])]);
}

#[test]
fn a_loop_waits_for_its_own_load() {
    let code = [load(4).write(2), add(5, 4).wait(4), load(4).write(2), branch(-3).guard(0, false), exit()];
    assert_eq!(waits(&code), [of(1, "SB2", &[(0, May), (2, May)])]);
}

#[test]
fn opposite_guards() {
    let holds = load(4).write(0).guard(0, false);
    let fails = load(4).write(0).guard(0, true);
    let code = [holds, fails, add(5, 4).wait(1).guard(0, false), add(5, 4), exit()];
    assert_eq!(waits(&code), [of(2, "SB0", &[(0, May), (1, May)])]);
    let cubin = cubin(&code);
    let code = cubin.functions().next().expect("a kernel").code(&()).expect("code");
    assert_eq!(code.producers(InstId(2), Values::All), [InstId(0)]);
    assert_eq!(code.producers(InstId(3), Values::All), [InstId(0), InstId(1)]);
}

/// `DEPBAR.LE SB0, 1` waits for all groups but the last.
#[test]
fn groups_of_copies() {
    let code = [copy(), copy(), group().write(0), copy(), group().write(0), depbar(1), depbar(0), exit()];
    let expected = [of(5, "SB0, 0x1", &[(0, Must), (1, Must), (2, Must)]), of(6, "SB0", &[(3, Must), (4, Must)])];
    assert_eq!(waits(&code), expected);
    // Loads in no order: each may be what it waits for.
    let code = [load(4).write(0), load(5).write(0), depbar(1), exit()];
    let unordered = WaitCertainty::Unordered;
    assert_eq!(waits(&code), [of(2, "SB0, 0x1", &[(0, unordered), (1, unordered)])]);
}

/// Of loads from shared memory the next one's scoreboard stands for those without.
#[test]
fn units_work_in_order() {
    let code = [shared(8), load(4).write(1), shared(9).write(0), add(10, 8).wait(1), add(10, 4).wait(2), exit()];
    let expected = [of(3, "SB0", &[(0, Must), (2, Must)]), of(4, "SB1", &[(1, Must)])];
    assert_eq!(waits(&code), expected);
    let cubin = cubin(&code);
    let code = cubin.functions().next().expect("a kernel").code(&()).expect("code");
    let covered: Vec<_> = code.waits()[0].operations.iter().map(|each| each.covered_by).collect();
    assert_eq!(covered, [Some(InstId(2)), None]);
}

#[test]
fn calls_may_leave_what_was_in_flight() {
    let call = bits(0x7943, 0x03c0_0000);
    let expected = (2, "SB0".to_owned(), vec![(Operation::Inst(InstId(0)), May), (Operation::Callee(InstId(1)), May)]);
    assert_eq!(waits(&[load(4).write(0), call, add(5, 4).wait(1), exit()]), [expected]);
}

fn decoded(model: u16, lower: u64, upper: u64) -> Inst {
    decode(Model::new(model).expect("known"), Word::new(lower, upper), 0).expect("known")
}

/// Model, halves, name, registers that are written, registers that are read.
type Roles = (u16, u64, u64, &'static str, &'static str, &'static str);

const ROLES: &[Roles] = &[
    // SHFL.BFLY P0, R2, R7, 0x4, 0x1f
    (80, 0x0c80_1f00_0702_7f89, 0x0000_0000, "SHFL", "P0 R2", "R7"),
    // LOP3.LUT P0, R16, R10, 0x1f, RZ, 0xc0, !PT
    (80, 0x0000_001f_0a10_7812, 0x0780_c0ff, "LOP3", "P0 R16", "R10"),
    // ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU PT, R25, [R4.64], R25
    (80, 0x0000_0019_0419_79a8, 0x081e_e7ca, "ATOMG", "R25", "R25 R4 R5 UR10 UR11"),
    // IMAD.WIDE R2, R0, R3, c[0x0][0x160]
    (80, 0x0000_5800_0002_7625, 0x078e_0203, "IMAD.WIDE", "R2 R3", "R0 R3"),
    // HMMA.16816.F32 R16, R12, R2, R16
    (80, 0x0000_0002_0c10_723c, 0x1810, "HMMA", "R16 R17 R18 R19", "R12 R13 R14 R15 R16 R17 R18 R19 R2 R3"),
    // DADD R8, R4, R4
    (80, 0x0000_0000_0408_7229, 0x4, "DADD", "R8 R9", "R4 R5"),
    // LDSM.16.M88.4 R4, [R0]
    (80, 0x0000_0000_0004_783b, 0x200, "LDSM", "R4 R5 R6 R7", "R0"),
    // LDG.E.128 R12, [R8.64], with a descriptor in UR4
    (80, 0x0000_0004_080c_7981, 0x0c1e_1d00, "LDG", "R12 R13 R14 R15", "R8 R9 UR4 UR5"),
    // IADD3 R5, P0, R5, R6, RZ and IADD3.X R21, R15, R17, RZ, P1, !PT
    (80, 0x0000_0006_0505_7210, 0x07f1_e0ff, "IADD3", "P0 R5", "R5 R6"),
    (80, 0x0000_0011_0f15_7210, 0x00ff_e4ff, "IADD3", "R21", "P1 R15 R17"),
    // @UP5 UIADD3 UR6, UP3, -UR5, UR7, URZ
    (80, 0x0000_0007_0506_5290, 0x0df7_e13f, "UIADD3", "UP3 UR6", "UP5 UR5 UR7"),
    // LDGSTS.E.BYPASS.128 [R19], [R16.64]
    (80, 0x1013_7fae, 0x0b90_1c46, "LDGSTS", "", "R16 R17 R19 UR6 UR7"),
    // STSM.16.M88.4 [R11], R4
    (90, 0x0000_0004_0b00_7844, 0x200, "STSM", "", "R11 R4 R5 R6 R7"),
    // REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR12][R4.64+0xc], R17
    (90, 0x0000_0c11_0400_79a6, 0x0c10_f38c, "REDG", "", "R17 R4 R5 UR12 UR13"),
    // IADD.64 R4, R2, 0x4
    (120, 0x0000_0004_0204_7835, 0x078e_0200, "IADD", "R4 R5", "R2 R3"),
];

#[test]
fn roles_of_operands() {
    for (model, lower, upper, name, writes, reads) in ROLES {
        let inst = decoded(*model, *lower, *upper);
        let text = |names: std::collections::BTreeSet<(&'static str, u16)>| {
            let mut all: Vec<String> = names.into_iter().map(|(file, number)| format!("{file}{number}")).collect();
            all.sort();
            all.join(" ")
        };
        assert_eq!(inst.name(), *name);
        assert_eq!(
            (text(names(inst.writes())).as_str(), text(names(inst.reads())).as_str()),
            (*writes, *reads),
            "{name}"
        );
    }
}

/// `.SYS` is the scope of a load from global memory, and no sign of shared memory.
#[test]
fn loads_of_the_system_are_global() {
    assert_eq!(decoded(75, 0x0000_0004_ff02_7981, 0x0c1e_e900).class(), Class::Global);
    assert_eq!(decoded(80, 0x0408_7984, 0x800).class(), Class::Shared);
}
