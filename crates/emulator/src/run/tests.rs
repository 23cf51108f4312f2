//! Fast paths against the slow ones they replace: instructions made of random words, each run on two equal waves, once
//! with the handler that was chosen for it and once with the one of its meaning. Registers have special values among
//! random ones, MODE and EXEC vary, and addresses have the forms that fast paths tell apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use wavetap_amdgpu::{
    Encoding, EventHazards, Inst, OpcodeFlags, Operand, RegFile, Role, Target, Value, decode, print, scalar,
};

use super::plan::Plan;
use crate::address::ObjectId;
use crate::address::allocation::AllocationKind;
use crate::exec;
use crate::exec::prepare;
use crate::fault::MemoryAccess;
use crate::fault::findings::Passes;
use crate::lanes::{LANES, Register, Registers};
use crate::launch::Launch;
use crate::memory::Memory;
use crate::op::InstLocation;
use crate::op::opcode_info::OpcodeInfo;
use crate::op::semantics::Semantics;
use crate::state::barrier::Barrier;
use crate::state::core::Core;
use crate::state::fp_mode::FpMode;
use crate::state::op::Op;
use crate::state::random::Random;
use crate::state::wave::Wave;
use crate::state::work::WorkRows;
use crate::trace::DispatchStats;

/// Bytes of the buffer that loads and stores go to, and of LDS.
const BUFFER: usize = 1 << 16;
const LDS: usize = 1 << 14;
const VGPRS: usize = 256;

fn launch(target: Target) -> Launch {
    Launch {
        strict: false,
        passes: Arc::new(Passes::default()),
        waits: false,
        yields: false,
        barriers: false,
        target,
        lanes: target.wave_size() as usize,
        clock_mhz: 2000,
        wait_states: target.wait_states(),
        event_hazards: EventHazards::empty(),
        apart: false,
        architected_scratch: target.architected_flat_scratch(),
        flat_scratch_hidden: target.generation() >= 10,
        offset_scratch: target.offset_flat_scratch(),
        private_size: 0,
        lds_size: LDS as u32,
        scratch_arena: (0, 0),
        wave_scratch_size: 0,
    }
}

/// Bits of a register: often those of numbers that are special in single or double precision, or near such.
fn bits(random: &mut Random) -> u32 {
    const SPECIAL: [u32; 24] = [
        0,
        0x8000_0000,
        1,
        0x807f_ffff,
        0x0080_0000,
        0x0c00_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x3f00_0000,
        0x4000_0000,
        0x7e80_0000,
        0x7f00_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f80_0001,
        0xffc1_2345,
        0x3ff0_0000,
        0x7ff0_0000,
        0x7fe0_0000,
        0x0010_0000,
        0x000f_ffff,
        0xfff8_0000,
    ];
    let word = random.next() as u32;
    match random.below(8) {
        0 => SPECIAL[random.below(SPECIAL.len())],
        1 => SPECIAL[random.below(SPECIAL.len())].wrapping_add(word % 5).wrapping_sub(2),
        2 => word % 100,
        // Numbers of usual sizes.
        3..6 => word & 0x807f_ffff | (100 + word % 56) << 23,
        _ => word,
    }
}

/// Registers of a kind: in every fourth, all lanes have numbers of usual sizes. In others nearly every row has special
/// ones.
fn registers(random: &mut Random, usual: usize) -> Registers {
    let word = |random: &mut Random, is_usual: bool| match is_usual {
        true => random.next() as u32 & 0x807f_ffff | (100 + random.below(56) as u32) << 23,
        false => bits(random),
    };
    let row = |n: usize, random: &mut Random| std::array::from_fn(|_| word(random, n % 4 == usual));
    (0..VGPRS).map(|n| Box::new(Register(row(n, random)))).collect()
}

/// What waves and memory begin with: instructions and random choices make the difference.
struct Template {
    vgpr: Registers,
    agpr: Registers,
    bytes: Vec<u8>,
}

impl Template {
    fn new(seed: u64) -> Template {
        let random = &mut Random::new(seed);
        let bytes = (0..BUFFER / 4).flat_map(|_| bits(random).to_le_bytes()).collect();
        Template { vgpr: registers(random, 1), agpr: registers(random, 2), bytes }
    }
}

