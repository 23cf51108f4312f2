//! The wait counters, and what instructions wait for.
//!
//! Which counters there are and where an instruction names them is data (`isa-tables/waits.yaml`). Waits for results
//! inside the wave's own pipelines (`s_waitcnt_depctr`, `s_wait_alu`) have counters of another kind: [`AluWait`].

use super::inst::{Inst, Value, scalar};
use super::opcode::{Opcode, OpcodeFlags};
use super::target::Target;
use super::vocabulary::{Counter, Counters, Encoding, Flags, Memory, Role};

impl Counter {
    /// Its bit in a set of counters.
    #[must_use]
    pub fn flag(self) -> Counters {
        Counters::from_bits_retain(1 << self as u16)
    }
}

/// How many operations may still be outstanding, per counter; `None`: any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WaitCount([Option<u8>; Counter::ALL.len()]);

impl WaitCount {
    /// How many operations of this counter may be outstanding.
    #[must_use]
    pub fn get(&self, counter: Counter) -> Option<u8> {
        self.0[counter as usize]
    }

    /// The same with at most `count` operations outstanding in `counter`.
    #[must_use]
    pub fn with(mut self, counter: Counter, count: u8) -> Self {
        self.0[counter as usize] = Some(count);
        self
    }

    /// Whether it waits for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The counters that are waited for, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u8)> + '_ {
        Counter::ALL.into_iter().filter_map(|counter| Some((counter, self.get(counter)?)))
    }
}

include!(concat!(env!("OUT_DIR"), "/waits.rs"));

impl Target {
    /// How its instructions wait.
    fn wait_format(self) -> &'static WaitFormat {
        &WAIT_FORMATS[usize::from(WAIT_FORMAT_OF[self.index()])]
    }

    /// Whether FLAT operations keep their place among the others of both counters they count in. Where they do not, a
    /// pending one makes every wait but one for 0 say nothing about single operations.
    #[must_use]
    pub fn flat_in_order(self) -> bool {
        self.wait_format().flat_in_order
    }

    /// Whether a load or a store of up to 16 bits accesses one half of a register and waits for nothing on account of
    /// the other half.
    #[must_use]
    pub fn halves_apart(self) -> bool {
        self.wait_format().halves_apart
    }

    /// The largest count that an instruction can name for a wait counter, which waits for nothing; none if the target
    /// lacks the counter.
    #[must_use]
    pub fn largest_wait(self, counter: Counter) -> Option<u8> {
        self.wait_format().largest(counter)
    }

    /// Whether operations count in a wait counter. gfx12 has kept the instruction that waits for `vmcnt` and `lgkmcnt`,
    /// but these have been split, and nothing counts in them any more.
    #[must_use]
    pub fn counts_in(self, counter: Counter) -> bool {
        let split = self.largest_wait(Counter::Load).is_some();
        self.largest_wait(counter).is_some() && !(split && matches!(counter, Counter::Vm | Counter::Lgkm))
    }
}

/// How the instructions of a generation wait (from `isa-tables/waits.yaml`).
#[derive(Debug)]
struct WaitFormat {
    flat_in_order: bool,
    halves_apart: bool,
    /// By mnemonic, preferred ones first.
    instructions: &'static [(Opcode, &'static [WaitField])],
}

/// The field of one counter in an immediate.
#[derive(Debug)]
struct WaitField {
    counter: Counter,
    /// Lowest bit, width, and the bit of the value at which it starts.
    runs: &'static [(u8, u8, u8)],
}

impl WaitField {
    fn largest(&self) -> u8 {
        self.runs.iter().fold(0, |largest, (_, width, shift)| largest | ((1 << width) - 1) << shift)
    }

    fn read(&self, bits: u16) -> Option<u8> {
        let count = self
            .runs
            .iter()
            .fold(0, |count, (low, width, shift)| count | ((bits >> low) as u8 & ((1 << width) - 1)) << shift);
        (count < self.largest()).then_some(count)
    }

    fn write(&self, count: Option<u8>) -> u16 {
        let count = count.map_or(self.largest(), |count| count.min(self.largest()));
        self.runs
            .iter()
            .fold(0, |bits, (low, width, shift)| bits | u16::from(count >> shift & ((1 << width) - 1)) << low)
    }
}

