//! Building instructions from mnemonics, and what a caller may leave out.

use wavetap::error::Kind;
use wavetap::isa::{self, Reg, Target, Value};

fn gfx90a() -> Target {
    Target::by_name("gfx90a").unwrap()
}

fn s(first: u16, dwords: u8) -> Value {
    Value::Reg(Reg::scalar(first, dwords))
}

fn v(first: u16, dwords: u8) -> Value {
    Value::Reg(Reg::vector(first, dwords))
}

fn bytes(mnemonic: &str, values: &[Value]) -> Vec<u8> {
    let inst = isa::build(gfx90a(), mnemonic, values).unwrap();
    isa::encode(gfx90a(), &inst).unwrap()
}

#[test]
fn builds_what_an_assembler_builds() {
    // From clang's assembler.
    assert_eq!(
        bytes("s_mov_b32", &[s(5, 1), Value::Literal(0x1234)]),
        [0xff, 0x00, 0x85, 0xbe, 0x34, 0x12, 0x00, 0x00]
    );
    assert_eq!(bytes("s_endpgm", &[Value::Imm(0)]), [0x00, 0x00, 0x81, 0xbf]);
    assert_eq!(bytes("v_add_u32_e32", &[v(1, 1), Value::InlineInt(1), v(2, 1)]), [0x81, 0x04, 0x02, 0x68]);
    assert_eq!(bytes("s_and_saveexec_b64", &[s(2, 2), Value::Reg(Reg::VCC)]), [0x6a, 0x20, 0x82, 0xbe]);
    assert_eq!(bytes("s_cbranch_execz", &[Value::Imm(-2)]), [0xfe, 0xff, 0x88, 0xbf]);
    // v_pk_fma_f16 v0, v1, v2, v3: op_sel_hi is all ones if it is not written.
    assert_eq!(
        bytes("v_pk_fma_f16", &[v(0, 1), v(1, 1), v(2, 1), v(3, 1)]),
        [0x00, 0x40, 0x8e, 0xd3, 0x01, 0x05, 0x0e, 0x1c]
    );
}

#[test]
fn words_without_a_field_may_be_left_out() {
    let written = bytes("global_load_dword", &[v(0, 1), v(2, 2), Value::Off]);
    assert_eq!(written, bytes("global_load_dword", &[v(0, 1), v(2, 2)]));
    assert_eq!(written, [0x00, 0x80, 0x50, 0xdc, 0x02, 0x00, 0x7f, 0x00]);
    assert_ne!(written, bytes("global_load_dword", &[v(0, 1), v(2, 1), s(4, 2)]));
    let compare = [Value::Reg(Reg::VCC), s(1, 1), v(2, 1)];
    assert_eq!(bytes("v_cmp_eq_u32_e32", &compare), bytes("v_cmp_eq_u32_e32", &compare[1..]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |mnemonic: &str, values: &[Value]| isa::build(gfx90a(), mnemonic, values).unwrap_err().kind();
    assert_eq!(refused("v_nonsense", &[]), Kind::Unsupported);
    assert_eq!(refused("s_mov_b64", &[s(5, 2), s(0, 2)]), Kind::Unsupported, "a pair that starts at an odd register");
    assert_eq!(refused("v_add_f64", &[v(1, 2), v(2, 2), v(4, 2)]), Kind::Unsupported, "gfx90a wants even vector pairs");
    assert_eq!(
        refused("v_add_u32_e64", &[v(1, 1), Value::Literal(1000), v(2, 1)]),
        Kind::Unsupported,
        "no literal in VOP3"
    );
    assert_eq!(refused("s_branch", &[Value::Imm(40000)]), Kind::Unsupported, "a displacement has 16 bits");
}

#[test]
fn every_row_can_be_built_from_what_it_decodes_to() {
    for target in Target::all().filter(|target| target.has_instructions()) {
        for variant in isa::variants(target) {
            // The fixed bits with all fields zero, or with the first legal scalar or vector register, decode for most
            // rows.
            let Ok(inst) = isa::decode(target, &[variant.matches.to_le_bytes().as_slice(), &[0; 4]].concat()) else {
                continue;
            };
            let mut values: Vec<Value> = inst.operands.iter().map(|operand| operand.value).collect();
            if inst.name().starts_with("image_") {
                // The width of the data follows from the channel mask, and that of the address from the resource.
                continue;
            }
            if inst.variant.encoding == isa::Encoding::Smem && inst.modifiers.imm {
                values.push(Value::Imm(inst.modifiers.offset.into()));
            }
            let built = isa::build(target, inst.variant.mnemonic, &values)
                .unwrap_or_else(|error| panic!("{}: {error}", inst.variant.mnemonic));
            assert_eq!(
                built.operands.iter().map(|operand| operand.value).collect::<Vec<_>>()[..],
                values[..built.operands.len()]
            );
        }
    }
}
