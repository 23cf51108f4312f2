//! Finds where the values of registers came from, and what waits waited for.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use wavetap_amdgpu::{
    Branch, Counter, Encoding, Flags, Half, Inst, Memory, Opcode, OpcodeFlags, Reg, RegFile, Role, Value, scalar,
};

use super::code::Code;
use crate::address::CodeAddress;
use crate::lanes::active;
use crate::op::Class;
use crate::state::op::Op;
use crate::state::wave::Wave;
use crate::trace::origins::{
    ACCUM, COUNTERS, Event, Frame, INITIAL, InFlight, MOST_WRITERS, NOBODY, Order, Origin, Origins, RegisterRun,
    SCALAR, SCC, Seen, VECTOR, WaitOrigins, WaveOrigins,
};

/// What is known of an instruction.
pub(crate) struct OriginFacts {
    reads: SmallVec<[RegisterRun; 6]>,
    writes: SmallVec<[RegisterRun; 4]>,
    across: bool,
    all_lanes: bool,
    partial: bool,
    orders: [Option<Order>; COUNTERS],
}

/// What all waves together have done.
#[derive(Default)]
pub(crate) struct OriginBook {
    sets: Vec<SmallVec<[Event; 2]>>,
    numbers: FxHashMap<SmallVec<[Event; 2]>, u32>,
    facts: FxHashMap<u32, OriginFacts>,
    values: FxHashMap<(u32, u16, Seen), u64>,
    waits: FxHashMap<(u32, u8), Waited>,
    outstanding: FxHashSet<(u32, u8, Seen)>,
    /// Instruction and device address.
    jumps: FxHashSet<(u32, u64)>,
}

#[derive(Default)]
pub(crate) struct Waited {
    count: u8,
    executions: u64,
    forced: FxHashMap<Seen, u64>,
    possible: FxHashMap<Seen, u64>,
}

/// The dwords of a run of registers; what is no register of a wave has none.
pub(crate) fn places((file, first, count): RegisterRun) -> impl Iterator<Item = u16> {
    let (first, count) = match (file, first) {
        (RegFile::Vector, first) => (VECTOR + first, count),
        (RegFile::Accum, first) => (ACCUM + first, count),
        (RegFile::Scalar, scalar::SCC) => (SCC, 1),
        (RegFile::Scalar, scalar::VCCZ) => (SCALAR + scalar::VCC, 2),
        (RegFile::Scalar, scalar::EXECZ) => (SCALAR + scalar::EXEC, 2),
        (RegFile::Scalar, scalar::LDS_DIRECT) => (SCALAR + scalar::M0, 1),
        (RegFile::Scalar, scalar::NULL | 128..) => (0, 0),
        (RegFile::Scalar, first) => (SCALAR + first, count.min(128 - first)),
    };
    first..first + count
}

/// The register at a place.
pub(crate) fn register(place: u16) -> Reg {
    match place {
        SCC => Reg::SCC,
        SCALAR.. => Reg::scalar(place - SCALAR, 1),
        ACCUM.. => Reg::accum(place - ACCUM, 1),
        _ => Reg::vector(place, 1),
    }
}

pub(crate) fn span(reg: Reg) -> RegisterRun {
    (reg.file, reg.first, reg.dwords.into())
}

/// Whether lanes read what others have.
pub(crate) fn is_across(inst: &Inst) -> bool {
    inst.modifiers.dpp.is_some()
        || inst.modifiers.dpp8.is_some()
        || inst.is_any(OpcodeFlags::CROSSBAR | OpcodeFlags::PERMLANE | OpcodeFlags::MATRIX)
}

