//! Damages of kernel descriptors, field by field, and of the numbers of the metadata.

use wavetap::code_object::{CodeObject, Field, Kernel, KernelDescriptor};
use wavetap::verify::Rule;

use super::subject::{Harm, Subject};

/// What becomes of a field or number.
#[derive(Clone, Copy)]
pub enum Change {
    /// Its lowest bit flips.
    Flip,
    To(u32),
    Less,
    More,
    /// What it is in the original.
    Stale,
}

use Change::{Flip, Less, More, Stale, To};
use Rule::{Allocation, Clobbered, Descriptor, Launch, Lds, Metadata, Scratch, Undefined};

/// Where the damage means something: the descriptor is the original's.
type Applies = fn(&Subject, &KernelDescriptor) -> bool;

const ALWAYS: Applies = |_, _| true;

/// A field with what it is damaged to, where, and the rules that this breaks.
pub type FieldKind = (&'static str, Field, Change, Applies, &'static [Rule]);

const LIES: &[Rule] = &[Descriptor];
/// Registers at entry are not where the new code looks for them.
const SHIFTS: &[Rule] = &[Descriptor, Clobbered, Undefined];

/// Only every second value of this field means something: granules are twice as large as the field says.
const SGPRS: Field = Field { bit: Field::GRANULATED_WAVEFRONT_SGPR_COUNT.bit + 1, width: 3 };
/// Part of the field of AGPRs on some targets.
const SHARED_VGPRS: Field = Field { bit: Field::TG_SPLIT.bit - 16, width: 4 };