impl WaitFormat {
    fn fields(&self, opcode: Opcode) -> Option<&'static [WaitField]> {
        self.instructions.iter().find(|(known, _)| *known == opcode).map(|(_, fields)| *fields)
    }

    fn largest(&self, counter: Counter) -> Option<u8> {
        let fields = self.instructions.iter().flat_map(|(_, fields)| *fields);
        fields.filter(|field| field.counter == counter).map(WaitField::largest).max()
    }

    /// What the immediate of the instruction waits for.
    fn read(&self, opcode: Opcode, bits: u16) -> Option<WaitCount> {
        let fields = self.fields(opcode)?;
        if fields.is_empty() {
            // It waits for everything (`s_wait_idle`).
            let counters = Counter::ALL.into_iter().filter(|counter| self.largest(*counter).is_some());
            return Some(counters.fold(WaitCount::default(), |counts, counter| counts.with(counter, 0)));
        }
        let mut counts = WaitCount::default();
        for field in fields {
            counts.0[field.counter as usize] = field.read(bits);
        }
        Some(counts)
    }

    fn write(&self, opcode: Opcode, counts: WaitCount) -> Option<u16> {
        let fields = self.fields(opcode)?;
        let named = |counter| fields.iter().any(|field| field.counter == counter);
        let all_named = counts.iter().all(|(counter, _)| named(counter));
        (all_named && !fields.is_empty())
            .then(|| fields.iter().fold(0, |bits, field| bits | field.write(counts.get(field.counter))))
    }

    fn instructions_for(&self, mut counts: WaitCount) -> Option<Vec<(&'static str, u16)>> {
        let mut all = Vec::new();
        for (opcode, fields) in self.instructions {
            let mut part = WaitCount::default();
            for field in *fields {
                part.0[field.counter as usize] = counts.0[field.counter as usize].take();
            }
            if !part.is_empty() {
                all.push((opcode.name(), self.write(*opcode, part)?));
            }
        }
        counts.is_empty().then_some(all)
    }
}

/// `wait_exp` of an interpolation that waits for nothing.
const VINTERP_NO_WAIT: u8 = 7;

/// What an instruction waits for; `None` if it is none that waits for counters.
///
/// Where a register adds to the count (`s_waitcnt_vscnt s5, 3` of gfx10), nothing is known of the count, and the answer
/// says that nothing is waited for.
#[must_use]
pub fn wait_count(target: Target, inst: &Inst) -> Option<WaitCount> {
    if inst.variant.encoding == Encoding::Vinterp {
        let count = inst.modifiers.wait_exp;
        return Some(if count < VINTERP_NO_WAIT {
            WaitCount::default().with(Counter::Exp, count)
        } else {
            WaitCount::default()
        });
    }
    if !matches!(inst.variant.encoding, Encoding::Sopp | Encoding::Sopk) || !inst.variant.flags.contains(Flags::WAIT) {
        return None;
    }
    let bits = match inst.operand(Role::WaitCount).or_else(|| inst.operand(Role::Simm16)).map(|operand| operand.value) {
        Some(Value::Imm(bits)) => bits as u16,
        _ => 0,
    };
    let counts = target.wait_format().read(inst.opcode(), bits)?;
    let register = inst.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg.first != scalar::NULL);
    Some(if register { WaitCount::default() } else { counts })
}

/// The counters that an instruction increments. Where a field of it decides, the row of the tables has all of them.
#[must_use]
pub fn issued(inst: &Inst) -> Counters {
    /// `th` of an atomic that returns (gfx12).
    const TH_RETURNS: u8 = 1;
    let all = inst.variant.counters;
    let image_atomic = inst.variant.memory == Memory::Image && inst.variant.flags.contains(Flags::ATOMIC);
    let mut counters = if !image_atomic {
        all
    } else if inst.modifiers.glc || inst.modifiers.th & TH_RETURNS != 0 {
        all.difference(Counters::VS | Counters::STORE)
    } else if all.intersects(Counters::VS | Counters::STORE) {
        all.difference(Counters::VM | Counters::LOAD)
    } else {
        all
    };
    if inst.modifiers.gds {
        counters |= Counters::EXP;
    }
    counters
}

