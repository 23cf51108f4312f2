//! What hardware and firmware demand of a descriptor and a packet (`docs/reference/hardware-demands.md`): strict mode
//! refuses a dispatch for each demand that is not met, and nothing where all are.

use rewriter_tests::kernels::build::{self, Variant};
use wavetap::emulator::{Device, Dispatch, FaultKind, Options};
use wavetap::isa::Target;

/// Bytes of the descriptor's parts.
const RSRC3: usize = 44;
const RSRC1: usize = 48;
const RSRC2: usize = 52;
const PROPERTIES: usize = 56;

/// A bit that is set: its byte, its number there, the targets, and what the refusal says.
type Damage = (usize, usize, &'static [&'static str], &'static str);

const EVERY: &[&str] = &["gfx803", "gfx906", "gfx90a", "gfx1030", "gfx1100", "gfx1200"];

const DAMAGES: &[Damage] = &[
    (12, 3, EVERY, "reserved bytes 12 to 15"),
    (24, 0, EVERY, "reserved bytes 24 to 43"),
    (43, 7, EVERY, "reserved bytes 24 to 43"),
    (63, 7, EVERY, "reserved bytes 60 to 63"),
    (RSRC1, 10, EVERY, "PRIORITY"),
    (RSRC1, 20, EVERY, "PRIV"),
    (RSRC1, 22, EVERY, "DEBUG_MODE"),
    (RSRC1, 24, EVERY, "BULKY"),
    (RSRC1, 25, EVERY, "CDBG_USER"),
    (RSRC1, 28, EVERY, "bit 28"),
    (RSRC1, 26, &["gfx803"], "FP16_OVFL"),
    (RSRC1, 27, EVERY, "bit 27"),
    (RSRC1, 29, &["gfx803", "gfx906", "gfx90a"], "WGP_MODE"),
    (RSRC1, 31, &["gfx803", "gfx906", "gfx90a"], "FWD_PROGRESS"),
    (RSRC2, 6, &["gfx803", "gfx906", "gfx90a", "gfx1030", "gfx1100"], "ENABLE_TRAP_HANDLER"),
    (RSRC2, 13, EVERY, "ENABLE_EXCEPTION_ADDRESS_WATCH"),
    (RSRC2, 14, EVERY, "ENABLE_EXCEPTION_MEMORY"),
    (RSRC2, 15, EVERY, "GRANULATED_LDS_SIZE"),
    (RSRC2, 23, EVERY, "GRANULATED_LDS_SIZE"),
    (RSRC2, 31, EVERY, "bit 31"),
    (RSRC3, 0, &["gfx803", "gfx906", "gfx1200"], "COMPUTE_PGM_RSRC3"),
    (RSRC3, 6, &["gfx90a", "gfx1030"], "COMPUTE_PGM_RSRC3"),
    (RSRC3, 17, &["gfx90a", "gfx1030", "gfx1100"], "COMPUTE_PGM_RSRC3"),
    (PROPERTIES, 7, EVERY, "bits 7 to 9"),
    (PROPERTIES, 12, EVERY, "bits 12 to 15"),
    (PROPERTIES + 2, 0, &["gfx803", "gfx906", "gfx1030", "gfx1100", "gfx1200"], "KERNARG_PRELOAD_SPEC"),
];

/// A kernel that ends at once.
fn object(target: Target) -> Vec<u8> {
    let accum = if target.unified_accum() { "\t\t.amdhsa_accum_offset 8\n" } else { "" };
    let text = format!(
        "	.text
	.globl k
	.p2align 8
	.type k,@function
k:
	s_endpgm
	.size k, . - k
	.fill 96, 4, {}
	.rodata
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size 256
		.amdhsa_private_segment_fixed_size 16
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 8
		.amdhsa_next_free_vgpr 8
		.amdhsa_next_free_sgpr 8
{accum}	.end_amdhsa_kernel
",
        // s_code_end, and s_nop where there is none.
        if target.generation() >= 10 { "0xbf9f0000" } else { "0xbf800000" }
    );
    build::assembled(&text, Variant { target, level: "O2", version: 5 }).expect("it assembles")
}

/// Why a dispatch is refused, if it is: with what `damage` makes of the descriptor, and of the packet.
fn refusal(object: &[u8], target: Target, strict: bool, damage: impl Fn(&mut [u8; 64], &mut Dispatch)) -> String {
    let target = Target::by_name(target.name()).expect("a target");
    let mut device = Device::new(target, Options { strict, ..Options::default() });
    let loaded = device.load(object).expect("it is loaded");
    let kernel_object = loaded.kernel("k").expect("the kernel");
    let kernarg_address = device.malloc(64, 64).expect("room");
    let mut dispatch = Dispatch {
        kernel_object,
        grid: [64, 1, 1],
        workgroup: [64, 1, 1],
        private_segment_size: 16,
        group_segment_size: 256,
        kernarg_address,
        dispatch_id: 0,
    };
    let mut descriptor = [0; 64];
    device.read(kernel_object, &mut descriptor).expect("it is there");
    damage(&mut descriptor, &mut dispatch);
    device.write(kernel_object, &descriptor).expect("it is there");
    match device.dispatch(&dispatch) {
        Ok(_) => String::new(),
        Err(fault) if matches!(fault.kind, FaultKind::Setup { .. }) => fault.kind.to_string(),
        Err(fault) => panic!("{}: {fault}", target.name()),
    }
}

