//! Rewritten code objects and their code, to be damaged.

use std::collections::BTreeMap;
use std::path::Path;

use rewriter_tests::full;
use rewriter_tests::kernels::build::{self, Variant};
use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::isa::{self, Branch, Flags, Inst, Reg, RegFile, Target, Value};
use wavetap::kernel::{BodyKind, Image};
use wavetap::pipeline::{CounterPlacement, Counters, Options, Selection, probe, rewrite};
use wavetap::profile::control::MAP_SECTION;
use wavetap::profile::map::ObjectMap;

/// `s_nop 0`, the same on every target.
const S_NOP: u32 = 0xbf80_0000;
/// The source that is there to be damaged; others are those of `rewriter-tests/kernels`.
pub const OWN: &str = "verify_damage";
/// A kernel whose arguments are preloaded, in assembly language: this compiler's do not run where nothing preloads.
pub const PRELOADED: &str = "preloaded";
/// A kernel that checks vector registers by itself, as no compiler writes them yet.
pub const SCHEDULED: &str = "scheduled";
/// Kernels of buffers, in which accesses out of bounds are dropped.
pub const DROPPED: &str = "buffers";
/// The kernels of other sources that are rewritten.
const KERNELS: &[&str] = &["nested_loops", "early_exits", "calls", "partial_waves", "reversed_in_lds", "linked_lists"];

/// Bytes at addresses of the rewritten object that take the place of what is there; none where a damage cannot be done.
pub type Patch = Option<Vec<(u64, Vec<u8>)>>;

/// An object before and after.
pub struct Subject {
    pub name: String,
    /// With the size of the kernels' waves.
    pub target: Target,
    pub original: Vec<u8>,
    pub rewritten: Vec<u8>,
    pub map: ObjectMap,
    /// Whether accesses out of bounds are dropped.
    pub drops: bool,
    pub code: Vec<Code>,
}

/// The new code of a kernel, with the functions that were copied for it.
pub struct Code {
    pub kernel: String,
    /// With the size of its waves.
    pub target: Target,
    /// By address.
    pub lines: Vec<Line>,
}

pub struct Line {
    pub address: u64,
    pub inst: Inst,
    /// Its original address; none if it was inserted.
    pub original: Option<u64>,
    /// Where the kernel or function that it belongs to is entered.
    pub body: u64,
    /// Whether that is a function.
    pub in_function: bool,
}

impl Line {
    pub fn end(&self) -> u64 {
        self.address + u64::from(self.inst.size)
    }

    pub fn is_inserted(&self) -> bool {
        self.original.is_none()
    }
}

/// A damaged file, and the kernel that a finding must name.
pub struct Harm {
    pub bytes: Vec<u8>,
    pub kernel: Option<String>,
}

impl Subject {
    /// A source, compiled for a target and rewritten.
    pub fn compile(source: &str, target: Target, level: &'static str, counters: Counters) -> Subject {
        let variant = Variant { target, level, version: 5 };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify_damage");
        let original = match source {
            OWN => build::object_of(&folder.join("verify_damage.cpp"), variant),
            PRELOADED => build::assembled(include_str!("preloaded.s"), variant),
            SCHEDULED => build::assembled(include_str!("scheduled.s"), variant),
            _ => build::object(source, variant),
        };
        let original = original.unwrap_or_else(|error| panic!("{source}: {error}"));
        let name = format!("{source} {} wave{} {level} {counters:?}", target.name(), target.wave_size());
        let kernels = if matches!(source, OWN | PRELOADED | SCHEDULED | DROPPED) {
            Vec::new()
        } else {
            KERNELS.iter().map(|name| (*name).to_owned()).collect()
        };
        let drops = source == DROPPED;
        let options = Options {
            probes: vec![if drops { probe::BOUNDS_DROP } else { probe::BRANCHES }],
            counters,
            // Placed counters hardly ever save SCC, and every damage needs code that it can damage.
            placement: match counters {
                Counters::Lds => CounterPlacement::All,
                _ => CounterPlacement::Minimal,
            },
            selection: Selection { kernels, ..Selection::default() },
            ..Options::default()
        };
        let rewritten = rewrite(&original, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let refused: Vec<_> = rewritten
            .maps
            .iter()
            .flat_map(|map| &map.refused)
            .map(|refused| (&refused.name, &refused.reason))
            .collect();
        assert!(!matches!(source, PRELOADED | SCHEDULED) || refused.is_empty(), "{name}: {refused:?}");
        let bytes = rewritten.bytes;
        let object = CodeObject::parse(&bytes).expect("an object");
        let section = object
            .elf()
            .section(MAP_SECTION)
            .unwrap_or_else(|| panic!("{name}: nothing was instrumented: {:?}", rewritten.maps));
        let map = ObjectMap::unpack(object.elf().contents(section).expect("bytes")).expect("a site table");
        let end = CodeObject::parse(&original).expect("an object").image_end();
        let code = map.kernels.iter().map(|entry| Code::of(&object, &map, &entry.name, end)).collect();
        drop(object);
        Subject { name, target, original, rewritten: bytes, map, drops, code }
    }

    pub fn object(&self) -> CodeObject<'_> {
        CodeObject::parse(&self.rewritten).expect("an object")
    }