/// Addresses of the forms that fast paths tell apart, so many bytes from each in bounds, or rarely not.
fn addresses(random: &mut Random, (room, size): (usize, usize)) -> [u32; LANES] {
    let step = [0, size, size, 4, 64, 100][random.below(6)];
    let block = [1, 2, 3, 16, 64][random.below(5)];
    let most = room - size - step * LANES;
    let align = [1, 4, 4, 4, 16][random.below(5)];
    let start = random.below(most) / align * align;
    let scattered = random.below(4) == 0;
    let outside = random.below(40) == 0;
    std::array::from_fn(|lane| {
        let place = match scattered {
            true => random.below(room - size) / align * align,
            false if random.below(2) == 0 && step == 100 => start,
            false => start + step * (lane / block),
        };
        if outside && lane == 40 { room as u32 } else { place as u32 }
    })
}

/// Everything that an instruction can change.
struct Machine {
    wave: Wave,
    lds: Vec<u8>,
    memory: Memory,
    stats: DispatchStats,
}

impl Machine {
    fn run(&mut self, launch: &Launch, op: &Op) -> Result<(), String> {
        let view = self.memory.view_of_kernels(false);
        let (mut random, mut clock) = (Random::new(1), 0);
        let (mut barrier, mut work) = (Barrier::default(), WorkRows::default());
        let mut core = Core {
            memory: &view,
            lds: &mut self.lds,
            wave: &mut self.wave,
            launch,
            random: &mut random,
            stats: &mut self.stats,
            clock: &mut clock,
            barrier: &mut barrier,
            work: &mut work,
            races: None,
        };
        (op.run)(&mut core, op).map_err(|stop| format!("{:?} {:?}", stop.kind, stop.lane))
    }
}

fn machine(launch: &Launch, template: &Template, seed: u64, op: &Op) -> (Machine, u64) {
    let mut random = Random::new(seed);
    let mut memory = Memory::new();
    let buffer = memory.malloc(BUFFER as u64, 256, AllocationKind::Device).expect("memory");
    memory.view().write(buffer, &template.bytes, MemoryAccess::Store).expect("the buffer");
    let mut wave = Plan::blank_wave(launch);
    wave.sgpr.iter_mut().for_each(|register| *register = bits(&mut random));
    (wave.vgpr, wave.agpr) = (template.vgpr.clone(), template.agpr.clone());
    wave.sgpr_count = launch.target.addressable_sgprs() as u16;
    wave.lanes = if launch.lanes == 32 { 0xffff_ffff } else { u64::MAX };
    let all = wave.lanes;
    let exec = match random.below(6) {
        0..3 => all,
        3 => random.next() & all,
        4 => all >> random.below(launch.lanes),
        _ => 1 << random.below(launch.lanes),
    };
    wave.set_pair(scalar::EXEC, exec);
    wave.set_pair(scalar::VCC, if random.below(2) == 0 { 0 } else { random.next() });
    // Rounding, denormals, DX10_CLAMP and IEEE; mostly what compiled code runs with.
    let mode = match random.below(8) {
        0..5 => 0x3f0,
        5 | 6 => 0x3c0,
        _ => random.next() as u32 & 0x3ff,
    };
    wave.set_mode(mode);
    if let Some(address) = op.global_address {
        let size = usize::from(op.inst.variant.memory_bytes).max(1);
        let offsets = addresses(&mut random, (BUFFER, size));
        let base = buffer.wrapping_sub(address.offset);
        match address.base {
            Some(code) if usize::from(code) + 1 < wave.sgpr.len() => wave.set_pair(code, base),
            _ => {}
        }
        for (lane, offset) in offsets.into_iter().enumerate() {
            let at = if address.base.is_some() { u64::from(offset) } else { base.wrapping_add(u64::from(offset)) };
            wave.vgpr[usize::from(address.vector)][lane] = at as u32;
            if let (None, Some(high)) = (address.base, wave.vgpr.get_mut(usize::from(address.vector) + 1)) {
                high[lane] = (at >> 32) as u32;
            }
        }
    }
    if let Some(Operand { value: Value::Reg(reg), .. }) = op.inst.operand(Role::Addr)
        && reg.file == RegFile::Vector
    {
        wave.vgpr[usize::from(reg.first)].0 = addresses(&mut random, (LDS, 16));
    }
    let lds = template.bytes[..LDS].to_vec();
    (Machine { wave, lds, memory, stats: DispatchStats::default() }, buffer)
}

