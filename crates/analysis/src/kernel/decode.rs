//! Making a [`Body`]: decode what control reaches, resolve indirect jumps, decode what those reach, until nothing new
//! is found.
//!
//! Each round decodes the instructions that control reaches from the known places, solves `constants` on them from
//! the beginning, and resolves jumps and calls through registers with the result. A resolution is remembered by its
//! address. If a later round, with more code, finds another target for the same instruction, that instruction stays
//! unknown for good. So each address changes at most twice and the rounds end; a remembered target holds for all code
//! that was reached, because the last round changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;

use super::body::{Body, BodyKind, CallTarget, Flow, Registers};
use super::constants::{self, PreservedRegs};
use super::image::Image;
use super::{expert_scheduling, vgpr_msb, vskip};
use wavetap_amdgpu::{Branch, Inst, OpcodeFlags, Reg, Role, Target, Value};
use wavetap_base::entity::InstId;
use wavetap_base::error::{Error, Result, ResultExt};

/// Return address of a device function (AMDGPUUsage, "Call convention").
pub(super) const RETURN_ADDRESS: Reg = Reg::scalar(30, 2);

impl Body {
    /// Decodes everything that control can reach from `entry`.
    ///
    /// ```
    /// # use wavetap_amdgpu::Target;
    /// # use wavetap_analysis::kernel::{Body, BodyKind, Image};
    /// # let Some(target) = Target::by_name("gfx90a") else { return };
    /// let code = [0x81, 0xbf, 0x80, 0xbf, 0x00, 0x00]; // runs into bytes that are no instruction
    /// let mut image = Image::new();
    /// image.add_code(0x1000, &code);
    /// assert!(Body::decode(target, &image, "kernel", BodyKind::Kernel, 0x1000).is_err());
    /// ```
    ///
    /// # Errors
    /// Malformed if control reaches a word that is no instruction or runs off the executable bytes; unsupported if two
    /// reachable instructions overlap, an obsolete instruction changes the flow of control in a way that nothing here
    /// follows, it depends on the path which vector registers an instruction means (`s_set_vgpr_msb`), or vector
    /// instructions may be skipped in more than one body (`s_setvskip`).
    pub fn decode(target: Target, image: &Image<'_>, name: &str, kind: BodyKind, entry: u64) -> Result<Body> {
        Self::decode_with(target, image, name, kind, entry, &PreservedRegs::default())
    }

    /// [`Body::decode`], given what functions leave in scalar registers: then more is known of where calls after calls
    /// go.
    ///
    /// # Errors
    /// As [`Body::decode`].
    pub fn decode_with(
        target: Target,
        image: &Image<'_>,
        name: &str,
        kind: BodyKind,
        entry: u64,
        preserved: &PreservedRegs,
    ) -> Result<Body> {
        // Nearly all of it is in one range.
        let range = image.range_of(entry);
        let decode = |inst: &mut Inst, address: u64| {
            let near = range
                .and_then(|(start, bytes)| bytes.get(usize::try_from(address.checked_sub(start)?).ok()?..))
                .filter(|bytes| !bytes.is_empty());
            let bytes = near.or_else(|| image.code_from(address));
            let bytes = bytes.ok_or_else(|| Error::malformed("control runs off the executable code").at(address))?;
            wavetap_amdgpu::decode_into(inst, target, bytes)
                .map_err(|error| error.within(format!("code at {address:#x}")))
        };
        let from = |begin: u64| Self::from_decoder(target, image, name, kind, (entry, begin), preserved, decode);
        let body = from(entry).within(|| name.to_owned())?;
        let begin = if kind == BodyKind::Kernel { image.begin_of(entry) } else { None };
        // Generated kernels may have two beginnings that meet later: it is that which hardware runs, unless it cannot
        // be decoded.
        Ok(begin.filter(|begin| body.at(*begin).is_none()).and_then(|begin| from(begin).ok()).unwrap_or(body))
    }

