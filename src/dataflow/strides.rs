//! How far apart neighbouring lanes access memory: an address as a sum of the work-item ids, each times a number, and something that is the same in all lanes.
//!
//! Only what follows from the code alone counts: additions, and products with numbers that are in the code. Where lanes took different ways, or an address was loaded, nothing is known. As
//! long as nothing wraps around at 24 bits, the operations on 24-bit integers are those on all.

use rustc_hash::FxHashMap;

use super::definitions::Definitions;
use super::regset::RegSet;
use super::versions::{Kills, Node, Version};
use crate::entity::InstId;
use crate::isa::{Inst, Operand, Reg, RegFile, Role, Value};
use crate::kernel::BodyKind;

/// So many operations are looked through.
const DEEPEST: u32 = 64;

/// A 32-bit value, or the lower half of a longer one: `x * X + y * Y + z * Z + U`, where X, Y and Z are the work-item's ids and U is the same in all lanes of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// x, y, z; none where it is some number that is not in the code.
    factors: [Option<i32>; 3],
    /// U, if it is known.
    same: Option<i32>,
}

impl Form {
    /// The same in all lanes.
    fn same(value: Option<i32>) -> Form {
        Form { factors: [Some(0); 3], same: value }
    }

    fn id(dimension: usize) -> Form {
        let mut form = Form::same(Some(0));
        form.factors[dimension] = Some(1);
        form
    }

    /// v0 where it holds all three (AMDGPUUsage, "Initial kernel execution state": x in bits 9:0, y in 19:10, z in 29:20).
    fn packed_ids() -> Form {
        Form { factors: [Some(1), Some(1 << 10), Some(1 << 20)], same: Some(0) }
    }

    fn plus(self, other: Form) -> Form {
        let sum = |a: Option<i32>, b: Option<i32>| a.zip(b).map(|(a, b)| a.wrapping_add(b));
        Form { factors: std::array::from_fn(|n| sum(self.factors[n], other.factors[n])), same: sum(self.same, other.same) }
    }

    /// Times a number, which is not in the code if it is none.
    fn by(self, number: Option<i32>) -> Form {
        let product = |a: Option<i32>| match a {
            Some(0) => Some(0),
            a => a.zip(number).map(|(a, b)| a.wrapping_mul(b)),
        };
        Form { factors: self.factors.map(product), same: product(self.same) }
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
        let number = by.same.and_then(|by| u32::try_from(by).ok()).filter(|by| *by < 32).map(|by| 1_i32.wrapping_shl(by));
        (!by.differs()).then(|| self.by(number))
    }
}

/// Answers by how much the addresses of neighbouring lanes differ.
#[derive(Debug, Default)]
pub struct Strides {
    /// Of writes, by version.
    known: FxHashMap<Version, Option<Form>>,
    /// Of merges that are being looked at: what comes in from earlier code.
    assumed: FxHashMap<Version, Form>,
}

