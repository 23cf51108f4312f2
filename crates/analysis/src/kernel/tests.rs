//! Tests of decoding by reachability and of the resolution of indirect calls and jumps.

use super::assembly::{Listing, branch_scc1, end, jump, op, setpc, swappc};
use super::{Body, BodyKind, CallTarget, Flow, Image, PreservedRegs};
use wavetap_amdgpu::{Branch, Implicit, Memory, Reg, Role};
use wavetap_base::entity::InstId;

const SCC_OUT: Implicit = Implicit::SCC;

fn getpc(pair: u16) -> super::assembly::Op {
    op("s_getpc_b64").writes(Reg::scalar(pair, 2))
}

fn add(name: &'static str, reg: u16, value: u32) -> super::assembly::Op {
    let reads = if name == "s_addc_u32" { SCC_OUT } else { Implicit::empty() };
    op(name).writes(Reg::scalar(reg, 1)).reads(Reg::scalar(reg, 1)).literal(value).implicit(reads, SCC_OUT)
}

/// Executable bytes of which only the addresses matter.
fn image(ranges: &[(u64, usize)]) -> Image<'static> {
    let mut image = Image::new();
    for &(address, len) in ranges {
        image.add_code(address, vec![0; len].leak());
    }
    image
}

#[test]
fn only_what_is_reached_is_decoded() {
    // The bytes at 0x108 would be an error: the jump passes over them.
    let body = Listing::at(0x100)
        .push(branch_scc1("far"))
        .push(jump("far"))
        .push(op("data").branch(Branch::Obsolete))
        .label("far")
        .push(end())
        .kernel();
    assert_eq!(body.len(), 3);
    assert_eq!(body.at(0x108), None);
    assert_eq!(body.at(0x10c), Some(InstId(2)));
    assert_eq!(body.containing(0x10d), Some(InstId(2)));
    assert_eq!(body.containing(0x109), None);
    assert_eq!(body.flow(InstId(0)), Flow::Branch(InstId(2)));
    assert_eq!(body.next(InstId(0)), Some(InstId(1)));
    assert_eq!(body.next(InstId(1)), None);
    assert_eq!(body.span(), 0x100..0x110);
}

#[test]
fn the_entry_need_not_be_lowest() {
    let listing = Listing::at(0x100).label("low").push(end()).push(jump("low"));
    let body = listing.try_body(&Image::new(), BodyKind::Kernel, 0x104).expect("a body");
    assert_eq!(body.entry(), InstId(1));
    assert_eq!(body.entry_address(), 0x104);
}

#[test]
fn running_off_the_code_is_an_error() {
    let error =
        Listing::at(0x100).push(op("s_nop")).try_body(&Image::new(), BodyKind::Kernel, 0x100).expect_err("no end");
    assert_eq!(error.offset(), Some(0x104));
}

#[test]
fn overlapping_instructions_are_refused() {
    // A branch into the literal of the second instruction, which is decoded there as another one.
    let mut insts =
        Listing::at(0x100).push(branch_scc1("in")).push(op("s_x").literal(1)).push(end()).label("in").push(end());
    insts = insts.label("in2");
    let insts = insts.assemble();
    let target = wavetap_amdgpu::Target::by_name("gfx90a").expect("target");
    let mut inside = insts[&0x100].clone();
    inside.operands.iter_mut().for_each(|operand| operand.value = wavetap_amdgpu::Value::Imm(1));
    let error = Body::from_decoder(
        target,
        &Image::new(),
        "test",
        BodyKind::Kernel,
        (0x100, 0x100),
        &PreservedRegs::default(),
        |inst, address| {
            *inst = match address {
                0x100 => inside.clone(),
                0x108 => insts[&0x10c].clone(),
                other => insts[&other].clone(),
            };
            Ok(())
        },
    )
    .expect_err("overlap");
    assert_eq!(error.offset(), Some(0x108));
}

