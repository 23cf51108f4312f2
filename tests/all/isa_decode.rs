//! Decoding: what instructions read and write, and that no input makes it fail otherwise than with an error.

use crate::random::Random;
use wavetap::error::Kind;
use wavetap::isa::{
    self, Access, Branch, Coding, Condition, Counter, Counters, Flags, Implicit, Inst, Memory, Reg, RegFile, Role,
    Target, Value, WaitCount,
};

fn target(name: &str) -> Target {
    Target::by_name(name).unwrap()
}

/// An instruction from its dwords.
fn inst(name: &str, dwords: &[u32]) -> Inst {
    let bytes: Vec<u8> = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
    let inst = isa::decode(target(name), &bytes).unwrap();
    assert_eq!(usize::from(inst.size), bytes.len());
    assert_eq!(isa::encode(target(name), &inst).unwrap(), bytes);
    inst
}

fn sorted(regs: impl Iterator<Item = Reg>) -> Vec<Reg> {
    let mut regs: Vec<Reg> = regs.collect();
    regs.sort();
    regs
}

fn s(first: u16, dwords: u8) -> Reg {
    Reg::scalar(first, dwords)
}

fn v(first: u16, dwords: u8) -> Reg {
    Reg::vector(first, dwords)
}

#[test]
fn random_words_decode_to_themselves_or_are_malformed() {
    let mut random = Random::new(1);
    // Nothing of what was there before stays.
    let mut reused = Inst::blank();
    for target in Target::all().filter(|target| target.has_instructions()) {
        let mut decoded = 0;
        for _ in 0..100_000 {
            let word = [random.next().to_le_bytes(), random.next().to_le_bytes()].concat();
            let in_place = isa::decode_into(&mut reused, target, &word);
            match isa::decode(target, &word) {
                Ok(inst) => {
                    assert_eq!((in_place, &reused), (Ok(()), &inst));
                    decoded += 1;
                    let size = usize::from(inst.size);
                    assert_eq!(isa::encode(target, &inst).unwrap(), word[..size], "{}", inst.variant.mnemonic);
                    assert_eq!(isa::decode(target, &word[..size]).unwrap(), inst);
                    assert_eq!(isa::decode(target, &word[..size - 1]).unwrap_err().kind(), Kind::Malformed);
                    // Of a pair of operations the second one's name comes later.
                    let first = inst.variant.mnemonic.split("::").next().unwrap();
                    assert!(isa::print(target, &inst).starts_with(first));
                    for reg in inst.reads().chain(inst.writes()) {
                        let limit = match reg.file {
                            RegFile::Scalar => 301,
                            // A run begins below v256.
                            RegFile::Vector if target.has_vgpr_msb() => 256 + u16::from(reg.dwords) - 1,
                            _ => 256,
                        };
                        assert!(
                            reg.dwords > 0 && reg.first + u16::from(reg.dwords) <= limit,
                            "{reg:?} of {}",
                            inst.variant.mnemonic
                        );
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Malformed);
                    assert_eq!(in_place, Err(error));
                }
            }
        }
        assert!(decoded > 10_000, "only {decoded} random words of {} decode", target.name());
    }
}

#[test]
fn changed_bits_of_real_rows_never_panic() {
    let mut random = Random::new(7);
    for target in Target::all().filter(|target| target.has_instructions()) {
        for variant in isa::variants(target) {
            for _ in 0..20 {
                let word = variant.matches ^ u128::from(random.next() & random.next() & random.next());
                let bytes = [&word.to_le_bytes()[..], &random.next().to_le_bytes()].concat();
                for length in 0..12 {
                    if let Ok(inst) = isa::decode(target, &bytes[..length]) {
                        assert_eq!(isa::encode(target, &inst).unwrap(), bytes[..usize::from(inst.size)]);
                    }
                }
            }
        }
    }
}

#[test]
fn saveexec_reads_and_writes_exec_and_scc() {
    // s_and_saveexec_b64 s[2:3], vcc
    let inst = inst("gfx90a", &[0xbe82_206a]);
    assert_eq!((inst.name(), inst.size), ("s_and_saveexec_b64", 4));
    assert_eq!(sorted(inst.reads()), [Reg::VCC, Reg::EXEC]);
    assert_eq!(sorted(inst.writes()), [s(2, 2), Reg::EXEC, Reg::SCC]);
}

