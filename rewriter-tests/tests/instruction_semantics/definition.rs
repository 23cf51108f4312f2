//! Finds the definition of an operation by its name, and makes a state for it to start from.

use wavetap::isa::{Access, Implicit, Inst, Modifier, RegFile, Role, Target, Value, Variant, scalar};

use super::choose::{self, Wishes};
use super::lane::{self, Lane};
use super::machine::Registers;
use super::random::{Bits, Random, bits};
use super::state::{MEMORY, Place, REGISTERS, State};
use super::{
    brain, chance, compare, control, convert, copies, cross, division, dots, exchange, float, formats, image, integer,
    matrix, matrix_mixed, matrix_rdna, memory, odd, ordered, packed, pairs, scalar_float, scalars, small, smem,
};

/// What an instruction does, said a second time.
#[derive(Clone, Copy)]
pub enum Meaning {
    /// The same in every lane, from the lane's own operands.
    Lane(Lane),
    /// Anything else; none where an operand means nothing.
    Whole(fn(&Inst, &mut State, Target) -> Option<()>),
}

/// A definition.
#[derive(Clone, Copy)]
pub struct Definition {
    pub meaning: Meaning,
    pub wishes: Wishes,
    /// Types of the sources, where lanes do not say them.
    pub types: &'static [Bits],
    /// Changes a random state to one in which the instruction means something.
    pub prepare: Option<fn(&Inst, &mut State, &mut Random)>,
    /// Chooses a modifier.
    pub modifier: Option<fn(&mut Random, Modifier) -> Option<u64>>,
    /// The instruction uses memory, or LDS.
    pub memory: bool,
    pub lds: bool,
    /// Each lane's private memory.
    pub scratch: bool,
    /// Chooses the number of an operand's field.
    pub operand: Option<fn(&mut Random, Role) -> Option<u64>>,
    /// Instructions follow that show which of them are executed.
    pub ladder: bool,
    /// M0 chooses registers.
    pub relative: bool,
}

impl Definition {
    pub fn whole(f: fn(&Inst, &mut State, Target) -> Option<()>) -> Definition {
        Definition {
            meaning: Meaning::Whole(f),
            wishes: Wishes::default(),
            types: &[],
            prepare: None,
            modifier: None,
            memory: false,
            lds: false,
            scratch: false,
            operand: None,
            ladder: false,
            relative: false,
        }
    }

    fn lane(lane: Lane) -> Definition {
        // What an inline float constant is to a 16-bit integer operation, and a literal to a 64-bit one, is not
        // documented.
        let no_float_constants = lane.src.iter().any(|ty| matches!(ty, lane::T::U16 | lane::T::P16));
        let no_literals = lane.src.contains(&lane::T::U64);
        let wishes = Wishes { no_float_constants, no_literals, ..Wishes::default() };
        Definition {
            meaning: Meaning::Lane(lane),
            wishes,
            types: &[],
            prepare: None,
            modifier: None,
            memory: false,
            lds: false,
            scratch: false,
            operand: None,
            ladder: false,
            relative: false,
        }
    }
}

/// The definition of a row's operation, if there is one.
pub fn of(variant: &Variant, target: Target) -> Option<Definition> {
    // gfx8 has no sums without carry, and no other names for those with it.
    let carries =
        variant.implicit_writes.contains(Implicit::VCC) || variant.operands.iter().any(|spec| spec.role == Role::Sdst);
    let name = match variant.name {
        "v_add_u32" if carries => "v_add_co_u32",
        "v_sub_u32" if carries => "v_sub_co_u32",
        "v_subrev_u32" if carries => "v_subrev_co_u32",
        "v_addc_u32" => "v_addc_co_u32",
        "v_subb_u32" => "v_subb_co_u32",
        "v_subbrev_u32" => "v_subbrev_co_u32",
        name => name,
    };
    let lane = integer::definition(name)
        .or_else(|| float::definition(name))
        .or_else(|| division::definition(name))
        .or_else(|| convert::definition(name))
        .or_else(|| ordered::definition(name))
        .or_else(|| odd::lane_definition(name))
        .or_else(|| small::lane_definition(name));
    if let Some(lane) = lane {
        let mut definition = Definition::lane(lane);
        // Of some it is not documented which sources `op_sel` chooses halves of.
        definition.wishes.plain =
            ["v_dot", "v_div_scale", "v_align", "v_trig_preop"].iter().any(|prefix| name.starts_with(prefix));
        definition.wishes.denormals = ["v_frexp_", "v_div_", "v_tanh_"].iter().any(|prefix| name.starts_with(prefix));
        definition.modifier = float::modifiers(&lane);
        return Some(definition);
    }
    pairs::definition(variant)
        .or_else(|| compare::definition(name))
        .or_else(|| packed::definition(name))
        .or_else(|| cross::definition(name))
        .or_else(|| scalars::definition(name))
        .or_else(|| memory::definition(variant, target))
        .or_else(|| formats::definition(variant))
        .or_else(|| copies::definition(variant))
        .or_else(|| image::definition(variant))
        .or_else(|| smem::definition(variant))
        .or_else(|| matrix::definition(name))
        .or_else(|| exchange::definition(name))
        .or_else(|| odd::definition(name))
        .or_else(|| dots::definition(name))
        .or_else(|| small::definition(name))
        .or_else(|| chance::definition(name))
        .or_else(|| brain::definition(name))
        .or_else(|| scalar_float::definition(name))
        .or_else(|| matrix_mixed::definition(name))
        .or_else(|| matrix_rdna::definition(name))
        .or_else(|| control::definition(name))
}