/// The immediate with which the instruction waits for `counts`; a count beyond a field is its largest, which waits for
/// nothing. None if the target has no such instruction or it does not name one of the counters.
///
/// ```
/// use wavetap_amdgpu::{Counter, Opcode, Target, WaitCount, wait_immediate};
/// let target = Target::by_name("gfx90a").unwrap();
/// assert_eq!(wait_immediate(target, Opcode::S_WAITCNT, WaitCount::default().with(Counter::Vm, 0)), Some(0x0f70));
/// assert_eq!(wait_immediate(target, Opcode::S_WAITCNT, WaitCount::default().with(Counter::Lgkm, 0)), Some(0xc07f));
/// assert_eq!(wait_immediate(target, Opcode::S_WAIT_LOADCNT, WaitCount::default()), None);
/// ```
#[must_use]
pub fn wait_immediate(target: Target, opcode: Opcode, counts: WaitCount) -> Option<u16> {
    target.wait_format().write(opcode, counts)
}

/// The instructions, mnemonic and immediate, that together wait for `counts`; none if the target lacks one of the
/// counters.
#[must_use]
pub fn waits_for(target: Target, counts: WaitCount) -> Option<Vec<(&'static str, u16)>> {
    target.wait_format().instructions_for(counts)
}

/// What `s_waitcnt_depctr` (gfx10, gfx11) and `s_wait_alu` (gfx12) wait for: results and sources inside the wave's own
/// pipelines, no memory. Each is the most that may be outstanding; `None` where the field has all ones, which waits for
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AluWait {
    /// Writes of vector registers by vector instructions (4 bits).
    pub va_vdst: Option<u8>,
    /// Writes of scalar registers by vector instructions (3 bits).
    pub va_sdst: Option<u8>,
    /// Reads of scalar registers by vector instructions (1 bit).
    pub va_ssrc: Option<u8>,
    /// Holding of the wave's counters (1 bit).
    pub hold_cnt: Option<u8>,
    /// Reads of vector registers by memory instructions (3 bits).
    pub vm_vsrc: Option<u8>,
    /// Writes of VCC by vector instructions (1 bit).
    pub va_vcc: Option<u8>,
    /// Writes of scalar registers by scalar instructions (1 bit).
    pub sa_sdst: Option<u8>,
}

/// Lowest bit and width of the fields, in the order of [`AluWait`] (LLVM, AMDGPUBaseInfo: the same on every target that
/// has it).
const ALU_FIELDS: [(u32, u32); 7] = [(12, 4), (9, 3), (8, 1), (7, 1), (2, 3), (1, 1), (0, 1)];

impl AluWait {
    /// Everything complete.
    const IDLE: AluWait = AluWait {
        va_vdst: Some(0),
        va_sdst: Some(0),
        va_ssrc: Some(0),
        hold_cnt: Some(0),
        vm_vsrc: Some(0),
        va_vcc: Some(0),
        sa_sdst: Some(0),
    };

    /// Reads an immediate.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        let [va_vdst, va_sdst, va_ssrc, hold_cnt, vm_vsrc, va_vcc, sa_sdst] = ALU_FIELDS.map(|(low, width)| {
            let count = u32::from(bits) >> low & ((1 << width) - 1);
            (count + 1 < 1 << width).then_some(count as u8)
        });
        AluWait { va_vdst, va_sdst, va_ssrc, hold_cnt, vm_vsrc, va_vcc, sa_sdst }
    }

    /// The immediate; bits of no field are 0.
    ///
    /// ```
    /// use wavetap_amdgpu::AluWait;
    /// assert_eq!(AluWait { va_vdst: Some(0), sa_sdst: Some(0), ..AluWait::default() }.bits(), 0x0f9e);
    /// ```
    #[must_use]
    pub fn bits(self) -> u16 {
        let counts = [self.va_vdst, self.va_sdst, self.va_ssrc, self.hold_cnt, self.vm_vsrc, self.va_vcc, self.sa_sdst];
        ALU_FIELDS.iter().zip(counts).fold(0, |bits, (&(low, width), count)| {
            let largest = (1u16 << width) - 1;
            bits | count.map_or(largest, |count| u16::from(count).min(largest)) << low
        })
    }
}