/// Every field of a kernel descriptor.
pub const FIELDS: &[FieldKind] = &[
    ("GROUP_SEGMENT_FIXED_SIZE", Field::GROUP_SEGMENT_FIXED_SIZE, Flip, ALWAYS, &[Lds]),
    ("GROUP_SEGMENT_FIXED_SIZE, stale", Field::GROUP_SEGMENT_FIXED_SIZE, Stale, ALWAYS, &[Lds]),
    ("PRIVATE_SEGMENT_FIXED_SIZE", Field::PRIVATE_SEGMENT_FIXED_SIZE, Flip, ALWAYS, &[Scratch]),
    ("PRIVATE_SEGMENT_FIXED_SIZE, stale", Field::PRIVATE_SEGMENT_FIXED_SIZE, Stale, ALWAYS, &[Scratch]),
    // 64 MiB for a wave of 32.
    ("PRIVATE_SEGMENT_FIXED_SIZE, most", Field::PRIVATE_SEGMENT_FIXED_SIZE, To(1 << 21), ALWAYS, &[Launch]),
    ("KERNARG_SIZE", Field::KERNARG_SIZE, Flip, ALWAYS, LIES),
    ("TG_SPLIT", Field::TG_SPLIT, Flip, ALWAYS, LIES),
    ("ACCUM_OFFSET, none", Field::ACCUM_OFFSET, To(0), |s, _| s.target.unified_accum(), &[Allocation]),
    ("SHARED_VGPR_COUNT", SHARED_VGPRS, Flip, |s, _| !s.target.unified_accum(), LIES),
    ("IMAGE_OP", Field::IMAGE_OP, Flip, ALWAYS, LIES),
    (
        "GRANULATED_WORKITEM_VGPR_COUNT, less",
        Field::GRANULATED_WORKITEM_VGPR_COUNT,
        Less,
        ALWAYS,
        &[Allocation, Metadata],
    ),
    // Where AGPRs come out of the same allocation, it may have room between.
    (
        "GRANULATED_WORKITEM_VGPR_COUNT, more",
        Field::GRANULATED_WORKITEM_VGPR_COUNT,
        More,
        |s, _| !s.target.unified_accum(),
        &[Metadata],
    ),
    // Registers for a wave of each SIMD, and workgroups have more waves.
    (
        "GRANULATED_WORKITEM_VGPR_COUNT, most",
        Field::GRANULATED_WORKITEM_VGPR_COUNT,
        To(63),
        |s, _| !s.target.has_wgp_mode() && s.target.name() != "gfx1250" && !s.name.starts_with("preloaded"),
        &[Launch],
    ),
    ("GRANULATED_WAVEFRONT_SGPR_COUNT, less", SGPRS, Less, |s, _| !s.target.all_sgprs(), &[Allocation, Metadata]),
    ("GRANULATED_WAVEFRONT_SGPR_COUNT, more", SGPRS, More, |s, _| !s.target.all_sgprs(), &[Metadata]),
    ("GRANULATED_WAVEFRONT_SGPR_COUNT, reserved", SGPRS, Flip, |s, _| s.target.all_sgprs(), LIES),
    ("PRIORITY", Field::PRIORITY, Flip, ALWAYS, LIES),
    ("FLOAT_ROUND_MODE_32", Field::FLOAT_ROUND_MODE_32, Flip, ALWAYS, LIES),
    ("FLOAT_ROUND_MODE_16_64", Field::FLOAT_ROUND_MODE_16_64, Flip, ALWAYS, LIES),
    ("FLOAT_DENORM_MODE_32", Field::FLOAT_DENORM_MODE_32, Flip, ALWAYS, LIES),
    ("FLOAT_DENORM_MODE_16_64", Field::FLOAT_DENORM_MODE_16_64, Flip, ALWAYS, LIES),
    ("PRIV", Field::PRIV, Flip, ALWAYS, LIES),
    ("ENABLE_DX10_CLAMP", Field::ENABLE_DX10_CLAMP, Flip, ALWAYS, LIES),
    ("DEBUG_MODE", Field::DEBUG_MODE, Flip, ALWAYS, LIES),
    ("ENABLE_IEEE_MODE", Field::ENABLE_IEEE_MODE, Flip, ALWAYS, LIES),
    ("BULKY", Field::BULKY, Flip, ALWAYS, LIES),
    ("CDBG_USER", Field::CDBG_USER, Flip, ALWAYS, LIES),
    ("FP16_OVFL", Field::FP16_OVFL, Flip, ALWAYS, LIES),
    ("WGP_MODE", Field::WGP_MODE, Flip, ALWAYS, LIES),
    ("MEM_ORDERED", Field::MEM_ORDERED, Flip, ALWAYS, LIES),
    ("FWD_PROGRESS", Field::FWD_PROGRESS, Flip, ALWAYS, LIES),
    ("ENABLE_PRIVATE_SEGMENT", Field::ENABLE_PRIVATE_SEGMENT, Flip, ALWAYS, &[Scratch]),
    ("USER_SGPR_COUNT, less", Field::USER_SGPR_COUNT, Less, ALWAYS, SHIFTS),
    // Nothing lies after them where workgroup ids are elsewhere.
    ("USER_SGPR_COUNT, more", Field::USER_SGPR_COUNT, More, |s, _| !s.target.architected_workgroup_ids(), SHIFTS),
    ("ENABLE_TRAP_HANDLER", Field::ENABLE_TRAP_HANDLER, Flip, ALWAYS, LIES),
    ("ENABLE_WORKGROUP_ID_X", Field::ENABLE_WORKGROUP_ID_X, Flip, ALWAYS, SHIFTS),
    ("ENABLE_WORKGROUP_ID_Y", Field::ENABLE_WORKGROUP_ID_Y, Flip, ALWAYS, SHIFTS),
    ("ENABLE_WORKGROUP_ID_Z", Field::ENABLE_WORKGROUP_ID_Z, Flip, ALWAYS, SHIFTS),
    ("ENABLE_WORKGROUP_INFO", Field::ENABLE_WORKGROUP_INFO, Flip, ALWAYS, LIES),
    ("ENABLE_VGPR_WORKITEM_ID", Field::ENABLE_VGPR_WORKITEM_ID, To(3), ALWAYS, LIES),
    ("GRANULATED_LDS_SIZE", Field::GRANULATED_LDS_SIZE, Flip, ALWAYS, LIES),
    ("ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER", Field::ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, Flip, ALWAYS, LIES),
    ("ENABLE_SGPR_DISPATCH_PTR", Field::ENABLE_SGPR_DISPATCH_PTR, Flip, ALWAYS, SHIFTS),
    ("ENABLE_SGPR_QUEUE_PTR", Field::ENABLE_SGPR_QUEUE_PTR, Flip, ALWAYS, LIES),
    ("ENABLE_SGPR_KERNARG_SEGMENT_PTR", Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR, Flip, ALWAYS, LIES),
    ("ENABLE_SGPR_DISPATCH_ID", Field::ENABLE_SGPR_DISPATCH_ID, Flip, ALWAYS, LIES),
    // Where it is asked for it belongs to scratch memory.
    ("ENABLE_SGPR_FLAT_SCRATCH_INIT", Field::ENABLE_SGPR_FLAT_SCRATCH_INIT, Flip, ALWAYS, &[Descriptor, Scratch]),
    ("ENABLE_SGPR_PRIVATE_SEGMENT_SIZE", Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE, Flip, ALWAYS, LIES),
    ("ENABLE_WAVEFRONT_SIZE32", Field::ENABLE_WAVEFRONT_SIZE32, Flip, ALWAYS, LIES),
    ("USES_DYNAMIC_STACK", Field::USES_DYNAMIC_STACK, Flip, ALWAYS, LIES),
    ("KERNARG_PRELOAD_LENGTH", Field::KERNARG_PRELOAD_LENGTH, Flip, ALWAYS, LIES),
    ("KERNARG_PRELOAD_LENGTH, stale", Field::KERNARG_PRELOAD_LENGTH, Stale, ALWAYS, LIES),
    // Without a length it means nothing where there was one.
    (
        "KERNARG_PRELOAD_OFFSET",
        Field::KERNARG_PRELOAD_OFFSET,
        Flip,
        |_, old| old.get(Field::KERNARG_PRELOAD_LENGTH) == 0,
        LIES,
    ),
];