#[test]
fn vector_instructions_read_exec_and_what_is_tied() {
    // v_mac_f32_e32 v0, v1, v2: the destination is also the addend.
    let mac = inst("gfx906", &[0x2c00_0501]);
    assert_eq!(mac.name(), "v_mac_f32");
    assert_eq!(sorted(mac.reads()), [Reg::EXEC, s(300, 1), v(0, 1), v(1, 1), v(2, 1)]);
    assert_eq!(sorted(mac.writes()), [v(0, 1)]);
    // v_cndmask_b32_e32 v0, v1, v2, vcc
    assert!(inst("gfx906", &[0x0000_0501]).variant.implicit_reads.contains(Implicit::VCC));
    // v_addc_co_u32_e32 v0, vcc, v1, v2, vcc
    let carry = inst("gfx906", &[0x3800_0501]);
    assert!(
        carry.variant.implicit_reads.contains(Implicit::VCC) && carry.variant.implicit_writes.contains(Implicit::VCC)
    );
    // v_cmpx_eq_u32_e64 s[4:5], v1, v2 writes EXEC beside its destination.
    let compare = inst("gfx90a", &[0xd0da_0004, 0x0002_0501]);
    assert_eq!((compare.name(), sorted(compare.writes())), ("v_cmpx_eq_u32", vec![s(4, 2), Reg::EXEC]));
    // v_readlane_b32 s0, v1, 0 works whatever EXEC is; v_readfirstlane_b32 looks at it.
    assert!(!inst("gfx90a", &[0xd289_0000, 0x0001_0101]).variant.implicit_reads.contains(Implicit::EXEC));
    assert!(inst("gfx90a", &[0x7e00_0501]).variant.implicit_reads.contains(Implicit::EXEC));
}

#[test]
fn a_part_that_stays_counts_as_read() {
    // v_writelane_b32 v0, s1, 2
    assert_eq!(inst("gfx90a", &[0xd28a_0000, 0x0001_0401]).operands[0].access, Access::ReadWrite);
    // v_mov_b32_dpp v0, v1 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf: lanes without a source keep the old value.
    assert_eq!(inst("gfx90a", &[0x7e00_02fa, 0xff00_0001]).operands[0].access, Access::ReadWrite);
    // v_mov_b32_sdwa v0, v1 dst_sel:BYTE_0, with the other bytes padded and preserved.
    assert_eq!(inst("gfx90a", &[0x7e00_02f9, 0x0006_0001]).operands[0].access, Access::Write);
    assert_eq!(inst("gfx90a", &[0x7e00_02f9, 0x0006_1001]).operands[0].access, Access::ReadWrite);
    // ds_read_u16_d16 v0, v1
    let half = inst("gfx90a", &[0xd8b4_0000, 0x0000_0001]);
    assert!(half.variant.flags.contains(Flags::D16) && half.operands[0].access == Access::ReadWrite);
}

#[test]
fn memory_instructions_tell_what_they_access_and_count() {
    // global_load_dwordx2 v[0:1], v2, s[4:5] offset:16 glc
    let load = inst("gfx90a", &[0xdc55_8010, 0x0004_0002]);
    assert_eq!(
        (load.variant.memory, load.variant.memory_bytes, load.variant.counters),
        (Memory::Global, 8, Counters::VM)
    );
    assert_eq!((load.modifiers.offset, load.modifiers.glc, load.operands[0].dwords), (16, true, 2));
    assert_eq!(isa::print(target("gfx90a"), &load), "global_load_dwordx2 v[0:1], v2, s[4:5] offset:16 glc");
    // The same bits on gfx942, where the bit has another name.
    assert_eq!(isa::print(target("gfx942"), &load), "global_load_dwordx2 v[0:1], v2, s[4:5] offset:16 sc0");
    // flat_load_dword v0, v[2:3] counts in both.
    assert_eq!(inst("gfx906", &[0xdc50_0000, 0x0000_0002]).variant.counters, Counters::VM | Counters::LGKM);
    // s_load_dwordx16 s[16:31], s[4:5], 0x40
    let scalar = inst("gfx906", &[0xc012_0402, 0x0000_0040]);
    assert_eq!((scalar.operands[0].value, scalar.modifiers.offset), (Value::Reg(s(16, 16)), 0x40));
    // An atomic that returns: buffer_atomic_add v0, off, s[4:7], 0 glc
    let atomic = inst("gfx906", &[0xe108_4000, 0x8001_0000]);
    assert!(
        atomic.variant.flags.contains(Flags::ATOMIC | Flags::RETURNS) && atomic.operands[0].access == Access::ReadWrite
    );
}

