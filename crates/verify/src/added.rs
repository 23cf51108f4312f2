//! One kernel whose new code is loaded beside the original object, which stays as it is.
//!
//! The rules are checked with the code at an address after the original image, as if it were a part of that. It runs
//! elsewhere, at a distance that is known when both are loaded: [`check_moved`] checks that nothing but what reaches
//! for the original image has changed for that.

use wavetap_amdgpu::{Inst, Opcode, Target};
use wavetap_analysis::cfg::Program;
use wavetap_analysis::kernel::{Body, BodyKind, Image};
use wavetap_base::entity::InstId;
use wavetap_object::code_object::{Features, Kernel};
use wavetap_profile::map::KernelMap;

use crate::file::object;
use crate::finding::{Finding, Rule};
use crate::kernels;

/// Size of an instruction without a literal.
const SHORT: usize = 4;
/// Size of half a distance.
const HALF: usize = 4;

/// A kernel, before and after.
#[derive(Debug, Clone, Copy)]
pub struct AddedKernel<'a> {
    /// The kernel in its code object.
    pub original: &'a Kernel,
    /// The same with the new descriptor and metadata; its entry is in `code`.
    pub rewritten: &'a Kernel,
    /// The code object's processor.
    pub target: Target,
    /// What the code object was compiled for.
    pub features: Features,
    /// The code object's code.
    pub image: &'a Image<'a>,
    /// Where its image ends.
    pub image_end: u64,
    /// The new code, padding included.
    pub code: &'a [u8],
    /// Its address, after the image.
    pub address: u64,
    /// Its sites.
    pub map: &'a KernelMap,
    /// Bytes of a record that its control block says.
    pub stride: u32,
}

impl AddedKernel<'_> {
    fn with_image<T>(&self, code: &[u8], use_it: impl FnOnce(&Image<'_>) -> T) -> T {
        let mut image = self.image.clone();
        image.add_code(self.address, code);
        let lanes = self.rewritten.descriptor.machine(self.target).wave_size();
        image.set_wave_size(self.rewritten.entry, lanes);
        use_it(&image)
    }
}

/// Checks a kernel's new code, descriptor, metadata and sites against the original; what is wrong.
#[must_use]
pub fn check_added(added: &AddedKernel<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = &added.original.name;
    if added.address < added.image_end {
        findings.push(Finding::new(Rule::Segments, "new code lies in the original image").at(added.address));
        return findings;
    }
    object::records(added.map, added.stride, &mut findings);
    added.with_image(added.code, |image| kernels::check_added(added, image, &mut findings));
    findings.into_iter().map(|finding| finding.in_kernel(name)).collect()
}

/// Checks new code as it runs, `by` bytes after the address at which [`check_added`] accepted it, while the original
/// image stays where it is; what is wrong. Every original `s_getpc_b64` still yields the original program counter, and
/// nothing else is different.
#[must_use]
pub fn check_moved(added: &AddedKernel<'_>, moved: &[u8], by: u64) -> Vec<Finding> {
    let name = &added.original.name;
    let mut findings = Vec::new();
    let mut complain = |message: &str, at| findings.push(Finding::new(Rule::Skeleton, message).at(at));
    if moved.len() != added.code.len() {
        complain("code that moved has another size", added.address);
    } else {
        let mut expected = added.code.to_vec();
        let program = added.with_image(added.code, |image| {
            let entry = added.rewritten.entry;
            Program::build(added.target, image, [(name.clone(), BodyKind::Kernel, entry)])
        });
        // A body may be decoded twice, an instruction is changed once.
        let mut places: Vec<[usize; 2]> = Vec::new();
        for body in program.bodies().iter().filter(|body| body.entry_address() >= added.image_end) {
            for id in body.ids().filter(|id| is_original_getpc(added, body, *id)) {
                match distance(added, body, id) {
                    Some(place) => places.push(place),
                    None => complain("nothing turns what s_getpc_b64 yields into the original", body.address(id)),
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        for [low, high] in places {
            let half = |at: usize| u64::from(word(added.code, at).unwrap_or_default());
            let distance = (half(low) | half(high) << 32).wrapping_sub(by).to_le_bytes();
            expected[low..low + HALF].copy_from_slice(&distance[..HALF]);
            expected[high..high + HALF].copy_from_slice(&distance[HALF..]);
        }
        if let Some(at) = expected.iter().zip(moved).position(|(expected, found)| expected != found) {
            complain("code that moved is not the same", added.address + at as u64);
        }
    }
    findings.into_iter().map(|finding| finding.in_kernel(name)).collect()
}

fn word(code: &[u8], at: usize) -> Option<u32> {
    code.get(at..)?.first_chunk::<HALF>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Whether an instruction is one of the original that reads the program counter, by the site table, which was checked.
fn is_original_getpc(added: &AddedKernel<'_>, body: &Body, id: InstId) -> bool {
    let address = body.address(id);
    body.inst(id).opcode() == Opcode::S_GETPC_B64 && added.map.addresses.iter().any(|pair| pair.rewritten == address)
}

/// Where the two halves are of what is added to the program counter after it was read: the next additions to its pair.
fn distance(added: &AddedKernel<'_>, body: &Body, getpc: InstId) -> Option<[usize; 2]> {
    let at = |id: InstId| usize::try_from(body.address(id) - added.address).ok();
    let pair = body.inst(getpc).writes().next()?;
    let adds = |inst: &Inst, opcode: Opcode| inst.opcode() == opcode && inst.writes().any(|reg| reg.overlaps(pair));
    let mut low = None;
    let mut id = body.next(getpc)?;
    loop {
        let inst = body.inst(id);
        if adds(inst, Opcode::S_ADD_NC_U64) && usize::from(inst.size) == SHORT + 2 * HALF && low.is_none() {
            return Some([at(id)? + SHORT, at(id)? + SHORT + HALF]);
        }
        if usize::from(inst.size) == SHORT + HALF {
            if adds(inst, Opcode::S_ADD_U32) && low.is_none() {
                low = Some(at(id)? + SHORT);
            } else if adds(inst, Opcode::S_ADDC_U32)
                && let Some(low) = low
            {
                return Some([low, at(id)? + SHORT]);
            }
        }
        id = body.next(id)?;
    }
}
