//! How far apart neighbouring lanes access memory: an address as a sum of the work-item ids, each times a number, and
//! something that is the same in all lanes.
//!
//! Only what follows from the code alone counts: additions, and products with numbers that are in the code. Where lanes
//! took different ways, or an address was loaded, nothing is known. As long as nothing wraps around at 24 bits, the
//! operations on 24-bit integers are those on all.
//!
//! `or` and `xor` are additions where the two have no bit in common that may be set: one is a multiple of a power of
//! two, and the other less than that and not negative. So `and` with a mask is nothing at all where the value has no
//! bits but those of the mask.

use rustc_hash::FxHashMap;

use super::definitions::Definitions;
use super::regset::RegSet;
use super::ssa::{Kills, Node, SsaId};
use crate::kernel::BodyKind;
use wavetap_amdgpu::{Inst, Opcode, Operand, Reg, RegFile, Role, Value};
use wavetap_base::entity::InstId;

/// So many operations are looked through.
const DEEPEST: u32 = 64;
/// Through so many scalar ones: beyond, little is known of powers of two.
const SCALAR_DEEPEST: u32 = 8;

/// Work-items that a workgroup may have in a direction, where nothing says less.
const MOST_WORK_ITEMS: u32 = 1024;

/// What registers hold of a work-item's ids when a kernel begins, and how large these may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItems {
    /// How many ids a lane is given: x alone, x and y, or all three.
    pub ids: u32,
    /// The most work-items that a workgroup may have in each direction, each at least 1.
    pub most: [u32; 3],
}

impl Default for WorkItems {
    fn default() -> WorkItems {
        WorkItems { ids: 3, most: [MOST_WORK_ITEMS; 3] }
    }
}

/// A 32-bit value, or the lower half of a longer one: `x * X + y * Y + z * Z + U`, where X, Y and Z are the work-item's
/// ids and U is the same in all lanes of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// x, y, z; none where it is some number that is not in the code.
    factors: [Option<i32>; 3],
    /// U, if it is known.
    same: Option<i32>,
    /// So many of the lowest bits of U are 0, at least.
    zeros: u32,
}

impl Form {
    /// The same in all lanes.
    fn same(value: Option<i32>) -> Form {
        Form { factors: [Some(0); 3], same: value, zeros: value.map_or(0, i32::trailing_zeros) }
    }

    /// The same in all lanes, and some multiple of a power of two.
    fn multiple(zeros: u32) -> Form {
        Form { zeros, ..Form::same(None) }
    }

    fn id(dimension: usize) -> Form {
        let mut form = Form::same(Some(0));
        form.factors[dimension] = Some(1);
        form
    }

    /// v0 where it holds all three (AMDGPUUsage, "Initial kernel execution state": x in bits 9:0, y in 19:10, z in
    /// 29:20).
    fn packed_ids() -> Form {
        Form { factors: [Some(1), Some(1 << 10), Some(1 << 20)], ..Form::same(Some(0)) }
    }

    /// With what is known of U in step.
    fn with(factors: [Option<i32>; 3], same: Option<i32>, zeros: u32) -> Form {
        Form { factors, same, zeros: same.map_or(zeros.min(i32::BITS), i32::trailing_zeros) }
    }

    fn plus(self, other: Form) -> Form {
        let sum = |a: Option<i32>, b: Option<i32>| a.zip(b).map(|(a, b)| a.wrapping_add(b));
        let factors = std::array::from_fn(|n| sum(self.factors[n], other.factors[n]));
        Form::with(factors, sum(self.same, other.same), self.zeros.min(other.zeros))
    }

    /// Times a number, which is not in the code if it is none.
    fn by(self, number: Option<i32>) -> Form {
        let product = |a: Option<i32>| match a {
            Some(0) => Some(0),
            a => a.zip(number).map(|(a, b)| a.wrapping_mul(b)),
        };
        let zeros = self.zeros.saturating_add(number.map_or(0, i32::trailing_zeros));
        Form::with(self.factors.map(product), product(self.same), zeros)
    }