/// What an instruction waits for inside the wave's own pipelines; `None` if it is none that does.
#[must_use]
pub fn alu_wait(inst: &Inst) -> Option<AluWait> {
    if !inst.variant.opcode_flags.contains(OpcodeFlags::ALU_WAIT) && inst.variant.encoding != Encoding::Ldsdir {
        return None;
    }
    match (inst.opcode(), inst.operand(Role::DepCtr).map(|operand| operand.value)) {
        (Opcode::S_WAITCNT_DEPCTR | Opcode::S_WAIT_ALU, Some(Value::Imm(bits))) => {
            Some(AluWait::from_bits(bits as u16))
        }
        (Opcode::S_WAIT_IDLE, _) => Some(AluWait::IDLE),
        // The instruction itself waits: for vector instructions that use its destination, and for reads of it.
        _ if inst.variant.encoding == Encoding::Ldsdir => {
            let below = |count: u8, largest: u8| (count < largest).then_some(count);
            let (va_vdst, vm_vsrc) = (below(inst.modifiers.wait_vdst, 15), below(inst.modifiers.wait_vsrc, 1));
            Some(AluWait { va_vdst, vm_vsrc, ..AluWait::default() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the order of `waits.yaml`.
    const GENERATIONS: [&str; 6] = ["gfx8", "gfx9", "gfx10", "gfx11", "gfx12", "gfx12.5"];

    fn format(generation: &str) -> &'static WaitFormat {
        &WAIT_FORMATS[GENERATIONS.iter().position(|name| *name == generation).expect("a generation")]
    }

    fn of(counts: &[(Counter, u8)]) -> WaitCount {
        counts.iter().fold(WaitCount::default(), |all, (counter, count)| all.with(*counter, *count))
    }

    #[test]
    fn immediates_are_those_of_llvms_assembler() {
        use Counter::*;
        type Case = (&'static str, Opcode, &'static [(Counter, u8)], u16);
        let cases: [Case; 27] = [
            ("gfx8", Opcode::S_WAITCNT, &[(Vm, 0)], 0x0f70),
            ("gfx8", Opcode::S_WAITCNT, &[(Lgkm, 0)], 0x007f),
            ("gfx8", Opcode::S_WAITCNT, &[(Exp, 0)], 0x0f0f),
            ("gfx8", Opcode::S_WAITCNT, &[(Vm, 1), (Exp, 2), (Lgkm, 3)], 0x0321),
            ("gfx9", Opcode::S_WAITCNT, &[(Vm, 0)], 0x0f70),
            ("gfx9", Opcode::S_WAITCNT, &[(Lgkm, 0)], 0xc07f),
            ("gfx9", Opcode::S_WAITCNT, &[(Exp, 0)], 0xcf0f),
            ("gfx10", Opcode::S_WAITCNT, &[(Vm, 33)], 0xbf71),
            ("gfx10", Opcode::S_WAITCNT, &[(Lgkm, 33)], 0xe17f),
            ("gfx10", Opcode::S_WAITCNT, &[(Exp, 5)], 0xff5f),
            ("gfx10", Opcode::S_WAITCNT_VSCNT, &[(Vs, 3)], 3),
            ("gfx10", Opcode::S_WAITCNT_VMCNT, &[], 0x3f),
            ("gfx10", Opcode::S_WAITCNT_EXPCNT, &[], 7),
            ("gfx11", Opcode::S_WAITCNT, &[(Vm, 33)], 0x87f7),
            ("gfx11", Opcode::S_WAITCNT, &[(Lgkm, 33)], 0xfe17),
            ("gfx11", Opcode::S_WAITCNT, &[(Exp, 5)], 0xfff5),
            ("gfx11", Opcode::S_WAITCNT_LGKMCNT, &[(Lgkm, 1)], 1),
            ("gfx12", Opcode::S_WAIT_LOADCNT, &[(Load, 5)], 5),
            ("gfx12", Opcode::S_WAIT_BVHCNT, &[(Bvh, 5)], 5),
            ("gfx12", Opcode::S_WAIT_KMCNT, &[], 0x1f),
            ("gfx12", Opcode::S_WAIT_LOADCNT_DSCNT, &[(Load, 0), (Ds, 5)], 5),
            ("gfx12", Opcode::S_WAIT_LOADCNT_DSCNT, &[(Load, 2), (Ds, 5)], 0x205),
            ("gfx12", Opcode::S_WAIT_STORECNT_DSCNT, &[(Store, 1), (Ds, 0)], 0x100),
            ("gfx12.5", Opcode::S_WAIT_XCNT, &[(X, 5)], 5),
            ("gfx12.5", Opcode::S_WAIT_ASYNCCNT, &[(Async, 0)], 0),
            ("gfx12.5", Opcode::S_WAIT_TENSORCNT, &[(Tensor, 1)], 1),
            ("gfx12.5", Opcode::S_WAIT_STORECNT_DSCNT, &[(Ds, 1)], 0x3f01),
        ];
        for (generation, opcode, counts, bits) in cases {
            assert_eq!(format(generation).write(opcode, of(counts)), Some(bits), "{generation} {opcode} {counts:?}");
            assert_eq!(format(generation).read(opcode, bits), Some(of(counts)), "{generation} {opcode} {bits:#x}");
        }
    }

    #[test]
    fn counters_are_those_that_instructions_count_in() {
        for target in Target::all() {
            let all = crate::variants(target).fold(Counters::empty(), |all, variant| all | variant.counters);
            for counter in Counter::ALL {
                let (counted, counts) = (all.contains(counter.flag()), target.counts_in(counter));
                // Some have a counter of exports and none of these.
                assert!(
                    counted == counts || (counts && counter == Counter::Exp),
                    "{} {}",
                    target.name(),
                    counter.name()
                );
            }
        }
    }

    #[test]
    fn every_immediate_reads_and_writes_the_same() {
        for format in &WAIT_FORMATS {
            for (opcode, fields) in format.instructions.iter().filter(|(_, fields)| !fields.is_empty()) {
                let mut seen = std::collections::HashSet::new();
                for bits in 0..=u16::MAX {
                    let counts = format.read(*opcode, bits).expect("known");
                    let again = format.write(*opcode, counts).expect("writable");
                    assert_eq!(format.read(*opcode, again), Some(counts), "{opcode} {bits:#x}");
                    seen.insert(again);
                }
                let expected: usize = fields.iter().map(|field| usize::from(field.largest()) + 1).product();
                assert_eq!(seen.len(), expected, "{opcode}: the fields are apart");
            }
        }
    }

    #[test]
    fn idle_is_every_counter_and_other_counters_cannot_be_named() {
        let idle = format("gfx12").read(Opcode::S_WAIT_IDLE, 0).expect("known");
        assert!(
            [Counter::Load, Counter::Sample, Counter::Bvh, Counter::Store, Counter::Ds, Counter::Km, Counter::Exp]
                .iter()
                .all(|counter| idle.get(*counter) == Some(0))
        );
        assert_eq!(idle.get(Counter::X), None);
        assert_eq!(format("gfx9").write(Opcode::S_WAITCNT, of(&[(Counter::Vs, 0)])), None);
        assert_eq!(format("gfx9").read(Opcode::S_WAIT_IDLE, 0), None);
    }

    #[test]
    fn a_wait_for_several_counters_takes_as_few_instructions_as_the_counters_share() {
        let (vm, vs) = ((Counter::Vm, 0), (Counter::Vs, 1));
        assert_eq!(
            format("gfx10").instructions_for(of(&[vm, vs])),
            Some(vec![("s_waitcnt", 0x3f70), ("s_waitcnt_vscnt", 1)])
        );
        assert_eq!(format("gfx9").instructions_for(of(&[vm, (Counter::Lgkm, 2)])), Some(vec![("s_waitcnt", 0x0270)]));
        assert_eq!(format("gfx9").instructions_for(of(&[vs])), None);
        let gfx12 = of(&[(Counter::Load, 3), (Counter::Km, 0)]);
        assert_eq!(format("gfx12").instructions_for(gfx12), Some(vec![("s_wait_loadcnt", 3), ("s_wait_kmcnt", 0)]));
    }

    #[test]
    fn pipeline_waits_read_and_write_the_same() {
        assert_eq!(AluWait::from_bits(0xffe3), AluWait { vm_vsrc: Some(0), ..AluWait::default() });
        assert_eq!(AluWait::from_bits(0x3f1f), AluWait { va_vdst: Some(3), hold_cnt: Some(0), ..AluWait::default() });
        for bits in 0..=u16::MAX {
            assert_eq!(AluWait::from_bits(bits).bits(), bits & !0x60);
        }
    }
}