#[test]
fn direct_calls_are_resolved() {
    let listing = Listing::at(0x1000)
        .push(getpc(4)) // gives 0x1004
        .push(add("s_add_u32", 4, 0xffff_fffc_u32.wrapping_add(0x2000)))
        .push(add("s_addc_u32", 5, 0xffff_ffff))
        .push(op("v_anything"))
        .push(swappc(30, 4))
        .push(swappc(30, 4)) // The first call may have changed s[4:5].
        .push(end());
    let body = listing.try_body(&image(&[(0x1000, 0x100), (0x3000, 8)]), BodyKind::Kernel, 0x1000).expect("a body");
    let calls: Vec<_> = body.calls().map(|(_, target)| target).collect();
    // 0x1004 + 0x1ffc carries nothing, so the high word is 0xffffffff: not code.
    assert_eq!(calls, [CallTarget::Unknown, CallTarget::Unknown]);

    let listing = Listing::at(0x1000)
        .push(getpc(4))
        .push(add("s_add_u32", 4, 0x1ffc))
        .push(add("s_addc_u32", 5, 0))
        .push(swappc(30, 4))
        .push(swappc(30, 4))
        .push(end());
    let body = listing.try_body(&image(&[(0x1000, 0x100), (0x3000, 8)]), BodyKind::Kernel, 0x1000).expect("a body");
    let calls: Vec<_> = body.calls().map(|(_, target)| target).collect();
    assert_eq!(calls, [CallTarget::Known(0x3000), CallTarget::Unknown]);
}

#[test]
fn calls_through_a_relocated_slot_are_resolved() {
    let listing = || {
        Listing::at(0x1000)
            .push(getpc(4))
            .push(add("s_add_u32", 4, 0x4ffc))
            .push(add("s_addc_u32", 5, 0))
            .push(op("s_load_dwordx2").writes(Reg::scalar(6, 2)).reads_as(Role::Sbase, Reg::scalar(4, 2)).memory(
                Memory::Scalar,
                wavetap_amdgpu::Counters::LGKM,
                wavetap_amdgpu::Flags::LOAD,
            ))
            .push(swappc(30, 6))
            .push(end())
    };
    let mut image = image(&[(0x1000, 0x100), (0x3000, 8)]);
    let body = listing().try_body(&image, BodyKind::Kernel, 0x1000).expect("a body");
    assert_eq!(body.calls().next().map(|(_, target)| target), Some(CallTarget::Unknown));
    // What the host or a kernel may overwrite is not what the loader put there.
    image.add_variable(0x6000, 0x3000);
    let body = listing().try_body(&image, BodyKind::Kernel, 0x1000).expect("a body");
    assert_eq!(body.calls().next().map(|(_, target)| target), Some(CallTarget::Unknown));
    assert_eq!(image.code_pointers().collect::<Vec<_>>(), [(0x6000, 0x3000)]);
    image.add_pointer(0x6000, 0x3000);
    let body = listing().try_body(&image, BodyKind::Kernel, 0x1000).expect("a body");
    assert_eq!(body.calls().next().map(|(_, target)| target), Some(CallTarget::Known(0x3000)));
}

#[test]
fn a_join_of_two_addresses_is_unknown() {
    let listing = Listing::at(0x1000)
        .push(getpc(4))
        .push(add("s_add_u32", 4, 0x1ffc))
        .push(add("s_addc_u32", 5, 0))
        .push(branch_scc1("call"))
        .push(add("s_add_u32", 4, 4))
        .label("call")
        .push(swappc(30, 4))
        .push(end());
    let body = listing.try_body(&image(&[(0x1000, 0x100), (0x3000, 8)]), BodyKind::Kernel, 0x1000).expect("a body");
    assert_eq!(body.calls().next().map(|(_, target)| target), Some(CallTarget::Unknown));
}