    /// So many of the lowest bits are 0 in all lanes, at least.
    fn low_zeros(self) -> u32 {
        self.factors.iter().map(|factor| factor.map_or(0, i32::trailing_zeros)).fold(self.zeros, u32::min)
    }

    /// The least and the largest value in any lane, if it is known.
    fn range(self, most: [u32; 3]) -> Option<(i64, i64)> {
        let same = i64::from(self.same?);
        self.factors.iter().zip(most).try_fold((same, same), |(least, largest), (factor, most)| {
            let end = i64::from((*factor)?) * i64::from(most.max(1) - 1);
            Some((least + end.min(0), largest + end.max(0)))
        })
    }

    /// Whether no bit is set but the lowest so many, in any lane.
    fn fits(self, bits: u32, most: [u32; 3]) -> bool {
        self.range(most).is_some_and(|(least, largest)| least >= 0 && largest < 1 << bits.min(i32::BITS - 1))
    }

    /// `a | b`, which is `a ^ b` and `a + b` where no bit may be set in both.
    fn or(self, other: Form, most: [u32; 3]) -> Option<Form> {
        if self.fits(other.low_zeros(), most) || other.fits(self.low_zeros(), most) {
            return Some(self.plus(other));
        }
        // What is 0 in both is 0 in the result.
        let same = !self.differs() && !other.differs();
        same.then(|| Form {
            same: self.same.zip(other.same).map(|(a, b)| a | b),
            ..Form::multiple(self.zeros.min(other.zeros))
        })
    }

    /// `a & b`, if one is a mask that leaves all bits of the other, or both are the same in all lanes.
    fn and(self, other: Form, most: [u32; 3]) -> Option<Form> {
        let kept = |value: Form, mask: Form| {
            let mask = mask.same.filter(|_| !mask.differs())?;
            let (low, high) = (mask.trailing_ones(), mask.trailing_zeros());
            // All bits from some number on, or all below one.
            let keeps = (low > 0 && value.fits(low, most))
                || (mask.leading_ones() + high == i32::BITS && value.low_zeros() >= high);
            keeps.then_some(value)
        };
        if let Some(value) = kept(self, other).or_else(|| kept(other, self)) {
            return Some(value);
        }
        let same = !self.differs() && !other.differs();
        same.then(|| {
            Form::with([Some(0); 3], self.same.zip(other.same).map(|(a, b)| a & b), self.zeros.max(other.zeros))
        })
    }

    fn differs(self) -> bool {
        self.factors != [Some(0); 3]
    }

    /// Nothing if both differ between lanes.
    fn times(self, other: Form) -> Option<Form> {
        match (self.differs(), other.differs()) {
            (_, false) => Some(self.by(other.same)),
            (false, true) => Some(other.by(self.same)),
            (true, true) => None,
        }
    }

    /// Nothing if the number of bits differs between lanes.
    fn shifted(self, by: Form) -> Option<Form> {
        // The hardware takes the lowest bits of the number; whatever they are, it is a product.
        let number =
            by.same.and_then(|by| u32::try_from(by).ok()).filter(|by| *by < 32).map(|by| 1_i32.wrapping_shl(by));
        (!by.differs()).then(|| self.by(number))
    }
}

/// Answers by how much the addresses of neighbouring lanes differ.
#[derive(Debug, Default)]
pub struct AffineAddresses {
    /// Of writes, by definition.
    known: FxHashMap<SsaId, Option<Form>>,
    /// Of merges that are being looked at: what comes in from earlier code.
    assumed: FxHashMap<SsaId, Form>,
    /// What is known of the ids.
    ids: WorkItems,
}

impl AffineAddresses {
    /// Nothing is looked at yet; of launches so much is known.
    #[must_use]
    pub fn new(ids: WorkItems) -> AffineAddresses {
        AffineAddresses { ids, ..AffineAddresses::default() }
    }