impl Strides {
    /// Bytes from the address of a lane to that of the next one in direction x, without constants and overflow: 0 where all have the same. `address` is the operand that the lanes' address
    /// is in, or its offset from one that is the same in all lanes. Nothing where that does not follow from the code.
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
        let (position, version) = definitions.versions.read_at(id, low).next()?;
        self.version(definitions, version, position, Some(definitions.versions.exec_before(id)), depth)
    }

    /// A version of the register at a position, as the lanes see it that are active in `lanes`.
    fn version(
        &mut self,
        definitions: &Definitions<'_>,
        version: Version,
        position: u16,
        lanes: Option<Version>,
        depth: u32,
    ) -> Option<Form> {
        if depth > DEEPEST {
            return None;
        }
        let reg = RegSet::reg_at(usize::from(position));
        match definitions.versions.node(version) {
            Node::Entry => at_entry(definitions, reg),
            Node::Call { .. } => (!is_vector(reg)).then(|| Form::same(None)),
            Node::Write { inst, kills, .. } => {
                let active = |lanes| definitions.masks.covers(definitions.versions.exec_before(inst), lanes);
                match kills {
                    Kills::All => {}
                    Kills::Lanes if lanes.is_some_and(active) => {}
                    Kills::Nothing if !is_vector(reg) => return Some(Form::same(None)),
                    Kills::Lanes | Kills::Nothing => return None,
                }
                if let Some(known) = self.known.get(&version) {
                    return *known;
                }
                let form = self.result(definitions, inst, reg, depth + 1);
                self.known.insert(version, form);
                form
            }
            Node::Merge { block, operands } => {
                if let Some(assumed) = self.assumed.get(&version) {
                    return Some(*assumed);
                }
                let merged: Vec<_> = definitions.versions.merged(definitions.cfg, block, operands).collect();
                let (later, earlier): (Vec<_>, Vec<_>) =
                    merged.into_iter().partition(|(from, _)| from.is_some_and(|from| definitions.cfg.retreats(from, block)));
                let mut all: Option<Form> = None;
                for (from, version) in earlier {
                    let lanes = lanes.and_then(|lanes| definitions.lanes_before(lanes, block, from));
                    let form = self.version(definitions, version, position, lanes, depth + 1)?;
                    let agreed = all.is_none_or(|all| all.factors == form.factors);
                    let same = if all.is_none() { form.same } else { all.and_then(|all| all.same).filter(|same| form.same == Some(*same)) };
                    all = agreed.then_some(Form { same, ..form });
                    all?;
                }
                if later.is_empty() {
                    return all;
                }
                // What the rounds before made of it is something else, and the same in all lanes as well.
                let assumed = Form { same: None, ..all? };
                self.assumed.insert(version, assumed);
                let holds = later.into_iter().all(|(from, version)| {
                    let lanes = lanes.and_then(|lanes| definitions.lanes_before(lanes, block, from));
                    let form = self.version(definitions, version, position, lanes, depth + 1);
                    form.is_some_and(|form| form.factors == assumed.factors)
                });
                self.assumed.remove(&version);
                if !holds {
                    // Some of it may rest on what does not hold.
                    self.known.clear();
                }
                holds.then_some(assumed)
            }
        }
    }

    /// What an instruction leaves in a register.
    fn result(&mut self, definitions: &Definitions<'_>, id: InstId, to: Reg, depth: u32) -> Option<Form> {
        let inst = definitions.body.inst(id);
        let Some(halves) = inst.halves() else {
            return self.computed(definitions, id, inst.name(), inst.operands.iter(), to, depth);
        };
        let half = halves.iter().find(|half| half.writes().any(|reg| reg.overlaps(to)))?;
        self.computed(definitions, id, &half.alone(), half.operands(), to, depth)
    }

    fn computed<'a>(
        &mut self,
        definitions: &Definitions<'_>,
        id: InstId,
        name: &str,
        operands: impl Iterator<Item = &'a Operand>,
        to: Reg,
        depth: u32,
    ) -> Option<Form> {
        let inst = definitions.body.inst(id);
        if !is_vector(to) {
            let constant = match name {
                "s_mov_b32" | "s_movk_i32" => constant(inst),
                _ => None,
            };
            return Some(Form::same(constant));
        }
        let operands: Vec<&Operand> = operands.collect();
        // The upper halves of results are not looked at.
        let lower = operands.first().and_then(|operand| operand.reg()).is_some_and(|reg| reg.first == to.first);
        if !lower || inst.modifiers.clamp {
            return None;
        }
        let mut source = |role: Role| {
            let operand = operands.iter().find(|operand| operand.role == role)?;
            self.operand(definitions, id, operand, depth)
        };
        let (a, b, c) = (source(Role::Src0), source(Role::Src1), source(Role::Src2));
        match name {
            "v_mov_b32" | "v_mov_b64" => a,
            "v_add_u32" | "v_add_co_u32" | "v_add_nc_u32" | "v_add_i32" | "v_add_nc_i32" | "v_add_nc_u64" => Some(a?.plus(b?)),
            "v_sub_u32" | "v_sub_co_u32" | "v_sub_nc_u32" | "v_sub_i32" | "v_sub_nc_i32" => Some(a?.plus(b?.by(Some(-1)))),
            "v_subrev_u32" | "v_subrev_co_u32" | "v_subrev_nc_u32" => Some(b?.plus(a?.by(Some(-1)))),
            "v_add3_u32" => Some(a?.plus(b?).plus(c?)),
            "v_lshlrev_b32" | "v_lshlrev_b64" => b?.shifted(a?),
            "v_lshl_add_u32" | "v_lshl_add_u64" => Some(a?.shifted(b?)?.plus(c?)),
            "v_add_lshl_u32" => a?.plus(b?).shifted(c?),
            "v_mul_lo_u32" | "v_mul_u32_u24" | "v_mul_i32_i24" => a?.times(b?),
            "v_mad_u32_u24" | "v_mad_i32_i24" | "v_mad_u64_u32" | "v_mad_i64_i32" | "v_mad_co_u64_u32" | "v_mad_co_i64_i32" => {
                Some(a?.times(b?)?.plus(c?))
            }
            // Ids that are packed into one register.
            "v_and_b32" => match (a?, b?) {
                (ids, mask) | (mask, ids) if ids == Form::packed_ids() && mask == Form::same(Some(0x3ff)) => Some(Form::id(0)),
                (a, b) => same_in_all(&[a, b]),
            },
            "v_bfe_u32" => {
                let (ids, from, bits) = (a?, b?, c?);
                let dimension = (0..3).find(|n| from == Form::same(Some(10 * n)));
                match dimension.filter(|_| ids == Form::packed_ids() && bits == Form::same(Some(10))) {
                    Some(dimension) => Some(Form::id(dimension as usize)),
                    None => same_in_all(&[ids, from, bits]),
                }
            }
            _ => None,
        }
    }
}

