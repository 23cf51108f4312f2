//! The opcodes of Xe-HPC, as a table: the arrangement of their fields, and what they do besides their operands.

use super::compact::Layout;

/// How the fields of an instruction are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Format {
    /// One source.
    Unary,
    /// Two sources.
    Binary,
    /// Transcendentals: one source, or two and macro registers.
    Math,
    /// Three sources.
    Ternary,
    /// Three sources with macro registers.
    TernaryMacro,
    Dpas,
    Send,
    Sync,
    /// No operands.
    Bare,
    /// Both offsets: where the others go on, and where the lanes that take it go.
    BranchBoth,
    /// One offset.
    BranchOne,
    /// One offset, or a register.
    Jump,
    /// A return address and one offset, or a register.
    Call,
    /// A register.
    Return,
}

/// What of the accumulator an instruction accesses without naming it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Accumulator {
    None,
    /// Reads a value of the type of the result per lane.
    Reads,
    /// Writes a carry per lane.
    WritesCarry,
    /// Reads a borrow and writes one.
    Borrow,
    /// Reads and writes a product of 8 bytes per lane.
    Product,
}

/// What a conditional modifier does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Condition {
    /// It writes a flag, where there is one.
    Writes,
    /// It chooses between the sources.
    Selects,
    /// It chooses, and the assembler says that it also writes the flag.
    SelectsAndWrites,
    /// There is none.
    Absent,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opcode {
    pub code: u8,
    pub name: &'static str,
    pub format: Format,
    pub accumulator: Accumulator,
    pub condition: Condition,
}

const fn row(code: u8, name: &'static str, format: Format) -> Opcode {
    let condition = match format {
        Format::Unary | Format::Binary | Format::Ternary => Condition::Writes,
        _ => Condition::Absent,
    };
    Opcode { code, name, format, accumulator: Accumulator::None, condition }
}

const fn with(code: u8, name: &'static str, format: Format, accumulator: Accumulator) -> Opcode {
    Opcode { accumulator, ..row(code, name, format) }
}

const fn selects(code: u8, name: &'static str, format: Format, condition: Condition) -> Opcode {
    Opcode { condition, ..row(code, name, format) }
}

/// By code.
const OPCODES: [Opcode; 63] = {
    use Accumulator::{Borrow, Product, Reads, WritesCarry};
    use Format::*;
    [
        row(0x01, "sync", Sync),
        row(0x20, "jmpi", Jump),
        row(0x21, "brd", Jump),
        row(0x22, "if", BranchBoth),
        row(0x23, "brc", BranchBoth),
        row(0x24, "else", BranchBoth),
        row(0x25, "endif", BranchOne),
        row(0x27, "while", BranchOne),
        row(0x28, "break", BranchBoth),
        row(0x29, "cont", BranchBoth),
        row(0x2a, "halt", BranchBoth),
        row(0x2b, "calla", Call),
        row(0x2c, "call", Call),
        row(0x2d, "ret", Return),
        row(0x2e, "goto", BranchBoth),
        row(0x2f, "join", BranchOne),
        row(0x31, "send", Send),
        row(0x32, "sendc", Send),
        row(0x38, "math", Math),
        row(0x40, "add", Binary),
        row(0x41, "mul", Binary),
        row(0x42, "avg", Binary),
        row(0x43, "frc", Unary),
        row(0x44, "rndu", Unary),
        row(0x45, "rndd", Unary),
        row(0x46, "rnde", Unary),
        row(0x47, "rndz", Unary),
        with(0x48, "mac", Binary, Reads),
        with(0x49, "mach", Binary, Product),
        row(0x4a, "lzd", Unary),
        row(0x4b, "fbh", Unary),
        row(0x4c, "fbl", Unary),
        row(0x4d, "cbit", Unary),
        with(0x4e, "addc", Binary, WritesCarry),
        with(0x4f, "subb", Binary, Borrow),
        row(0x52, "add3", Ternary),
        with(0x53, "macl", Binary, Product),
        row(0x54, "srnd", Binary),
        row(0x58, "dp4a", Ternary),
        row(0x59, "dpas", Dpas),
        row(0x5b, "mad", Ternary),
        row(0x5d, "madm", TernaryMacro),
        row(0x60, "nop", Bare),
        row(0x61, "mov", Unary),
        selects(0x62, "sel", Binary, Condition::Selects),
        row(0x63, "movi", Binary),
        row(0x64, "not", Unary),
        row(0x65, "and", Binary),
        row(0x66, "or", Binary),
        row(0x67, "xor", Binary),
        row(0x68, "shr", Binary),
        row(0x69, "shl", Binary),
        row(0x6b, "bfn", Ternary),
        row(0x6c, "asr", Binary),
        row(0x6e, "ror", Binary),
        row(0x6f, "rol", Binary),
        row(0x70, "cmp", Binary),
        row(0x71, "cmpn", Binary),
        selects(0x72, "csel", Ternary, Condition::SelectsAndWrites),
        row(0x77, "bfrev", Unary),
        row(0x78, "bfe", Ternary),
        row(0x79, "bfi1", Binary),
        row(0x7a, "bfi2", Ternary),
    ]
};

pub(super) const BFN: u8 = 0x6b;
pub(super) const SEL: u8 = 0x62;
pub(super) const MUL: u8 = 0x41;

impl Opcode {
    pub(super) fn find(code: u8) -> Option<&'static Opcode> {
        let found = OPCODES.binary_search_by_key(&code, |row| row.code);
        found.ok().map(|index| &OPCODES[index])
    }

    pub(super) fn layout(&self) -> Layout {
        match self.format {
            Format::Ternary | Format::TernaryMacro => Layout::Ternary,
            Format::Dpas => Layout::Dpas,
            _ => Layout::Binary,
        }
    }
}

/// Functions of `math`, by code. Codes that Xe-HPC does not have are not there.
pub(super) fn math_function(code: u8) -> Option<&'static str> {
    const FUNCTIONS: [(u8, &str); 9] = [
        (1, "inv"),
        (2, "log"),
        (3, "exp"),
        (4, "sqt"),
        (5, "rsqt"),
        (6, "sin"),
        (7, "cos"),
        (MATH_INVM, "invm"),
        (MATH_RSQTM, "rsqtm"),
    ];
    FUNCTIONS.iter().find(|(known, _)| *known == code).map(|(_, name)| *name)
}

pub(super) const MATH_INVM: u8 = 14;
pub(super) const MATH_RSQTM: u8 = 15;

/// What a `sync` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Nothing but what its scoreboard bits say.
    Nop,
    /// Waits until operands of tokens were read.
    AllOperands,
    /// Waits until results of tokens are written.
    AllResults,
    /// Waits until a fence is done.
    Fence,
    /// Waits for the other threads of the workgroup.
    Barrier,
    /// Waits for the host.
    Host,
}

impl Sync {
    pub(super) fn of(code: u8) -> Option<(Sync, &'static str)> {
        Some(match code {
            0 => (Sync::Nop, "nop"),
            2 => (Sync::AllOperands, "allrd"),
            3 => (Sync::AllResults, "allwr"),
            13 => (Sync::Fence, "fence"),
            14 => (Sync::Barrier, "bar"),
            15 => (Sync::Host, "host"),
            _ => return None,
        })
    }
}