    /// Bytes that the address of a lane changes by with each of the three work-item ids, without constants and
    /// overflow; none where that is a number that is not in the code. `address` is the operand that the lanes' address
    /// is in, or its offset from one that is the same in all lanes. Nothing where that does not follow from the code.
    ///
    /// # Panics
    /// If `id` is not of the body of `definitions`.
    #[must_use]
    pub fn factors(
        &mut self,
        definitions: &Definitions<'_>,
        id: InstId,
        address: &Operand,
    ) -> Option<[Option<i32>; 3]> {
        Some(self.operand(definitions, id, address, 0)?.factors)
    }

    /// Bytes from the address of a lane to that of the next one in direction x, without constants and overflow: 0 where
    /// all have the same. `address` is the operand that the lanes' address is in, or its offset from one that is the
    /// same in all lanes. Nothing where that does not follow from the code.
    ///
    /// # Panics
    /// If `id` is not of the body of `definitions`.
    #[must_use]
    pub fn of(&mut self, definitions: &Definitions<'_>, id: InstId, address: &Operand) -> Option<i32> {
        self.operand(definitions, id, address, 0)?.factors[0]
    }

    fn operand(&mut self, definitions: &Definitions<'_>, id: InstId, operand: &Operand, depth: u32) -> Option<Form> {
        let Some(reg) = definitions.body.register(id, operand) else {
            return match operand.value {
                Value::InlineInt(value) => Some(Form::same(Some(i32::from(value)))),
                Value::Literal(value) => Some(Form::same(Some(value.cast_signed()))),
                Value::Imm(value) => Some(Form::same(i32::try_from(value).ok())),
                _ => None,
            };
        };
        let low = Reg { dwords: 1, ..reg };
        let (position, def) = definitions.ssa.read_at(id, low).next()?;
        self.def(definitions, def, position, Some(definitions.ssa.exec_before(id)), depth)
    }

    /// A definition of the register at a position, as the lanes see it that are active in `lanes`.
    fn def(
        &mut self,
        definitions: &Definitions<'_>,
        def: SsaId,
        position: u16,
        lanes: Option<SsaId>,
        depth: u32,
    ) -> Option<Form> {
        let reg = RegSet::reg_at(usize::from(position));
        if depth > DEEPEST {
            return (!is_vector(reg)).then(|| Form::same(None));
        }
        match definitions.ssa.node(def) {
            Node::Entry => at_entry(definitions, reg, self.ids),
            Node::Call { .. } => (!is_vector(reg)).then(|| Form::same(None)),
            Node::Write { inst, kills, .. } => {
                let active = |lanes| definitions.masks.covers(definitions.ssa.exec_before(inst), lanes);
                match kills {
                    Kills::All => {}
                    Kills::Lanes if lanes.is_some_and(active) => {}
                    Kills::Nothing if !is_vector(reg) => return Some(Form::same(None)),
                    Kills::Lanes | Kills::Nothing => return None,
                }
                if let Some(known) = self.known.get(&def) {
                    return *known;
                }
                let form = self.result(definitions, inst, reg, depth + 1);
                self.known.insert(def, form);
                form
            }
            Node::Merge { block, operands } => {
                if let Some(assumed) = self.assumed.get(&def) {
                    return Some(*assumed);
                }
                let merged: Vec<_> = definitions.ssa.merged(definitions.cfg, block, operands).collect();
                let (later, earlier): (Vec<_>, Vec<_>) = merged
                    .into_iter()
                    .partition(|(from, _)| from.is_some_and(|from| definitions.cfg.retreats(from, block)));
                let mut all: Option<Form> = None;
                for (from, def) in earlier {
                    let lanes = lanes.and_then(|lanes| definitions.lanes_before(lanes, block, from));
                    let form = self.def(definitions, def, position, lanes, depth + 1)?;
                    let agreed = all.is_none_or(|all| all.factors == form.factors);
                    let same = if all.is_none() {
                        form.same
                    } else {
                        all.and_then(|all| all.same).filter(|same| form.same == Some(*same))
                    };
                    let zeros = all.map_or(form.zeros, |all| all.zeros.min(form.zeros));
                    all = agreed.then_some(Form::with(form.factors, same, zeros));
                    all?;
                }
                if later.is_empty() {
                    return all;
                }
                // What the rounds before made of it is something else, and the same in all lanes as well.
                let assumed = Form { same: None, zeros: 0, ..all? };
                self.assumed.insert(def, assumed);
                let holds = later.into_iter().all(|(from, def)| {
                    let lanes = lanes.and_then(|lanes| definitions.lanes_before(lanes, block, from));
                    let form = self.def(definitions, def, position, lanes, depth + 1);
                    form.is_some_and(|form| form.factors == assumed.factors)
                });
                self.assumed.remove(&def);
                if !holds {
                    // Some of it may rest on what does not hold.
                    self.known.clear();
                }
                holds.then_some(assumed)
            }
        }
    }