fn targets() -> impl Iterator<Item = (Target, Vec<u8>)> {
    EVERY.iter().map(|name| {
        let target = Target::by_name(name).expect("a target");
        (target, object(target))
    })
}

#[test]
fn bits_that_have_to_be_0_are() {
    for (target, object) in targets() {
        assert_eq!(refusal(&object, target, true, |_, _| ()), "", "{}: as it was assembled", target.name());
        for (byte, bit, _, what) in DAMAGES.iter().filter(|(_, _, targets, _)| targets.contains(&target.name())) {
            let set = |descriptor: &mut [u8; 64], _: &mut Dispatch| descriptor[byte + bit / 8] |= 1 << (bit % 8);
            let said = refusal(&object, target, true, set);
            assert!(said.contains(what) && said.contains("has to be 0"), "{} {what}: {said:?}", target.name());
        }
    }
}

#[test]
fn fields_say_what_there_is() {
    for (target, object) in targets() {
        let word = |descriptor: &mut [u8; 64], at: usize, clear: u32, set: u32| {
            let bytes: [u8; 4] = descriptor[at..at + 4].try_into().expect("four");
            let value = u32::from_le_bytes(bytes) & !clear | set;
            descriptor[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        let name = target.name();
        let said = refusal(&object, target, true, |descriptor, _| word(descriptor, RSRC2, 0x3e, 17 << 1));
        assert!(said.contains("17 user SGPRs, there are 16"), "{name}: {said}");
        let said = refusal(&object, target, true, |descriptor, _| word(descriptor, RSRC2, 0, 3 << 11));
        assert!(said.contains("ENABLE_VGPR_WORKITEM_ID is 3"), "{name}: {said}");
        if target.unified_accum() {
            let said = refusal(&object, target, true, |descriptor, _| word(descriptor, RSRC3, 0x3f, 9));
            assert!(said.contains("ACCUM_OFFSET is 40 of 8"), "{name}: {said}");
        }
        // Waves of 32 count registers in eights: 40 of them are 320.
        if target.vgpr_encoded_granule() == 8 && !target.unified_accum() {
            let said = refusal(&object, target, true, |descriptor, _| word(descriptor, RSRC1, 0x3f, 39));
            assert!(said.contains("320 vector registers"), "{name}: {said}");
        }
        if target.prefetch_size_bits() > 0 {
            let said = refusal(&object, target, true, |descriptor, _| word(descriptor, RSRC3, 0, 0x3f << 4));
            assert!(said.contains("8064 bytes of code are prefetched"), "{name}: {said}");
        }
    }
}

#[test]
fn packets_give_what_kernels_need() {
    for (target, object) in targets() {
        let name = target.name();
        let strict = |change: fn(&mut Dispatch)| refusal(&object, target, true, |_, dispatch| change(dispatch));
        let said = strict(|dispatch| dispatch.group_segment_size = 252);
        assert!(said.contains("252 bytes of LDS, the kernel has 256"), "{name}: {said}");
        let said = strict(|dispatch| dispatch.private_segment_size = 12);
        assert!(said.contains("12 bytes of scratch, the kernel has 16"), "{name}: {said}");
        let said = strict(|dispatch| dispatch.kernarg_address += 8);
        assert!(said.contains("not aligned to 16 bytes"), "{name}: {said}");
        // 4 MiB for each lane.
        let said = strict(|dispatch| dispatch.private_segment_size = 4 << 20);
        assert!(said.contains("bytes of scratch for a wave"), "{name}: {said}");
        let said = strict(|dispatch| dispatch.workgroup = [64, 17, 1]);
        assert!(said.contains("1 to 1024 work-items"), "{name}: {said}");
        let said = strict(|dispatch| dispatch.kernel_object += 32);
        assert!(said.contains("not aligned to 64 bytes"), "{name}: {said}");
        assert_eq!(strict(|dispatch| dispatch.group_segment_size = 1024), "", "{name}: dynamic LDS");
        // Outside strict mode it runs as a GPU would.
        let lenient = refusal(&object, target, false, |_, dispatch| dispatch.kernarg_address += 8);
        assert_eq!(lenient, "", "{name}");
    }
}