#[test]
fn branches_tell_their_condition_and_displacement() {
    let branch = inst("gfx908", &[0xbf88_fff0]);
    assert_eq!(branch.variant.branch, Branch::Conditional(Condition::ExecZ));
    assert_eq!(branch.branch_displacement(), Some(-16));
    assert_eq!(inst("gfx908", &[0xbe80_1d1e]).variant.branch, Branch::IndirectJump);
    assert_eq!(inst("gfx908", &[0xbf81_0000]).variant.branch, Branch::End);
}

#[test]
fn waits_are_read_and_written() {
    let wait = inst("gfx906", &[0xbf8c_0170]);
    let counts = WaitCount::default().with(Counter::Vm, 0).with(Counter::Lgkm, 1);
    assert_eq!(isa::wait_count(target("gfx906"), &wait), Some(counts));
    assert_eq!(isa::wait_immediate(target("gfx906"), isa::Opcode::S_WAITCNT, counts), Some(0x0170));
    assert_eq!(isa::print(target("gfx906"), &wait), "s_waitcnt vmcnt(0) lgkmcnt(1)");
    assert_eq!(isa::wait_count(target("gfx906"), &inst("gfx906", &[0xbf81_0000])), None);
}

#[test]
fn words_of_other_targets_are_malformed() {
    // v_mfma_f32_32x32x1_2b_f32 is no instruction of gfx906.
    let mfma = [0xd3c0_0000u32, 0x0402_0300].map(u32::to_le_bytes).concat();
    assert_eq!(isa::decode(target("gfx906"), &mfma).unwrap_err().kind(), Kind::Malformed);
    assert_eq!(isa::decode(target("gfx906"), &[]).unwrap_err().kind(), Kind::Malformed);
    // A literal in VOP3 came with gfx10.
    let literal = [0xd134_0000u32, 0x0002_04ff, 7].map(u32::to_le_bytes).concat();
    assert_eq!(isa::decode(target("gfx90a"), &literal).unwrap_err().kind(), Kind::Malformed);
}

#[test]
fn occupancy_follows_from_registers_and_lds() {
    let (old, new) = (target("gfx906"), target("gfx90a"));
    assert_eq!([24, 25, 128, 129, 256].map(|vgprs| old.waves_by_vgprs(vgprs)), [10, 9, 2, 1, 1]);
    assert_eq!([64, 65, 128, 256, 512].map(|vgprs| new.waves_by_vgprs(vgprs)), [8, 7, 4, 2, 1]);
    assert_eq!([80, 81, 100, 102, 112, 113].map(|sgprs| old.waves_by_sgprs(sgprs)), [10, 9, 8, 7, 7, 0]);
    // 16 KB per workgroup of four waves: four workgroups in 64 KB, sixteen waves on four SIMDs.
    assert_eq!(old.waves_by_lds(16384, 4, false), 4);
    assert_eq!(old.waves_by_lds(65537, 4, false), 0);
}

#[test]
fn every_row_makes_sense() {
    for target in Target::all().filter(|target| target.has_instructions()) {
        let mut rows = 0;
        for variant in isa::variants(target) {
            rows += 1;
            let what = format!("{} on {}", variant.mnemonic, target.name());
            assert!(variant.matches & !variant.mask == 0, "{what}: fixed bits outside the mask");
            // The fields of a dword after are counted by themselves.
            let (mut taken, mut behind) = (variant.mask, 0);
            for spec in variant.operands {
                let taken = if spec.kind.coding == Coding::VectorBehind { &mut behind } else { &mut taken };
                assert_eq!(spec.bits.mask() & *taken, 0, "{what}: {:?} overlaps", spec.role);
                *taken |= spec.bits.mask();
            }
            for (modifier, bits) in &variant.layout.modifiers {
                assert_eq!(bits.mask() & taken & !variant.mask, 0, "{what}: {modifier:?} overlaps");
                taken |= bits.mask() & !variant.mask;
            }
            // Lane accesses name their lane and tensors are copied once for a wave, so it does not matter which lanes
            // are active.
            let any_lane = ["v_readlane_b32", "v_writelane_b32", "tensor_load_to_lds", "tensor_store_from_lds"]
                .contains(&variant.name);
            let vector = variant.flags.contains(Flags::VALU)
                || !matches!(variant.memory, Memory::None | Memory::Scalar | Memory::Message);
            assert!(
                !vector || any_lane || variant.implicit_reads.contains(Implicit::EXEC),
                "{what}: does not read EXEC"
            );
            let latency = target.latency(variant.latency);
            assert!(latency.min <= latency.typical && latency.typical <= latency.max, "{what}: {latency:?}");
            assert!(
                variant.operands.iter().filter(|spec| spec.role == Role::Vdst).count() <= 1,
                "{what}: two destinations"
            );
        }
        assert!(rows > 1500, "{} has {rows} rows", target.name());
    }
}