    /// What a scalar instruction leaves in the lower half of its result, as far as constants and powers of two go;
    /// nothing if not even that is looked at.
    fn scalar(
        &mut self,
        definitions: &Definitions<'_>,
        id: InstId,
        opcode: Opcode,
        operands: &[&Operand],
        depth: u32,
    ) -> Option<Form> {
        if matches!(opcode, Opcode::S_MOV_B32 | Opcode::S_MOVK_I32)
            && let Some(constant) = constant(definitions.body.inst(id))
        {
            return Some(Form::same(Some(constant)));
        }
        let depth = depth + DEEPEST / SCALAR_DEEPEST;
        let mut source = |role: Role| {
            let operand = operands.iter().find(|operand| operand.role == role)?;
            let form = self.operand(definitions, id, operand, depth)?;
            (!form.differs()).then_some(form)
        };
        let (a, b) = (source(Role::Src0), source(Role::Src1));
        match opcode {
            Opcode::S_MOV_B32 | Opcode::S_MOV_B64 => a,
            Opcode::S_ADD_U32
            | Opcode::S_ADD_I32
            | Opcode::S_ADD_CO_U32
            | Opcode::S_ADD_CO_I32
            | Opcode::S_ADD_NC_U64 => Some(a?.plus(b?)),
            Opcode::S_SUB_U32 | Opcode::S_SUB_I32 | Opcode::S_SUB_CO_U32 | Opcode::S_SUB_CO_I32 => {
                Some(a?.plus(b?.by(Some(-1))))
            }
            Opcode::S_LSHL_B32 | Opcode::S_LSHL_B64 => a?.shifted(b?),
            Opcode::S_MUL_I32 => Some(match (a?, b?) {
                (a, Form { same: Some(number), .. }) | (Form { same: Some(number), .. }, a) => a.by(Some(number)),
                (a, b) => Form::multiple((a.zeros + b.zeros).min(i32::BITS)),
            }),
            Opcode::S_AND_B32 => a?.and(b?, self.ids.most),
            Opcode::S_OR_B32 => a?.or(b?, self.ids.most),
            _ => None,
        }
    }

    /// What an instruction leaves in a register.
    fn result(&mut self, definitions: &Definitions<'_>, id: InstId, to: Reg, depth: u32) -> Option<Form> {
        let inst = definitions.body.inst(id);
        let Some(halves) = inst.halves() else {
            return self.computed(definitions, id, inst.opcode(), inst.operands.iter(), to, depth);
        };
        let half = halves.iter().find(|half| half.writes().any(|reg| reg.overlaps(to)))?;
        let opcode = half.opcode().alone().unwrap_or(half.opcode());
        self.computed(definitions, id, opcode, half.operands(), to, depth)
    }