    /// The rewritten file with other bytes at an address.
    pub fn patched(&self, patches: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let object = self.object();
        let mut bytes = self.rewritten.clone();
        for (address, new) in patches {
            let at = object.file_offset(*address, new.len() as u64).expect("in the file") as usize;
            bytes[at..at + new.len()].copy_from_slice(new);
        }
        bytes
    }

    /// A harm for the first lines for which `patch` has new bytes, of different kernels first.
    pub fn each(&self, patch: impl Fn(&Code, usize) -> Patch) -> Vec<Harm> {
        let most = if full() { 3 } else { 1 };
        let of_kernel = |code: &Code| -> Vec<Harm> {
            let patches = (0..code.lines.len()).filter_map(|index| patch(code, index));
            let harm = |patches: Vec<_>| Harm { bytes: self.patched(&patches), kernel: Some(code.kernel.clone()) };
            patches.map(harm).filter(|harm| harm.bytes != self.rewritten).take(most).collect()
        };
        let mut found: Vec<_> = self.code.iter().map(of_kernel).map(Vec::into_iter).collect();
        let mut harms = Vec::new();
        while harms.len() < most {
            let before = harms.len();
            harms.extend(found.iter_mut().filter_map(Iterator::next).take(most - before));
            if harms.len() == before {
                break;
            }
        }
        harms
    }
}

impl Code {
    fn of(object: &CodeObject<'_>, map: &ObjectMap, kernel: &str, end: u64) -> Code {
        let entry = map.kernels.iter().find(|entry| entry.name == kernel).expect("in the table");
        let kernel = object.kernel(kernel).expect("a kernel");
        let target = kernel.descriptor.machine(object.target().expect("known"));
        let image = Image::of(object).expect("an image");
        let program = Program::build(target, &image, [(kernel.name.clone(), BodyKind::Kernel, kernel.entry)]);
        let originals: BTreeMap<u64, u64> =
            entry.addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect();
        let mut lines = BTreeMap::new();
        for body in program.bodies().iter().filter(|body| body.entry_address() >= end) {
            for id in body.ids() {
                let address = body.address(id);
                let (inst, original) = (body.inst(id).clone(), originals.get(&address).copied());
                let in_function = body.kind() == BodyKind::Function;
                lines.insert(address, Line { address, inst, original, body: body.entry_address(), in_function });
            }
        }
        Code { kernel: kernel.name.clone(), target, lines: lines.into_values().collect() }
    }

    pub fn line(&self, index: usize) -> Option<&Line> {
        self.lines.get(index)
    }

    /// The line at an address.
    pub fn at(&self, address: u64) -> Option<usize> {
        self.lines.binary_search_by_key(&address, |line| line.address).ok()
    }

    /// Instructions in place of one: `s_nop` fills up to its size. None if they do not fit.
    pub fn instead(&self, index: usize, mnemonic: &str, values: &[Value]) -> Patch {
        self.replaced(index, &[isa::build(self.target, mnemonic, values).ok()?])
    }

    /// Instructions in place of inserted ones that neither branch nor wait, from `index` on.
    pub fn sequence(&self, index: usize, insts: &[(&str, &[Value])]) -> Patch {
        let insts: Vec<Inst> =
            insts.iter().map(|(name, values)| isa::build(self.target, name, values).ok()).collect::<Option<_>>()?;
        self.replaced_inserted(index, &insts)
    }