    /// [`Body::decode`] with any source of instructions: what can be reached from `begin`, under the address `entry`.
    pub(super) fn from_decoder(
        target: Target,
        image: &Image<'_>,
        name: &str,
        kind: BodyKind,
        (entry_address, begin): (u64, u64),
        preserved: &PreservedRegs,
        decode: impl Fn(&mut Inst, u64) -> Result<()>,
    ) -> Result<Body> {
        let mut reached = Reached::for_code_of(image.distance_to_next(entry_address), image.end_of(entry_address));
        let mut resolved = BTreeMap::new();
        let mut work = vec![begin];
        loop {
            reached.extend(work, &decode)?;
            let (insts, addresses, flows, entry) = reached.order(kind, begin, &resolved)?;
            let opcode_flags = insts.iter().fold(OpcodeFlags::empty(), |all, inst| all | inst.variant.opcode_flags);
            let registers = Registers::of(&insts);
            let mut body = Body {
                name: name.to_owned(),
                kind,
                target,
                entry,
                entry_address,
                insts,
                addresses,
                calls: Vec::new(),
                jumps_away: flows.contains(&Flow::IndirectJump),
                flows,
                vgpr_msb: Vec::new(),
                vskip: Vec::new(),
                scheduling: Vec::new(),
                registers,
                opcode_flags,
            };
            work = Vec::new();
            let mut changed = false;
            for (id, found) in constants::indirect_targets(&body, image, preserved) {
                let address = body.address(id);
                let mut resolution = resolve(&body, image, id, found);
                // Code that a resolved jump reaches can make the jump's own register ambiguous. Then it stays unknown
                // for good.
                if resolved.get(&address).is_some_and(|old| *old != resolution) {
                    resolution = Resolution::Unknown;
                }
                changed |= resolved.insert(address, resolution) != Some(resolution);
                if let Resolution::Jump(to) = resolution {
                    work.push(to);
                }
            }
            if !changed {
                let states = vgpr_msb::states(&body)?;
                body.set_vgpr_msb(states);
                body.vskip = vskip::states(&body)?;
                body.scheduling = expert_scheduling::states(&body);
                body.calls =
                    body.ids().filter(|id| matches!(body.flow(*id), Flow::Call(_) | Flow::TailCall(_))).collect();
                if body.insts.capacity() / 4 * 3 > body.insts.len() {
                    body.insts.shrink_to_fit();
                }
                return Ok(body);
            }
            (reached.insts, reached.addresses) = (std::mem::take(&mut body.insts), std::mem::take(&mut body.addresses));
        }
    }
}

/// What is known of an instruction that goes where a register says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    Jump(u64),
    TailCall(u64),
    Call(u64),
    Return,
    Unknown,
}

/// Gives a resolved register value its meaning: a jump stays inside the body, a tail call starts another function.
fn resolve(body: &Body, image: &Image<'_>, id: InstId, found: constants::Target) -> Resolution {
    match (body.inst(id).variant.branch, found) {
        (Branch::IndirectCall, constants::Target::Address(to)) if image.code_from(to).is_some() => Resolution::Call(to),
        (Branch::IndirectJump, constants::Target::Address(to)) if image.entry_name(to).is_some() => {
            Resolution::TailCall(to)
        }
        (Branch::IndirectJump, constants::Target::Address(to)) if image.code_from(to).is_some() => Resolution::Jump(to),
        (Branch::IndirectJump, constants::Target::ReturnAddress) => Resolution::Return,
        _ => Resolution::Unknown,
    }
}

/// The instructions that control reaches, as they were found.
struct Reached {
    insts: Vec<Inst>,
    addresses: Vec<u64>,
    seen: Seen,
    /// Where the body's own code ends, if that is known.
    end: Option<u64>,
}

/// Addresses that are multiples of 4.
#[derive(Default)]
struct Seen {
    /// By address / [`Seen::PAGE`]: a bit for each word of it.
    pages: FxHashMap<u64, u64>,
    /// The page that was looked at last, and its bits, which `pages` does not have yet: most addresses follow each
    /// other.
    last: (u64, u64),
}