/// With which operations of a counter an operation completes in order: none where it may be done before older ones, or
/// after younger ones of any kind.
pub(crate) fn order(op: &Op, counter: Counter) -> Option<Order> {
    let inst = &op.inst;
    let memory = inst.variant.memory;
    let local = matches!(counter, Counter::Lgkm | Counter::Ds);
    match op.class {
        Class::Smem => None,
        // Up to gfx9 its result may be from LDS or from memory.
        Class::Vmem if memory == Memory::Flat && !op.flat_in_order => None,
        Class::Vmem if local => Some(Order::Lds),
        Class::Vmem => match counter {
            Counter::Vs | Counter::Store if !matches!(memory, Memory::Global | Memory::Image) => {
                Some(Order::OtherStores)
            }
            _ => Some(Order::Memory),
        },
        Class::Lds if inst.modifiers.gds => Some(Order::Gds),
        Class::Lds => Some(Order::Lds),
        _ if inst.variant.encoding == Encoding::Exp => Some(Order::Exports),
        _ if inst.is_any(OpcodeFlags::SENDMSG) => Some(Order::Messages),
        _ => None,
    }
}

/// The lane that `v_writelane_b32` writes and `v_readlane_b32` reads.
pub(crate) fn chosen_lane(op: &Op, scalars: &[u32; 128]) -> u32 {
    let lane = match op.inst.operand(Role::Src1).map(|operand| operand.value) {
        Some(Value::Reg(reg)) => scalars.get(usize::from(reg.first)).copied().unwrap_or(0),
        Some(Value::InlineInt(lane)) => lane as u32,
        Some(Value::Literal(lane)) => lane,
        _ => 0,
    };
    lane & (u32::from(op.inst.wave_size) - 1)
}

impl OriginFacts {
    fn of(op: &Op) -> OriginFacts {
        let inst = &op.inst;
        let halves = inst
            .operands
            .iter()
            .any(|operand| operand.access != wavetap_amdgpu::Access::Read && operand.half != Half::Whole);
        let sdwa = inst.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != 6);
        let mut orders = [None; COUNTERS];
        for counter in Counter::ALL {
            orders[counter as usize] = order(op, counter);
        }
        OriginFacts {
            reads: inst.reads().map(span).collect(),
            writes: inst.writes().map(span).collect(),
            across: is_across(inst),
            all_lanes: inst.is_any(OpcodeFlags::MATRIX),
            partial: halves || sdwa || inst.variant.flags.contains(Flags::D16) || inst.modifiers.op_sel & 8 != 0,
            orders,
        }
    }
}

impl OriginBook {
    pub(crate) fn new() -> OriginBook {
        let mut book = OriginBook::default();
        book.set(smallvec![Event { op: INITIAL, frame: 0 }]);
        book
    }

    fn set(&mut self, events: SmallVec<[Event; 2]>) -> u32 {
        if let Some(&number) = self.numbers.get(&events) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(events.clone());
        self.numbers.insert(events, number);
        number
    }

    /// A set with one more writer.
    fn joined(&mut self, set: u32, event: Event) -> u32 {
        let mut events = self.sets[set as usize].clone();
        if !events.contains(&event) {
            if events.len() == MOST_WRITERS {
                events.remove(0);
            }
            events.push(event);
        }
        self.set(events)
    }

    /// An instruction is about to be executed.
    pub(crate) fn before(&mut self, wave: &mut Wave, op: &Op, index: usize) {
        let exec = wave.exec();
        let Some(origins) = wave.origins.as_deref_mut() else { return };
        origins.reads.clear();
        origins.writes.clear();
        origins.exec = exec;
        origins.before = wave.sgpr;
        if op.waits.iter().next().is_some() || op.inst.variant.branch != Branch::None {
            for (counter, queue) in origins.queues.iter().enumerate() {
                let outstanding = queue.iter().map(|operation| origins.seen(operation.event));
                self.outstanding.extend(outstanding.map(|seen| (index as u32, counter as u8, seen)));
            }
        }
        for (counter, count) in op.waits.iter() {
            self.wait(origins, index as u32, counter, count);
        }
    }