#[test]
fn long_branches_stay_inside_and_tail_calls_leave() {
    let listing = || {
        Listing::at(0x1000)
            .push(getpc(4)) // 0x1004
            .push(add("s_add_u32", 4, 0x1c)) // → 0x1020
            .push(add("s_addc_u32", 5, 0))
            .push(setpc(4)) // 0x1014
            .push(op("s_never")) // 0x1018
            .push(op("s_never"))
            .push(op("s_there")) // 0x1020
            .push(setpc(30))
    };
    let mut image = image(&[(0x1000, 0x100)]);
    let body = listing().try_body(&image, BodyKind::Function, 0x1000).expect("a body");
    assert_eq!(body.flow(InstId(3)), Flow::Jump(InstId(4)));
    assert_eq!(body.inst(InstId(4)).name(), "s_there");
    assert_eq!(body.flow(InstId(5)), Flow::Return);
    image.add_entry(0x1020, BodyKind::Function, "other");
    let body = listing().try_body(&image, BodyKind::Function, 0x1000).expect("a body");
    assert_eq!(body.flow(InstId(3)), Flow::TailCall(CallTarget::Known(0x1020)));
    assert_eq!(body.len(), 4);
}

#[test]
fn returns_follow_copies_of_the_return_address() {
    let copy = op("s_mov_b64").writes(Reg::scalar(40, 2)).reads(Reg::scalar(30, 2));
    let listing = Listing::at(0x1000).push(copy).push(setpc(40));
    let body = listing.try_body(&Image::new(), BodyKind::Function, 0x1000).expect("a body");
    assert_eq!(body.flow(InstId(1)), Flow::Return);
    let listing = Listing::at(0x1000).push(setpc(30));
    let body = listing.try_body(&Image::new(), BodyKind::Kernel, 0x1000).expect("a body");
    assert_eq!(body.flow(InstId(0)), Flow::IndirectJump, "a kernel has nowhere to return to");
}

#[test]
fn addresses_are_formed_with_the_names_of_gfx12_too() {
    let jump_through = |listing: Listing| {
        let body = listing.push(setpc(4)).push(end()).label("there").push(end());
        let image = image(&[(0x1000, 0x100)]);
        let body = body.try_body(&image, BodyKind::Kernel, 0x1000).expect("a body");
        let jump = body.ids().find(|id| body.inst(*id).variant.branch == Branch::IndirectJump).expect("a jump");
        match body.flow(jump) {
            Flow::Jump(to) => Some(body.address(to)),
            _ => None,
        }
    };
    // s_getpc_b64 gives 0x1004.
    let carried = Listing::at(0x1000)
        .push(getpc(4))
        .push(op("s_sext_i32_i16").writes(Reg::scalar(5, 1)).reads(Reg::scalar(5, 1)))
        .push(add("s_add_co_u32", 4, 0x1c))
        .push(add("s_add_co_ci_u32", 5, 0).implicit(SCC_OUT, SCC_OUT));
    assert_eq!(jump_through(carried), Some(0x1020));
    let pair = Reg::scalar(4, 2);
    let wide =
        |literal| Listing::at(0x1000).push(getpc(4)).push(op("s_add_nc_u64").writes(pair).reads(pair).literal(literal));
    assert_eq!(jump_through(wide(0x10)), Some(0x1014));
    assert_eq!(jump_through(wide(0xffff_fff0)), None, "extended in which way?");
    let null = Reg::scalar(wavetap_amdgpu::scalar::NULL, 1);
    let nothing = Listing::at(0x1000).push(getpc(4)).push(
        op("s_add_co_u32")
            .writes(Reg::scalar(4, 1))
            .reads(Reg::scalar(4, 1))
            .reads(null)
            .implicit(Implicit::empty(), SCC_OUT),
    );
    let nothing = nothing.push(add("s_add_co_u32", 4, 0xc)).push(op("s_mov_b32").writes(null).reads(Reg::scalar(9, 1)));
    assert_eq!(jump_through(nothing), Some(0x1010), "null reads 0 and what is written to it is gone");
}

#[test]
fn jumps_by_an_offset_are_resolved() {
    let listing = Listing::at(0x1000)
        .push(op("s_add_pc_i64").branch(Branch::IndirectJump).literal(4))
        .push(op("data").branch(Branch::Obsolete))
        .push(end());
    let body = listing.try_body(&image(&[(0x1000, 0x100)]), BodyKind::Kernel, 0x1000).expect("a body");
    assert_eq!(body.flow(InstId(0)), Flow::Jump(InstId(1)));
    assert_eq!(body.address(InstId(1)), 0x100c);
}