impl Seen {
    const PAGE: u64 = 4 * u64::BITS as u64;

    /// Adds an address; tells whether it is new.
    fn insert(&mut self, address: u64) -> bool {
        let page = address / Self::PAGE;
        if page != self.last.0 {
            self.pages.insert(self.last.0, self.last.1);
            self.last = (page, self.pages.get(&page).copied().unwrap_or(0));
        }
        let words = &mut self.last.1;
        let bit = 1 << (address % Self::PAGE / 4);
        let new = *words & bit == 0;
        *words |= bit;
        new
    }
}

/// Instructions in the order of their addresses, with these, how control leaves each, and which is the entry.
type Ordered = (Vec<Inst>, Vec<u64>, Vec<Flow>, InstId);

/// Bytes of an instruction on average, or a little less.
const AVERAGE_SIZE: u64 = 6;
/// More instructions than this are not expected before they are found.
const MOST_EXPECTED: u64 = 1 << 14;

impl Reached {
    /// Expects as many instructions as there usually are in so many bytes: growing moves everything.
    fn for_code_of(bytes: u64, end: Option<u64>) -> Reached {
        let expected = (bytes / AVERAGE_SIZE).min(MOST_EXPECTED) as usize + 16;
        Reached {
            insts: Vec::with_capacity(expected),
            addresses: Vec::with_capacity(expected),
            seen: Seen::default(),
            end,
        }
    }

    /// Adds everything that control reaches from the addresses in `work`.
    fn extend(&mut self, work: Vec<u64>, decode: &impl Fn(&mut Inst, u64) -> Result<()>) -> Result<()> {
        // The lowest address first: then instructions are found in their order, but for odd code, and need not be
        // moved.
        let mut work: BinaryHeap<Reverse<u64>> = work.into_iter().map(Reverse).collect();
        // Discovery: the graph is found by decoding, in address order, so there is nothing to solve yet.
        while let Some(Reverse(mut pc)) = work.pop() {
            loop {
                if !pc.is_multiple_of(4) {
                    return Err(Error::malformed("control reaches an address that is not a multiple of 4").at(pc));
                }
                if !self.seen.insert(pc) {
                    break;
                }
                // In its place: moving instructions takes as long as decoding them.
                self.insts.push(Inst::blank());
                let Some(inst) = self.insts.last_mut() else { break };
                decode(inst, pc)?;
                let next = pc
                    .checked_add(u64::from(inst.size))
                    .ok_or_else(|| Error::malformed("code at the end of the address space").at(pc))?;
                let branch = inst.variant.branch;
                if let Some(target) = direct_target(inst, pc) {
                    work.push(Reverse(target));
                }
                if branch == Branch::Obsolete {
                    return Err(Error::unsupported(format!(
                        "{} changes the flow of control through hardware state",
                        inst.name()
                    ))
                    .at(pc));
                }
                self.addresses.push(pc);
                if matches!(branch, Branch::Jump | Branch::End | Branch::IndirectJump) {
                    break;
                }
                // Nothing returns from there: see `Image::set_end`.
                if self.end == Some(next) && (matches!(branch, Branch::Call | Branch::IndirectCall) || aborts(inst)) {
                    break;
                }
                pc = next;
            }
        }
        Ok(())
    }