    /// [`Code::sequence`] of instructions as they are.
    pub fn replaced_inserted(&self, index: usize, insts: &[Inst]) -> Patch {
        let bytes = self.bytes(insts)?;
        let (start, mut last) = (self.line(index)?.address, index);
        while self.plain(last) && self.lines[last].end() < start + bytes.len() as u64 {
            if self.line(last + 1)?.address != self.lines[last].end() {
                return None;
            }
            last += 1;
        }
        if !self.plain(last) {
            return None;
        }
        filled(start, bytes, self.lines[last].end())
    }

    /// Instructions in place of the one at `index`, whatever it is.
    pub fn replaced(&self, index: usize, insts: &[Inst]) -> Patch {
        filled(self.lines[index].address, self.bytes(insts)?, self.lines[index].end())
    }

    fn bytes(&self, insts: &[Inst]) -> Option<Vec<u8>> {
        let encoded: Option<Vec<Vec<u8>>> = insts.iter().map(|inst| isa::encode(self.target, inst).ok()).collect();
        Some(encoded?.concat())
    }

    /// Nothing in an instruction's place.
    pub fn nothing(&self, index: usize) -> Patch {
        filled(self.lines[index].address, Vec::new(), self.lines[index].end())
    }

    pub fn is_inserted(&self, index: usize) -> bool {
        self.lines[index].is_inserted()
    }

    /// An inserted instruction that does not branch or wait.
    pub fn plain(&self, index: usize) -> bool {
        self.line(index).is_some_and(|line| {
            line.is_inserted()
                && line.inst.variant.branch == Branch::None
                && !line.inst.variant.flags.contains(Flags::WAIT)
        })
    }

    /// The original instruction that follows an inserted one, through inserted ones that do not branch and do not touch
    /// `register`.
    pub fn next_original(&self, index: usize, register: Option<Reg>) -> Option<usize> {
        for next in index + 1..self.lines.len() {
            if self.lines[next - 1].end() != self.lines[next].address {
                return None;
            }
            if !self.is_inserted(next) {
                return Some(next);
            }
            let inst = &self.lines[next].inst;
            if inst.variant.branch != Branch::None || register.is_some_and(|reg| writes(inst, reg)) {
                return None;
            }
        }
        None
    }

    /// Where a branch or call with a displacement leads.
    pub fn leads_to(&self, index: usize) -> Option<u64> {
        let line = &self.lines[index];
        Some(line.end().wrapping_add_signed(line.inst.branch_displacement()? * 4))
    }

    /// A branch or call that leads elsewhere.
    pub fn led_to(&self, index: usize, address: u64) -> Patch {
        let mut inst = self.lines[index].inst.clone();
        let displacement = address.wrapping_sub(self.lines[index].end()) as i64 / 4;
        inst.operands.iter_mut().find(|operand| operand.role == isa::Role::SimmTarget)?.value =
            Value::Imm(displacement);
        self.replaced(index, &[inst]).filter(|_| self.leads_to(index) != Some(address))
    }
}

/// Bytes from `start` on with `s_nop` after them up to `end`.
fn filled(start: u64, mut bytes: Vec<u8>, end: u64) -> Patch {
    while start + (bytes.len() as u64) < end {
        bytes.extend(S_NOP.to_le_bytes());
    }
    (start + bytes.len() as u64 == end).then(|| vec![(start, bytes)])
}

/// Whether an instruction reads (any part of) a register.
pub fn reads(inst: &Inst, reg: Reg) -> bool {
    inst.reads().any(|read| read.overlaps(reg))
}

pub fn writes(inst: &Inst, reg: Reg) -> bool {
    inst.writes().any(|written| written.overlaps(reg))
}

/// The first register of a file below `end` that an instruction names as a source.
pub fn source(inst: &Inst, file: RegFile, end: u16) -> Option<Reg> {
    let sources =
        inst.operands.iter().filter(|operand| operand.access == isa::Access::Read).filter_map(|operand| operand.reg());
    sources.filter(|reg| reg.file == file && reg.first < end).map(|reg| Reg { dwords: 1, ..reg }).next()
}

/// Scalar registers as an operand.
pub fn s(first: u16) -> Value {
    Value::Reg(Reg::scalar(first, 1))
}

pub fn s2(first: u16) -> Value {
    Value::Reg(Reg::scalar(first, 2))
}

/// A mask of lanes in scalar registers.
pub fn mask(target: Target, first: u16) -> Value {
    Value::Reg(Reg::scalar(first, (target.wave_size() / 32) as u8))
}

/// A vector register as an operand.
pub fn v(first: u16) -> Value {
    Value::Reg(Reg::vector(first, 1))
}