/// What differs after an instruction. Where two operands are NaN, which of them an operation gives depends on the order
/// in which the compiler has them: there any NaN is right.
fn difference(op: &Op, fast: &Machine, slow: &Machine, (buffer, lanes): (u64, usize)) -> Option<String> {
    let is_float = op.inst.is_any(OpcodeFlags::FLOAT);
    // The high dword of a double, for each of its two dwords.
    let is_double = !matches!(op.semantics, Semantics::Packed32 { .. });
    let double = op.dst.filter(|dst| is_double && dst.dwords == 2 && dst.file == RegFile::Vector);
    let double = double.map(|dst| usize::from(dst.first));
    let are_nans = |n: usize, lane: usize, fast: &Registers, slow: &Registers| {
        let high = double.filter(|first| n == *first || n == first + 1).map(|first| first + 1);
        is_float
            && [fast, slow].into_iter().all(|file| match high {
                Some(high) => {
                    f64::from_bits(u64::from(file[high][lane]) << 32 | u64::from(file[high - 1][lane])).is_nan()
                }
                None => f32::from_bits(file[n][lane]).is_nan(),
            })
    };
    let file = |name: &str, fast: &Registers, slow: &Registers| {
        fast.iter().zip(slow).enumerate().find_map(|(n, (a, b))| {
            let lane = (0..lanes).find(|lane| a[*lane] != b[*lane] && !are_nans(n, *lane, fast, slow))?;
            Some(format!("{name}{n} lane {lane}: {:#x}, slow {:#x}", a[lane], b[lane]))
        })
    };
    let bytes = |machine: &Machine| {
        let mut bytes = vec![0; BUFFER];
        machine.memory.view().read(buffer, &mut bytes, MemoryAccess::Load).expect("the buffer");
        bytes
    };
    file("v", &fast.wave.vgpr, &slow.wave.vgpr)
        .or_else(|| file("a", &fast.wave.agpr, &slow.wave.agpr))
        .or_else(|| (fast.wave.sgpr != slow.wave.sgpr).then(|| "scalar registers".into()))
        .or_else(|| (fast.wave.scc != slow.wave.scc).then(|| "SCC".into()))
        .or_else(|| (fast.lds != slow.lds).then(|| "LDS".into()))
        .or_else(|| (fast.stats != slow.stats).then(|| "counts".into()))
        .or_else(|| (bytes(fast) != bytes(slow)).then(|| "memory".into()))
}

/// An instruction with the handler that was chosen, and with that of its meaning; none where both are the same.
fn both(target: Target, inst: &Inst) -> Option<[Op; 2]> {
    let info = OpcodeInfo::of(target, inst);
    let meaning = exec::meaning(target, inst)?;
    let location = InstLocation { object: ObjectId(0), address: 0, pc: 0 };
    let op = || prepare::op(target, inst.clone(), meaning, &info, location);
    let (fast, slow) = (op(), Op { run: meaning.0, fast_path: None, ..op() });
    let is_lds = fast.inst.variant.encoding == Encoding::Ds;
    (fast.fast_path.is_some() || fast.global_address.is_some() || is_lds).then_some([fast, slow])
}