/// With high bits of register numbers elsewhere, a run may begin below v256 and end above (the texts are LLVM 22's).
#[test]
fn runs_of_vector_registers_across_v256() {
    let cases: &[(&[u32], Role, Reg, &str)] = &[
        (&[0xdbf0_1280, 0xfe00_0083], Role::Vdst, v(254, 4), "ds_load_tr16_b128 v[254:257], v131 offset:4736"),
        (
            &[0xcc60_0068, 0x1da3_55fa],
            Role::Src0,
            v(250, 8),
            "v_wmma_f32_16x16x32_f16 v[104:111], v[250:257], v[170:177], v[104:111]",
        ),
        (&[0xee05_c000, 0x0000_00fe, 0], Role::Vdst, v(254, 4), "global_load_b128 v[254:257], v0, s[0:1]"),
    ];
    for target in ["gfx1250", "gfx1251"] {
        for (dwords, role, reg, text) in cases {
            let inst = inst(target, dwords);
            let operand =
                inst.operands.iter().find(|operand| operand.reg() == Some(*reg)).unwrap_or_else(|| panic!("{inst:?}"));
            assert!(operand.role == *role || *role == Role::Vdst, "{:?}", operand.role);
            assert_eq!(isa::print(self::target(target), &inst), *text);
        }
        // Runs begin at even registers, here too.
        for dwords in [[0xdbf0_1280_u32, 0xfd00_0083], [0xdbf0_1280, 0xff00_0083]] {
            let bytes: Vec<u8> = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
            assert_eq!(isa::decode(self::target(target), &bytes).unwrap_err().kind(), Kind::Malformed);
        }
    }
    // ds_load_b128 on a target with 256 registers.
    let bytes: Vec<u8> = [0xdbfc_0000_u32, 0xfe00_0000].iter().flat_map(|dword| dword.to_le_bytes()).collect();
    assert_eq!(isa::decode(target("gfx1200"), &bytes).unwrap_err().kind(), Kind::Malformed);
}

/// The source that loading scales does not have is v0 in what LLVM 22 makes, an inline 0 in what LLVM 24 makes.
#[test]
fn scales_of_matrices_with_either_unused_source() {
    let with = |first: [u32; 2], unused: u32| [first[0], first[1] & !(0x1ff << 18) | unused << 18];
    for (first, second, text) in [
        (
            [0xcc35_0000_u32, 0x0202_773c],
            Some([0xcc33_0020_u32, 0x0482_0110]),
            "v_wmma_scale_f32_16x16x128_f8f6f4 v[32:39], v[16:31], v[0:15], v[32:39], v60, v59",
        ),
        ([0xcc35_0000, 0x0202_0501], None, "v_wmma_ld_scale_paired_b32 v1, v2"),
        ([0xcc3a_0000, 0x0202_0902], None, "v_wmma_ld_scale16_paired_b64 v[2:3], v[4:5]"),
    ] {
        for unused in [0x80, 0x100] {
            let dwords: Vec<u32> = with(first, unused).into_iter().chain(second.into_iter().flatten()).collect();
            let inst = inst("gfx1250", &dwords);
            assert_eq!(isa::print(target("gfx1250"), &inst), text);
        }
        for other in [0, 0x81, 0x101] {
            let dwords: Vec<u32> = with(first, other).into_iter().chain(second.into_iter().flatten()).collect();
            let bytes: Vec<u8> = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
            assert_eq!(isa::decode(target("gfx1250"), &bytes).unwrap_err().kind(), Kind::Malformed, "{other:#x}");
        }
    }
}