    fn wait(&mut self, origins: &mut WaveOrigins, op: u32, counter: Counter, count: u8) {
        let waited = self.waits.entry((op, counter as u8)).or_default();
        waited.count = count;
        waited.executions += 1;
        let queue = std::mem::take(&mut origins.queues[counter as usize]);
        let allowed = usize::from(count);
        // How many of its own order are younger.
        let younger = |at: usize| queue[at + 1..].iter().filter(|other| other.order == queue[at].order).count();
        let is_forced = |at: usize| allowed == 0 || (queue[at].order.is_some() && younger(at) >= allowed);
        let (mut forced, mut possible, mut rest) = (FxHashSet::default(), FxHashSet::default(), Vec::new());
        let ordered = queue.iter().all(|other| other.order.is_some() && other.order == queue[0].order);
        for (at, operation) in queue.iter().enumerate() {
            let seen = origins.seen(operation.event);
            if is_forced(at) {
                forced.insert(seen);
                continue;
            }
            if !ordered && queue.len() > allowed {
                possible.insert(seen);
            }
            rest.push(*operation);
        }
        forced.into_iter().for_each(|seen| *waited.forced.entry(seen).or_default() += 1);
        possible.into_iter().for_each(|seen| *waited.possible.entry(seen).or_default() += 1);
        origins.queues[counter as usize] = rest;
    }

    /// An instruction has been executed.
    pub(crate) fn after(&mut self, wave: &mut Wave, op: &Op, index: usize) {
        let Some(mut origins) = wave.origins.take() else { return };
        let index = index as u32;
        let facts = self.facts.remove(&index).unwrap_or_else(|| OriginFacts::of(op));
        self.read(&origins, &facts, op, index);
        self.write(&mut origins, &facts, wave, op, index);
        let event = Event { op: index, frame: origins.current };
        for counter in Counter::ALL.into_iter().filter(|counter| op.counters.contains(counter.flag())) {
            origins.queues[counter as usize].push(InFlight { event, order: facts.orders[counter as usize] });
        }
        if matches!(op.inst.variant.branch, Branch::Call | Branch::IndirectCall | Branch::IndirectJump) {
            self.jumps.insert((index, wave.pc));
        }
        match op.inst.variant.branch {
            Branch::Call | Branch::IndirectCall => {
                origins.frames.push(Frame { parent: origins.current, call: index, returns: op.next });
                origins.current = origins.frames.len() as u32 - 1;
            }
            Branch::IndirectJump => {
                let frame = origins.frames[origins.current as usize];
                if frame.parent != NOBODY && frame.returns == wave.pc {
                    origins.current = frame.parent;
                }
            }
            _ => {}
        }
        self.facts.insert(index, facts);
        wave.origins = Some(origins);
    }

    fn read(&mut self, origins: &WaveOrigins, facts: &OriginFacts, op: &Op, index: u32) {
        let read = if op.inst.opcode() == Opcode::V_READLANE_B32 {
            1 << chosen_lane(op, &origins.before)
        } else if op.inst.opcode() == Opcode::V_READFIRSTLANE_B32 {
            // Without an active lane, the first.
            1 << (origins.exec.trailing_zeros() & 63)
        } else if facts.across {
            u64::MAX
        } else {
            origins.exec
        };
        let mut done: SmallVec<[u16; 16]> = SmallVec::new();
        for place in facts.reads.iter().chain(&origins.reads).flat_map(|&span| places(span)) {
            if done.contains(&place) {
                continue;
            }
            done.push(place);
            let mut sets: SmallVec<[u32; 4]> = SmallVec::new();
            match place {
                SCALAR.. => sets.push(origins.scalars[usize::from(place - SCALAR)]),
                _ => {
                    let (file, at) =
                        if place >= ACCUM { (&origins.accums, place - ACCUM) } else { (&origins.vectors, place) };
                    let Some(lanes) = file.get(usize::from(at)) else { continue };
                    let mut last = None;
                    for lane in active(read) {
                        if last != Some(lanes[lane]) {
                            last = Some(lanes[lane]);
                            if !sets.contains(&lanes[lane]) {
                                sets.push(lanes[lane]);
                            }
                        }
                    }
                }
            }
            for set in sets {
                for event in &self.sets[set as usize] {
                    *self.values.entry((index, place, origins.seen(*event))).or_default() += 1;
                }
            }
        }
    }