/// Compares instructions of a target that random words are, and returns how many of each.
fn compare(target: &str, wave_size: u32, tries: usize) -> BTreeMap<&'static str, usize> {
    /// Of one instruction.
    const MOST: usize = 40;
    /// The first bits of vector and memory instructions on one target or another, and how many they are.
    const PREFIXES: [(u32, u32); 10] = [
        (0, 1),
        (0x7e00_0000, 7),
        (0x7c00_0000, 7),
        (0xd000_0000, 6),
        (0xd000_0000, 7),
        (0xd400_0000, 6),
        (0xd380_0000, 9),
        (0xcc00_0000, 8),
        (0xd800_0000, 6),
        (0xdc00_0000, 6),
    ];
    let target = Target::by_name(target).expect("a target").with_wave_size(wave_size).expect("a wave size");
    let launch = launch(target);
    let templates = [1, 2, 3].map(Template::new);
    let mut random = Random::new(wave_size.into());
    let mut compared = BTreeMap::new();
    for seed in 0..tries {
        let mut words: [u32; 5] = std::array::from_fn(|_| random.next() as u32);
        let (prefix, length) = PREFIXES[random.below(PREFIXES.len())];
        words[0] = prefix | words[0] & (u32::MAX >> length);
        if matches!(prefix, 0xd000_0000 | 0xd400_0000) && random.below(3) > 0 {
            // Without modifiers, which most fast paths do not have.
            words[0] &= !0xff00;
            words[1] &= 0x07ff_ffff;
        }
        if prefix == 0xd800_0000 {
            // Not GDS; a small offset; the fields that a read, a write, or a write of two elements has.
            words[0] &= !0x1_ff00;
            words[1] &= [0xff00_00ff, 0x0000_ffff, 0x00ff_ffff][random.below(3)];
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        let Ok(inst) = decode(target, &bytes) else { continue };
        let count = compared.entry(inst.variant.name).or_insert(0);
        if *count >= MOST {
            continue;
        }
        let Some([fast, slow]) = both(target, &inst) else { continue };
        let template = &templates[seed % templates.len()];
        let (mut one, buffer) = machine(&launch, template, seed as u64, &fast);
        let (mut other, _) = machine(&launch, template, seed as u64, &slow);
        // No fast path is taken with that, and nothing else depends on it.
        other.wave.fp_mode = FpMode::Closed;
        let (of_fast, of_slow) = (one.run(&launch, &fast), other.run(&launch, &slow));
        let text = || format!("{} {words:#x?}, seed {seed}", print(target, &inst));
        assert_eq!(of_fast, of_slow, "{}", text());
        if of_slow.is_ok() {
            assert_eq!(difference(&fast, &one, &other, (buffer, launch.lanes)), None, "{}", text());
            *count += 1;
        }
    }
    compared
}

/// Names of which enough must have been compared.
const COMMON: [&str; 8] = [
    "v_fma_f32",
    "v_div_scale_f32",
    "v_div_fmas_f32",
    "v_div_fixup_f32",
    "v_div_scale_f64",
    "v_div_fmas_f64",
    "v_div_fixup_f64",
    "v_rcp_f32",
];

#[test]
fn fast_paths_do_what_slow_ones_do() {
    for (target, wave_size, memory) in [
        ("gfx90a", 64, ["global_load_dword", "global_store_dwordx4", "ds_read_b32", "ds_write_b128"]),
        ("gfx1100", 32, ["global_load_b32", "global_store_b128", "ds_load_b32", "ds_store_b128"]),
    ] {
        let compared = compare(target, wave_size, 1_000_000);
        for name in COMMON.into_iter().chain(memory) {
            assert!(compared.get(name).is_some_and(|count| *count >= 10), "{target}: {name} {:?}", compared.get(name));
        }
        let instructions = compared.values().filter(|count| **count > 0).count();
        assert!(instructions >= 250, "{target}: {instructions} instructions compared");
    }
}

/// The other generations, with fewer words each.
#[test]
fn fast_paths_of_all_generations_do_what_slow_ones_do() {
    for (target, wave_size) in [
        ("gfx803", 64),
        ("gfx906", 64),
        ("gfx942", 64),
        ("gfx950", 64),
        ("gfx1030", 32),
        ("gfx1030", 64),
        ("gfx1100", 64),
        ("gfx1201", 32),
        ("gfx1250", 32),
    ] {
        let compared = compare(target, wave_size, 200_000);
        let instructions = compared.values().filter(|count| **count > 0).count();
        assert!(instructions >= 150, "{target}: {instructions} instructions compared");
    }
}