    /// Takes the instructions out, in order; gives each its flow.
    fn order(&mut self, kind: BodyKind, entry: u64, resolved: &BTreeMap<u64, Resolution>) -> Result<Ordered> {
        if u32::try_from(self.insts.len()).is_err() {
            return Err(Error::limit("more than 2^32 instructions in one kernel"));
        }
        if !self.addresses.is_sorted() {
            let mut order: Vec<u32> = (0..self.insts.len() as u32).collect();
            order.sort_unstable_by_key(|&index| self.addresses[index as usize]);
            self.insts =
                order.iter().map(|&index| std::mem::replace(&mut self.insts[index as usize], Inst::blank())).collect();
            self.addresses.sort_unstable();
        }
        let (insts, addresses) = (std::mem::take(&mut self.insts), std::mem::take(&mut self.addresses));
        let mut previous_end = 0;
        for (&address, inst) in addresses.iter().zip(&insts) {
            if address < previous_end {
                return Err(Error::unsupported("control reaches the middle of an instruction").at(address));
            }
            previous_end = address + u64::from(inst.size);
        }
        let flows = flows(kind, &insts, &addresses, resolved)?;
        let entry = id_at(&addresses, entry)?;
        Ok((insts, addresses, flows, entry))
    }
}

/// The trap that ends a wave, as compilers make it of what must not happen; debuggers' traps return (AMDGPUUsage,
/// "Trap Handler ABI": 2 is `llvm.trap`).
const ABORT: i64 = 2;

fn aborts(inst: &Inst) -> bool {
    inst.variant.branch == Branch::Trap
        && matches!(inst.operands.first().map(|operand| operand.value), Some(Value::Imm(ABORT)))
}

/// The address a direct jump or conditional branch goes to. Calls are not followed: their targets are bodies of their
/// own.
fn direct_target(inst: &Inst, pc: u64) -> Option<u64> {
    if !matches!(inst.variant.branch, Branch::Jump | Branch::Conditional(_)) {
        return None;
    }
    displaced(inst, pc)
}

/// The address that an instruction's displacement names: dwords from the next instruction.
pub(super) fn displaced(inst: &Inst, pc: u64) -> Option<u64> {
    let displacement = inst.branch_displacement()?;
    Some(pc.wrapping_add(u64::from(inst.size)).wrapping_add_signed(displacement * 4))
}

/// The instruction at an address.
fn id_at(addresses: &[u64], address: u64) -> Result<InstId> {
    let index = addresses
        .binary_search(&address)
        .map_err(|_| Error::internal("a branch target was not decoded").at(address))?;
    Ok(InstId(index as u32))
}

/// How control leaves each instruction.
fn flows(kind: BodyKind, insts: &[Inst], addresses: &[u64], resolved: &BTreeMap<u64, Resolution>) -> Result<Vec<Flow>> {
    let id_at = |address| id_at(addresses, address);
    let mut flows = Vec::with_capacity(insts.len());
    for (&address, inst) in addresses.iter().zip(insts) {
        let missing = || Error::malformed(format!("{} without a target", inst.name())).at(address);
        flows.push(match inst.variant.branch {
            Branch::None | Branch::Trap | Branch::Obsolete => Flow::Next,
            Branch::Jump => Flow::Jump(id_at(displaced(inst, address).ok_or_else(missing)?)?),
            Branch::Conditional(_) => Flow::Branch(id_at(displaced(inst, address).ok_or_else(missing)?)?),
            Branch::Call => Flow::Call(CallTarget::Known(displaced(inst, address).ok_or_else(missing)?)),
            Branch::End => Flow::End,
            Branch::IndirectCall | Branch::IndirectJump => match resolved.get(&address) {
                Some(&Resolution::Call(to)) => Flow::Call(CallTarget::Known(to)),
                Some(&Resolution::Jump(to)) => Flow::Jump(id_at(to)?),
                Some(&Resolution::TailCall(to)) => Flow::TailCall(CallTarget::Known(to)),
                Some(Resolution::Return) => Flow::Return,
                _ if inst.variant.branch == Branch::IndirectCall => Flow::Call(CallTarget::Unknown),
                _ if kind == BodyKind::Function && jumps_to(inst, RETURN_ADDRESS) => Flow::Return,
                _ => Flow::IndirectJump,
            },
        });
    }
    Ok(flows)
}

/// Whether an indirect jump goes where this register pair says.
fn jumps_to(inst: &Inst, pair: Reg) -> bool {
    inst.operand(Role::Src0).and_then(|operand| operand.reg()) == Some(pair)
}