/// A number of a kernel's metadata with what it is damaged to, where, and the rules that this breaks.
pub type NumberKind = (&'static str, &'static str, Change, Applies, &'static [Rule]);

/// Numbers of a kernel's metadata.
pub const NUMBERS: &[NumberKind] = &[
    (".vgpr_count, stale", ".vgpr_count", Stale, ALWAYS, &[Metadata]),
    (".vgpr_count, more", ".vgpr_count", More, ALWAYS, &[Metadata]),
    (".sgpr_count, stale", ".sgpr_count", Stale, ALWAYS, &[Metadata]),
    // Where every wave has all of them, nobody asks for more.
    (".sgpr_count, more", ".sgpr_count", More, |s, _| !s.target.all_sgprs(), &[Metadata]),
    (".group_segment_fixed_size, stale", ".group_segment_fixed_size", Stale, ALWAYS, &[Lds]),
    (".group_segment_fixed_size", ".group_segment_fixed_size", Flip, ALWAYS, &[Lds]),
    (".private_segment_fixed_size", ".private_segment_fixed_size", Flip, ALWAYS, &[Scratch]),
    (".private_segment_fixed_size, stale", ".private_segment_fixed_size", Stale, ALWAYS, &[Scratch]),
    (".kernarg_segment_size", ".kernarg_segment_size", Flip, ALWAYS, &[Metadata]),
    (".kernarg_segment_align", ".kernarg_segment_align", Flip, ALWAYS, &[Metadata]),
    (".wavefront_size", ".wavefront_size", Flip, ALWAYS, &[Metadata]),
    (".max_flat_workgroup_size", ".max_flat_workgroup_size", Less, ALWAYS, &[Metadata]),
    (".sgpr_spill_count", ".sgpr_spill_count", Flip, ALWAYS, &[Metadata]),
    (".vgpr_spill_count", ".vgpr_spill_count", Flip, ALWAYS, &[Metadata]),
];

/// More than most kernels have, and short in MessagePack.
const MANY: u32 = 127;

fn changed(change: Change, now: u32, original: u32) -> Option<u32> {
    match change {
        Flip => Some(now ^ 1),
        To(value) => Some(value),
        Less => now.checked_sub(1),
        More => Some(now + 1),
        Stale => Some(original),
    }
}

/// The instrumented kernels with what they were.
fn kernels<'a>(
    subject: &'a Subject,
    now: &'a CodeObject<'_>,
    original: &'a CodeObject<'_>,
) -> impl Iterator<Item = (&'a Kernel, &'a Kernel)> {
    let both = |name: &str| Some((now.kernel(name)?, original.kernel(name)?));
    subject.map.kernels.iter().filter_map(move |entry| both(&entry.name))
}