    fn computed<'a>(
        &mut self,
        definitions: &Definitions<'_>,
        id: InstId,
        opcode: Opcode,
        operands: impl Iterator<Item = &'a Operand>,
        to: Reg,
        depth: u32,
    ) -> Option<Form> {
        let inst = definitions.body.inst(id);
        let operands: Vec<&Operand> = operands.collect();
        // The upper halves of results are not looked at.
        let lower = operands.first().and_then(|operand| operand.reg()).is_some_and(|reg| reg.first == to.first);
        if !is_vector(to) {
            let scalar = if lower { self.scalar(definitions, id, opcode, &operands, depth) } else { None };
            return Some(scalar.unwrap_or(Form::same(None)));
        }
        // Values of other lanes, or parts of values.
        let m = &inst.modifiers;
        if !lower
            || m.clamp
            || m.dpp.is_some()
            || m.dpp8.is_some()
            || m.sdwa.is_some()
            || (m.op_sel | m.neg | m.abs | m.omod) != 0
        {
            return None;
        }
        let mut source = |role: Role| {
            let operand = operands.iter().find(|operand| alone(operand.role) == role)?;
            self.operand(definitions, id, operand, depth)
        };
        let (a, b, c) = (source(Role::Src0), source(Role::Src1), source(Role::Src2));
        let most = self.ids.most;
        use Opcode as O;
        match opcode {
            O::V_MOV_B32 | O::V_MOV_B64 => a,
            O::V_ADD_U32 | O::V_ADD_CO_U32 | O::V_ADD_NC_U32 | O::V_ADD_I32 | O::V_ADD_NC_I32 | O::V_ADD_NC_U64 => {
                Some(a?.plus(b?))
            }
            O::V_SUB_U32 | O::V_SUB_CO_U32 | O::V_SUB_NC_U32 | O::V_SUB_I32 | O::V_SUB_NC_I32 => {
                Some(a?.plus(b?.by(Some(-1))))
            }
            O::V_SUBREV_U32 | O::V_SUBREV_CO_U32 | O::V_SUBREV_NC_U32 => Some(b?.plus(a?.by(Some(-1)))),
            O::V_ADD3_U32 => Some(a?.plus(b?).plus(c?)),
            O::V_LSHLREV_B32 | O::V_LSHLREV_B64 => b?.shifted(a?),
            O::V_LSHL_ADD_U32 | O::V_LSHL_ADD_U64 => Some(a?.shifted(b?)?.plus(c?)),
            O::V_ADD_LSHL_U32 => a?.plus(b?).shifted(c?),
            O::V_MUL_LO_U32 | O::V_MUL_U32_U24 | O::V_MUL_I32_I24 => a?.times(b?),
            O::V_MAD_U32_U24
            | O::V_MAD_I32_I24
            | O::V_MAD_U64_U32
            | O::V_MAD_I64_I32
            | O::V_MAD_CO_U64_U32
            | O::V_MAD_CO_I64_I32 => Some(a?.times(b?)?.plus(c?)),
            // Ids that are packed into one register.
            O::V_AND_B32 => match (a?, b?) {
                (ids, mask) | (mask, ids) if ids == Form::packed_ids() && mask == Form::same(Some(0x3ff)) => {
                    Some(Form::id(0))
                }
                (a, b) => a.and(b, most),
            },
            O::V_OR_B32 => a?.or(b?, most),
            O::V_XOR_B32 => a?.or(b?, most).filter(|_| !both_same(a, b)).or_else(|| same_in_all(&[a?, b?])),
            O::V_OR3_B32 => a?.or(b?, most)?.or(c?, most),
            O::V_LSHL_OR_B32 => a?.shifted(b?)?.or(c?, most),
            O::V_AND_OR_B32 => a?.and(b?, most)?.or(c?, most),
            O::V_BFE_U32 => {
                let (ids, from, bits) = (a?, b?, c?);
                let dimension = (0..3).find(|n| from == Form::same(Some(10 * n)));
                let width = bits.same.filter(|_| from == Form::same(Some(0))).and_then(|bits| u32::try_from(bits).ok());
                match dimension.filter(|_| ids == Form::packed_ids() && bits == Form::same(Some(10))) {
                    Some(dimension) => Some(Form::id(dimension as usize)),
                    None if ids.differs() && width.is_some_and(|bits| ids.fits(bits & 31, most)) => Some(ids),
                    None => same_in_all(&[ids, from, bits]),
                }
            }
            _ => None,
        }
    }
}