    fn write(&mut self, origins: &mut WaveOrigins, facts: &OriginFacts, wave: &Wave, op: &Op, index: u32) {
        let event = Event { op: index, frame: origins.current };
        let whole = self.set(smallvec![event]);
        let mut lanes = if facts.all_lanes { u64::MAX } else { origins.exec };
        if op.inst.is_any(OpcodeFlags::WRITE_LANE) {
            lanes = 1 << chosen_lane(op, &origins.before);
        } else if let Some(dpp) = &op.inst.modifiers.dpp {
            // Rows have 16 lanes, banks 4 of them.
            lanes = active(lanes)
                .filter(|lane| dpp.row_mask >> (lane / 16) & 1 != 0 && dpp.bank_mask >> (lane / 4 % 4) & 1 != 0)
                .fold(0, |lanes, lane| lanes | 1 << lane);
        }
        let changed = (0..128_u16).filter(|code| wave.sgpr[usize::from(*code)] != origins.before[usize::from(*code)]);
        let changed: SmallVec<[u16; 4]> = changed.map(|code| SCALAR + code).collect();
        let seen = std::mem::take(&mut origins.writes);
        for place in facts.writes.iter().chain(&seen).flat_map(|&span| places(span)).chain(changed) {
            if place >= SCALAR {
                origins.scalars[usize::from(place - SCALAR)] = whole;
                continue;
            }
            let (file, at) =
                if place >= ACCUM { (&mut origins.accums, place - ACCUM) } else { (&mut origins.vectors, place) };
            let Some(cells) = file.get_mut(usize::from(at)) else { continue };
            for lane in active(lanes) {
                cells[lane] = if facts.partial { self.joined(cells[lane], event) } else { whole };
            }
        }
        origins.writes = seen;
    }

    /// By addresses.
    pub(crate) fn finish(self, code: &Code) -> Origins {
        let place = |op: u32| {
            let op = &code.ops[op as usize];
            CodeAddress { object: op.object, address: op.address }
        };
        let origin = |seen: &Seen| match *seen {
            Seen::Here(op) => Origin::Here(place(op)),
            Seen::Callee { call, by } => Origin::Callee { call: place(call), by: place(by) },
            Seen::Caller(INITIAL) => Origin::Caller(None),
            Seen::Caller(op) => Origin::Caller(Some(place(op))),
        };
        let mut origins = Origins::default();
        for ((op, at, seen), times) in &self.values {
            let registers = origins.values.entry(place(*op)).or_default();
            *registers.entry(register(*at)).or_default().entry(origin(seen)).or_default() += times;
        }
        for ((op, counter), waited) in &self.waits {
            let named = |all: &FxHashMap<Seen, u64>| all.iter().map(|(seen, times)| (origin(seen), *times)).collect();
            let wait = WaitOrigins {
                count: waited.count,
                executions: waited.executions,
                forced: named(&waited.forced),
                possible: named(&waited.possible),
            };
            origins.waits.insert((place(*op), Counter::ALL[usize::from(*counter)]), wait);
        }
        for (op, counter, seen) in &self.outstanding {
            let counter = Counter::ALL[usize::from(*counter)];
            origins.outstanding.entry((place(*op), counter)).or_default().insert(origin(seen));
        }
        for (op, pc) in &self.jumps {
            let to = code.place(*pc).map(|(object, address)| CodeAddress { object, address });
            origins.jumps.entry(place(*op)).or_default().extend(to);
        }
        origins
    }
}