/// A damaged field of the first instrumented kernel in which it makes a difference.
pub fn field(subject: &Subject, (_, field, change, applies, _): &FieldKind) -> Vec<Harm> {
    let (object, original) = (subject.object(), CodeObject::parse(&subject.original).expect("an object"));
    let damaged = kernels(subject, &object, &original).find_map(|(now, old)| {
        let mut damaged = now.descriptor;
        let value = changed(*change, damaged.get(*field), old.descriptor.get(*field))
            .filter(|_| applies(subject, &old.descriptor))?;
        damaged.set(*field, value).ok().filter(|()| damaged != now.descriptor)?;
        Some((now, damaged))
    });
    let harm = |(kernel, damaged): (&Kernel, KernelDescriptor)| Harm {
        bytes: subject.patched(&[(kernel.descriptor_address, damaged.bytes().to_vec())]),
        kernel: Some(kernel.name.clone()),
    };
    damaged.map(harm).into_iter().collect()
}

/// A damaged number of the first instrumented kernel in which it makes a difference.
pub fn number(subject: &Subject, (_, key, change, applies, _): &NumberKind) -> Vec<Harm> {
    let (object, original) = (subject.object(), CodeObject::parse(&subject.original).expect("an object"));
    let registers = key.ends_with("gpr_count");
    let harm = kernels(subject, &object, &original).filter(|(_, old)| applies(subject, &old.descriptor)).find_map(
        |(now, old)| {
            let (bytes, was) = (place(&subject.rewritten, &now.name, key)?, place(&subject.original, &old.name, key)?);
            let value = match change {
                More if registers => MANY,
                _ => changed(*change, number_at(&subject.rewritten, bytes)?, number_at(&subject.original, was)?)?,
            };
            let mut damaged = subject.rewritten.clone();
            set_number(&mut damaged, bytes, value).filter(|()| damaged != subject.rewritten)?;
            Some(Harm { bytes: damaged, kernel: None })
        },
    );
    harm.into_iter().collect()
}

/// Where in a file the value of a kernel's key begins: kernels are in the order of the metadata, each with one such
/// key.
fn place(file: &[u8], kernel: &str, key: &str) -> Option<usize> {
    let object = CodeObject::parse(file).ok()?;
    let index = object.metadata()?.kernels.iter().position(|entry| entry.symbol == format!("{kernel}.kd"))?;
    let note = object.elf().section(".note")?;
    let range = note.offset as usize..(note.offset + note.size) as usize;
    let needle: Vec<u8> = [0xa0 | key.len() as u8].into_iter().chain(key.bytes()).collect();
    let mut places = range.clone().filter(|at| file[*at..range.end].starts_with(&needle));
    places.nth(index).map(|at| at + needle.len())
}

/// MessagePack's unsigned numbers.
fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    match bytes[at] {
        small @ 0..=0x7f => Some(small.into()),
        0xcc => Some(bytes[at + 1].into()),
        0xcd => Some(u16::from_be_bytes(bytes[at + 1..at + 3].try_into().ok()?).into()),
        0xce => Some(u32::from_be_bytes(bytes[at + 1..at + 5].try_into().ok()?)),
        _ => None,
    }
}

/// Writes a number in the form that is there; none if it does not fit.
fn set_number(bytes: &mut [u8], at: usize, value: u32) -> Option<()> {
    match bytes[at] {
        0..=0x7f => bytes[at] = u8::try_from(value).ok().filter(|value| *value < 0x80)?,
        0xcc => bytes[at + 1] = u8::try_from(value).ok()?,
        0xcd => bytes[at + 1..at + 3].copy_from_slice(&u16::try_from(value).ok()?.to_be_bytes()),
        0xce => bytes[at + 1..at + 5].copy_from_slice(&value.to_be_bytes()),
        _ => return None,
    }
    Some(())
}