/// What any function makes of values that are the same in all lanes.
fn same_in_all(forms: &[Form]) -> Option<Form> {
    forms.iter().all(|form| !form.differs()).then(|| Form::same(None))
}

fn is_vector(reg: Reg) -> bool {
    reg.file != RegFile::Scalar
}

fn constant(inst: &Inst) -> Option<i32> {
    inst.operands.iter().find_map(|operand| match operand.value {
        Value::InlineInt(value) => Some(i32::from(value)),
        Value::Literal(value) => Some(value.cast_signed()),
        Value::Imm(value) => i32::try_from(value).ok(),
        _ => None,
    })
}

/// What registers hold when a kernel begins.
fn at_entry(definitions: &Definitions<'_>, reg: Reg) -> Option<Form> {
    if !is_vector(reg) {
        return Some(Form::same(None));
    }
    if definitions.body.kind() != BodyKind::Kernel {
        return None;
    }
    let packed = definitions.body.target().packed_work_item_ids();
    (0..3).find(|n| Reg::vector(*n, 1) == reg).and_then(|n| match (packed, n) {
        (false, n) => Some(Form::id(usize::from(n))),
        (true, 0) => Some(Form::packed_ids()),
        (true, _) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfg::Cfg;
    use crate::dataflow::Summaries;
    use crate::isa::{Access, Implicit};
    use crate::kernel::Body;
    use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op};

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
        let address = body.inst(used).operands.iter().find(|operand| operand.access == Access::Read).expect("an operand");
        Strides::default().of(&definitions, used, address)
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
        let row =
            x().push(make("v_mul_lo_u32", 2).reads(v(1)).literal(100)).push(make("v_add_u32", 3).reads(Reg::scalar(4, 1)).reads(v(2)));
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
        let some = || Listing::at(0).push(shift(1, 2, 0)).push(narrow()).push(make("v_mov_b32", 1).reads(Reg::scalar(4, 1)));
        assert_eq!(used(some(), 1), Some(0), "in those lanes");
        assert_eq!(used(some().push(restore()), 1), None);
        // A branch of the whole wave leaves all lanes alike, if both ways do.
        let either = |by| {
            let listing = Listing::at(0).push(branch_scc1("other")).push(shift(1, 2, 0)).push(crate::kernel::assembly::jump("on"));
            used(listing.label("other").push(shift(1, by, 0)).label("on"), 1)
        };
        assert_eq!((either(2), either(3)), (Some(4), None));
    }
}