/// The registers that an instruction may change.
pub fn registers(definition: &Definition, inst: &Inst) -> Registers {
    let mut all = choose::registers(inst);
    if definition.ladder {
        all.scalar.extend(control::LADDER);
    }
    if definition.relative && inst.name().starts_with("v_") {
        all.vector.extend(exchange::RELATIVE);
    } else if definition.relative {
        all.scalar.extend(control::RELATIVE);
    }
    for list in [&mut all.vector, &mut all.scalar] {
        list.sort_unstable();
        list.dedup();
    }
    all
}

/// Executes an instruction by its definition.
pub fn execute(definition: &Definition, inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    match definition.meaning {
        Meaning::Lane(lane) => lane::execute(&lane, inst, state, target),
        Meaning::Whole(f) => f(inst, state, target),
    }
}

/// A random state in which the operands have edge values of their types.
pub fn state(
    random: &mut Random,
    definition: &Definition,
    inst: &Inst,
    target: Target,
    mode: u32,
    data: u64,
    pc: u64,
) -> State {
    let row = [0; 64];
    let mut state = State {
        lanes: target.wave_size() as usize,
        sgpr: [0; 128],
        scc: random.one_in(2),
        mode,
        vgpr: vec![row; REGISTERS],
        agpr: vec![row; REGISTERS],
        address: data,
        pc,
        memory: Vec::new(),
        lds: Vec::new(),
        scratch: Vec::new(),
        target,
        generation: lane::fact(target, "generation"),
        loose: Vec::new(),
    };
    if definition.memory {
        state.memory = (0..MEMORY).map(|_| random.next() as u8).collect();
    }
    if definition.lds {
        state.lds = (0..MEMORY).map(|_| random.next() as u8).collect();
    }
    if definition.scratch {
        state.scratch = (0..MEMORY).map(|_| random.next() as u8).collect();
    }
    for register in [106, 107, 124] {
        state.sgpr[register] = bits(random, Bits::Word32) as u32;
    }
    let exec = match random.below(6) {
        0 => 0,
        1 | 2 => random.next() & random.next(),
        3 => random.next() | random.next(),
        _ => u64::MAX,
    };
    state.set_mask(126, exec);
    let all = registers(definition, inst);
    for n in &all.vector {
        state.vgpr[usize::from(*n)] = std::array::from_fn(|_| bits(random, Bits::Word32) as u32);
    }
    for n in &all.accum {
        state.agpr[usize::from(*n)] = std::array::from_fn(|_| bits(random, Bits::Word32) as u32);
    }
    for n in &all.scalar {
        state.sgpr[usize::from(*n)] = bits(random, Bits::Word32) as u32;
    }
    let types: Vec<Bits> = match definition.meaning {
        Meaning::Lane(lane) => lane.src.iter().map(|ty| ty.bits()).collect(),
        Meaning::Whole(_) => definition.types.to_vec(),
    };
    let roles: Vec<Option<Role>> = match definition.meaning {
        Meaning::Lane(lane) => {
            lane::sources(inst, lane.src).into_iter().map(|operand| operand.map(|operand| operand.role)).collect()
        }
        Meaning::Whole(_) => [Role::Src0, Role::Src1, Role::Src2].map(Some).to_vec(),
    };
    for (ty, role) in types.into_iter().zip(roles) {
        let Some(operand) = role.and_then(|role| inst.operand(role)) else { continue };
        let Value::Reg(reg) = operand.value else { continue };
        fill(random, &mut state, ty, reg.file, usize::from(reg.first), inst);
    }
    if let Some(prepare) = definition.prepare {
        prepare(inst, &mut state, random);
    }
    state
}

fn fill(random: &mut Random, state: &mut State, ty: Bits, file: RegFile, first: usize, inst: &Inst) {
    let wide = matches!(ty, Bits::Word64 | Bits::Double | Bits::PairSingle);
    let narrow = matches!(ty, Bits::Word16 | Bits::Half | Bits::Brain);
    let byte = inst.modifiers.sdwa.is_some();
    let next = |random: &mut Random| {
        let value = bits(random, ty);
        // The other half, and where a part is selected, any part.
        if narrow || byte { value | bits(random, ty) << 16 } else { value }
    };
    match file {
        RegFile::Scalar if !(16..=100).contains(&first) => {}
        RegFile::Scalar => {
            let value = next(random);
            state.sgpr[first] = value as u32;
            if wide {
                state.sgpr[first + 1] = (value >> 32) as u32;
            }
        }
        file => {
            let rows = if file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
            for lane in 0..64_usize {
                let value = next(random);
                rows[first][lane] = value as u32;
                if let Some(high) = rows.get_mut(first + 1).filter(|_| wide) {
                    high[lane] = (value >> 32) as u32;
                }
            }
        }
    }
}