/// Whether both are the same in all lanes.
fn both_same(a: Option<Form>, b: Option<Form>) -> bool {
    [a, b].iter().all(|form| form.is_some_and(|form| !form.differs()))
}

/// The role that an operand of the second of two operations has in that operation alone.
pub(super) fn alone(role: Role) -> Role {
    match role {
        Role::Src0Y => Role::Src0,
        Role::Src1Y => Role::Src1,
        Role::Src2Y => Role::Src2,
        other => other,
    }
}

/// What any function makes of values that are the same in all lanes.
fn same_in_all(forms: &[Form]) -> Option<Form> {
    forms.iter().all(|form| !form.differs()).then(|| Form::same(None))
}

/// Whether lanes have values of their own in it.
pub(super) fn is_vector(reg: Reg) -> bool {
    reg.file != RegFile::Scalar
}

/// The number that is in an instruction.
pub(super) fn constant(inst: &Inst) -> Option<i32> {
    inst.operands.iter().find_map(|operand| match operand.value {
        Value::InlineInt(value) => Some(i32::from(value)),
        Value::Literal(value) => Some(value.cast_signed()),
        Value::Imm(value) => i32::try_from(value).ok(),
        _ => None,
    })
}

/// What registers hold when a kernel begins.
fn at_entry(definitions: &Definitions<'_>, reg: Reg, ids: WorkItems) -> Option<Form> {
    if !is_vector(reg) {
        return Some(Form::same(None));
    }
    if definitions.body.kind() != BodyKind::Kernel {
        return None;
    }
    let packed = definitions.body.target().packed_work_item_ids();
    (0..3).find(|n| Reg::vector(*n, 1) == reg).and_then(|n| match (packed, n) {
        (false, n) => (u32::from(n) < ids.ids).then(|| Form::id(usize::from(n))),
        // Those that were not asked for are 0.
        (true, 0) if ids.ids == 1 => Some(Form::id(0)),
        (true, 0) => Some(Form::packed_ids()),
        (true, _) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg::Cfg;
    use crate::dataflow::Summaries;
    use crate::kernel::Body;
    use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op};
    use wavetap_amdgpu::{Access, Implicit};

    fn v(n: u16) -> Reg {
        Reg::vector(n, 1)
    }

    /// `op to, a, b`, with operands as they come.
    fn make(name: &'static str, to: u16) -> Op {
        op(name).writes(v(to)).implicit(Implicit::EXEC, Implicit::empty())
    }

    fn shift(to: u16, by: i8, from: u16) -> Op {
        make("v_lshlrev_b32", to).int(by).reads(v(from))
    }

    /// What the last instruction that is named so reads in its first register.
    fn stride(body: &Body) -> Option<i32> {
        let cfg = Cfg::build(body);
        let summaries = Summaries::none();
        let definitions = Definitions::new(body, &cfg, &summaries);
        let used = body.ids().rfind(|id| body.inst(*id).name() == "use").expect("a use");
        let address =
            body.inst(used).operands.iter().find(|operand| operand.access == Access::Read).expect("an operand");
        AffineAddresses::default().of(&definitions, used, address)
    }

    fn used(listing: Listing, reg: u16) -> Option<i32> {
        stride(&listing.push(op("use").reads(v(reg)).implicit(Implicit::EXEC, Implicit::empty())).push(end()).kernel())
    }

    #[test]
    fn sums_and_products_of_work_item_ids() {
        let x = || Listing::at(0).push(make("v_and_b32", 1).literal(0x3ff).reads(v(0)));
        assert_eq!(used(x(), 1), Some(1));
        assert_eq!(used(x().push(shift(2, 2, 1)), 2), Some(4));
        // y alone is the same in a row.
        let y = || Listing::at(0).push(make("v_bfe_u32", 1).reads(v(0)).int(10).int(10));
        assert_eq!(used(y(), 1), Some(0));
        assert_eq!(used(Listing::at(0).push(make("v_bfe_u32", 1).reads(v(0)).int(9).int(10)), 1), None);
        // 4 * (100 * x + s4)
        let row = x()
            .push(make("v_mul_lo_u32", 2).reads(v(1)).literal(100))
            .push(make("v_add_u32", 3).reads(Reg::scalar(4, 1)).reads(v(2)));
        assert_eq!(used(row.push(shift(4, 2, 3)), 4), Some(400));
        // By what is multiplied is not in the code; what is the same in a row stays so.
        let times = |listing: Listing| listing.push(make("v_mul_lo_u32", 2).reads(v(1)).reads(Reg::scalar(4, 1)));
        assert_eq!(used(times(y()).push(make("v_add_u32", 3).reads(v(0)).reads(v(2))), 3), Some(1));
        assert_eq!(used(times(x()), 2), None);
        let constant = op("s_movk_i32").writes(Reg::scalar(4, 1)).imm(24);
        assert_eq!(used(times(x().push(constant)), 2), Some(24));
        assert_eq!(used(x().push(make("v_sub_u32", 2).int(63).reads(v(1))), 2), Some(-1));
        assert_eq!(used(x().push(make("v_mul_lo_u32", 2).reads(v(1)).reads(v(1))), 2), None);
        assert_eq!(used(x().push(make("v_and_b32", 2).int(31).reads(v(1))), 2), None, "x modulo 32");
        assert_eq!(used(x().push(make("v_min_u32", 2).int(31).reads(v(1))), 2), None);
        assert_eq!(used(Listing::at(0).push(make("v_mov_b32", 2).reads(Reg::scalar(4, 1))), 2), Some(0));
    }

    #[test]
    fn rounds_of_a_loop_move_all_lanes_alike() {
        let rounds = |name: &'static str, more: Op| {
            Listing::at(0)
                .push(shift(1, 2, 0))
                .label("again")
                .push(op(name).reads(v(1)).implicit(Implicit::EXEC, Implicit::empty()))
                .push(more)
                .push(branch_scc1("again"))
                .push(end())
                .kernel()
        };
        let add = |from: Reg| make("v_add_u32", 1).reads(v(1)).reads(from);
        assert_eq!(stride(&rounds("use", add(Reg::scalar(4, 1)))), Some(4));
        assert_eq!(stride(&rounds("use", add(v(7)))), None, "each lane goes its own way");
        assert_eq!(stride(&rounds("use", shift(1, 1, 1))), None, "another stride in each round");
    }

    #[test]
    fn lanes_that_went_other_ways_have_other_places() {
        let saved = Reg::scalar(2, 2);
        let narrow = || op("s_and_saveexec_b64").writes(saved).reads(Reg::VCC).implicit(Implicit::EXEC, Implicit::EXEC);
        let restore = || op("s_or_b64").writes(Reg::EXEC).reads(Reg::EXEC).reads(saved);
        let some =
            || Listing::at(0).push(shift(1, 2, 0)).push(narrow()).push(make("v_mov_b32", 1).reads(Reg::scalar(4, 1)));
        assert_eq!(used(some(), 1), Some(0), "in those lanes");
        assert_eq!(used(some().push(restore()), 1), None);
        // A branch of the whole wave leaves all lanes alike, if both ways do.
        let either = |by| {
            let listing = Listing::at(0)
                .push(branch_scc1("other"))
                .push(shift(1, 2, 0))
                .push(crate::kernel::assembly::jump("on"));
            used(listing.label("other").push(shift(1, by, 0)).label("on"), 1)
        };
        assert_eq!((either(2), either(3)), (Some(4), None));
    }

    /// [`stride`] with workgroups of up to so many work-items in each direction, of whose ids x alone is given.
    fn of_x(most: u32, listing: Listing, reg: u16) -> Option<i32> {
        let body =
            listing.push(op("use").reads(v(reg)).implicit(Implicit::EXEC, Implicit::empty())).push(end()).kernel();
        let cfg = Cfg::build(&body);
        let summaries = Summaries::none();
        let definitions = Definitions::new(&body, &cfg, &summaries);
        let used = body.ids().rfind(|id| body.inst(*id).name() == "use").expect("a use");
        let address =
            body.inst(used).operands.iter().find(|operand| operand.access == Access::Read).expect("an operand");
        AffineAddresses::new(WorkItems { ids: 1, most: [most, 1, 1] }).of(&definitions, used, address)
    }

    #[test]
    fn or_adds_where_no_bit_is_in_both() {
        let s4 = Reg::scalar(4, 1);
        // s4 << 8 | x
        let lshl_or = || Listing::at(0).push(make("v_lshl_or_b32", 1).reads(s4).int(8).reads(v(0)));
        assert_eq!(of_x(256, lshl_or(), 1), Some(1));
        assert_eq!(of_x(257, lshl_or(), 1), None, "x may be 256");
        let or = |name: &'static str, by: i8| {
            let shifted = op("s_lshl_b32").writes(Reg::scalar(5, 1)).reads(s4).int(by);
            Listing::at(0).push(shifted).push(make(name, 1).reads(Reg::scalar(5, 1)).reads(v(0)))
        };
        for name in ["v_or_b32", "v_xor_b32"] {
            assert_eq!([7, 8, 9].map(|by| of_x(256, or(name, by), 1)), [None, Some(1), Some(1)], "{name}");
        }
        // What is added to the sum of 64 * s4 may have any bit.
        let sum = || {
            let add = op("s_add_u32").writes(Reg::scalar(5, 1)).reads(Reg::scalar(5, 1)).reads(Reg::scalar(6, 1));
            Listing::at(0)
                .push(op("s_lshl_b32").writes(Reg::scalar(5, 1)).reads(s4).int(8))
                .push(add)
                .push(make("v_or_b32", 1).reads(Reg::scalar(5, 1)).reads(v(0)))
        };
        assert_eq!(of_x(256, sum(), 1), None);
        // 4 * x | 3, and 4 * x | 4
        let constant =
            |constant: i8| Listing::at(0).push(shift(1, 2, 0)).push(make("v_or_b32", 2).reads(v(1)).int(constant));
        assert_eq!([3, 4].map(|number| of_x(256, constant(number), 2)), [Some(4), None]);
        // (x & 255) << 2 | s4 << 10 | 3
        let or3 = Listing::at(0)
            .push(shift(1, 2, 0))
            .push(make("v_lshlrev_b32", 2).int(10).reads(s4))
            .push(make("v_or3_b32", 3).reads(v(1)).reads(v(2)).int(3));
        assert_eq!(of_x(256, or3, 3), Some(4));
        // Both the same in all lanes: so is what becomes of them.
        assert_eq!(of_x(256, Listing::at(0).push(make("v_xor_b32", 1).reads(s4).reads(Reg::scalar(6, 1))), 1), Some(0));
    }

    #[test]
    fn and_leaves_what_its_mask_has_all_bits_of() {
        let and = |mask: u32| Listing::at(0).push(make("v_and_b32", 1).literal(mask).reads(v(0)));
        assert_eq!([255, 0x1ff, 127].map(|mask| of_x(256, and(mask), 1)), [Some(1), Some(1), None]);
        let high = |mask: u32| Listing::at(0).push(shift(1, 2, 0)).push(make("v_and_b32", 2).literal(mask).reads(v(1)));
        assert_eq!([0xffff_fffc, 0xffff_fff8].map(|mask| of_x(256, high(mask), 2)), [Some(4), None]);
        let and_or = |mask: u32| {
            let offset = make("v_lshlrev_b32", 1).int(8).reads(Reg::scalar(4, 1));
            Listing::at(0).push(offset).push(make("v_and_or_b32", 2).reads(v(0)).literal(mask).reads(v(1)))
        };
        assert_eq!([255, 15].map(|mask| of_x(256, and_or(mask), 2)), [Some(1), None]);
        let bits = |count: i8| Listing::at(0).push(make("v_bfe_u32", 1).reads(v(0)).int(0).int(count));
        assert_eq!([8, 7].map(|count| of_x(256, bits(count), 1)), [Some(1), None]);
    }
}