/// How two states differ in what was read back, if they do.
pub fn difference(
    inst: &Inst,
    state: &State,
    expected: &State,
    found: &State,
    registers: &Registers,
) -> Option<String> {
    let loose = |place: Place| expected.loose.iter().filter(move |(at, _)| *at == place).map(|(_, loose)| *loose);
    for (name, from) in [("v", &registers.vector), ("a", &registers.accum)] {
        for &n in from {
            let n = usize::from(n);
            let (place, e, f) = if name == "v" {
                (Place::Vector(n), &expected.vgpr, &found.vgpr)
            } else {
                (Place::Accum(n), &expected.agpr, &found.agpr)
            };
            for lane in 0..expected.lanes {
                if e[n][lane] == f[n][lane] {
                    continue;
                }
                let words = |rows: &[[u32; 64]], n: usize| [rows[n][lane], rows[n + 1][lane]];
                let fine = loose(place).any(|loose| loose.agree(words(e, n), words(f, n)));
                // The high half of a wide number.
                let part = if name == "v" { Place::Vector(n.wrapping_sub(1)) } else { Place::Accum(n.wrapping_sub(1)) };
                let high =
                    n > 0 && loose(part).any(|loose| is_wide(loose) && loose.agree(words(e, n - 1), words(f, n - 1)));
                if !fine && !high {
                    return Some(format!(
                        "{name}{n} lane {lane}: {:#010x}, expected {:#010x}{}",
                        f[n][lane],
                        e[n][lane],
                        operands(inst, state, lane)
                    ));
                }
            }
        }
    }
    for &n in registers.scalar.iter().chain(&[106, 107, 124, 126, 127]) {
        let n = usize::from(n);
        let (e, f) = (expected.sgpr[n], found.sgpr[n]);
        if e != f && !loose(Place::Scalar(n)).any(|loose| loose.agree([e, 0], [f, 0])) {
            let bit = (e ^ f).trailing_zeros() as usize + if matches!(n, 107 | 127) { 32 } else { 0 };
            return Some(format!("scalar {n}: {f:#010x}, expected {e:#010x}{}", operands(inst, state, bit)));
        }
    }
    if expected.scc != found.scc {
        return Some(format!("SCC {}, expected {}{}", found.scc, expected.scc, operands(inst, state, 0)));
    }
    if expected.mode != found.mode {
        return Some(format!("MODE {:#x}, expected {:#x}{}", found.mode, expected.mode, operands(inst, state, 0)));
    }
    let memories = [
        ("memory", &state.memory, &expected.memory, &found.memory),
        ("LDS", &state.lds, &expected.lds, &found.lds),
        ("private memory", &state.scratch, &expected.scratch, &found.scratch),
    ];
    for (name, before, e, f) in memories {
        let Some(at) = e.iter().zip(f).position(|(e, f)| e != f).map(|at| at & !3) else { continue };
        let word = |bytes: &[u8]| super::access::number(&bytes[at..at + 4]);
        return Some(format!(
            "{name} at {at:#x}: {:#010x}, expected {:#010x}, before {:#010x}{}",
            word(f),
            word(e),
            word(before),
            operands(inst, state, 0)
        ));
    }
    None
}

fn is_wide(loose: super::state::Loose) -> bool {
    matches!(loose, super::state::Loose::Nan64 | super::state::Loose::Ulp64(_))
}

/// The operands of a lane, for a person.
fn operands(inst: &Inst, state: &State, lane: usize) -> String {
    let mut text = String::from("; operands");
    for operand in inst.operands.iter().filter(|operand| operand.access != Access::None) {
        if let Some(reg) = operand.reg() {
            text += &format!(" {:?}=", operand.role);
            for n in (0..usize::from(operand.dwords.min(4))).rev() {
                let at = usize::from(reg.first) + n;
                let word = match reg.file {
                    RegFile::Vector => state.vgpr[at][lane % 64],
                    RegFile::Accum => state.agpr[at][lane % 64],
                    RegFile::Scalar if reg.first == scalar::NULL || at >= 128 => 0,
                    RegFile::Scalar => state.sgpr[at],
                };
                text += &format!("{word:08x}");
            }
        }
    }
    text + &format!(
        " vcc={:x} exec={:x} m0={:x} scc={} mode={:#x}",
        state.mask(106),
        state.exec(),
        state.sgpr[124],
        state.scc,
        state.mode
    )
}
