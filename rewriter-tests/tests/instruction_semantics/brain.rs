//! Functions of bfloat16 (gfx1250).
//!
//! Of results this is asked: one unit in the last place of what the function is without rounding. What MODE does, if it
//! rounds otherwise than to nearest or flushes, and what output modifiers do, is not documented.

use wavetap::isa::{Inst, Modifier, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::float::turns;
use super::lane::{self, Lane, T};
use super::random::{Bits, Random};
use super::state::{Loose, State};

fn number(bits: u64) -> f64 {
    f32::from_bits((bits as u32) << 16).into()
}

/// A bfloat16 number next to a number.
fn brain(value: f64) -> u64 {
    u64::from(((value as f32).to_bits() + 0x7fff) >> 16)
}

fn lane(name: &str) -> Option<Lane> {
    let about = |loose, f| Some(Lane { dst: T::Brain, src: &[T::Brain], f, loose: Some(loose), carry: None });
    let ulp = Loose::UlpBrain(1);
    // Half a unit at 1.
    let angle = Loose::NearBrain(1.0 / 256.0);
    match name {
        "v_exp_bf16" => about(ulp, |_, s| brain(number(s[0]).exp2())),
        "v_log_bf16" => about(ulp, |_, s| brain(number(s[0]).log2())),
        "v_rcp_bf16" => about(ulp, |_, s| brain(1.0 / number(s[0]))),
        "v_rsq_bf16" => about(ulp, |_, s| match number(s[0]) {
            0.0 => s[0] | 0x7f80,
            value => brain(1.0 / value.sqrt()),
        }),
        "v_sqrt_bf16" => about(ulp, |_, s| brain(number(s[0]).sqrt())),
        "v_tanh_bf16" => about(ulp, |_, s| brain(number(s[0]).tanh())),
        "v_sin_bf16" => about(angle, |_, s| brain(turns(number(s[0])).sin())),
        "v_cos_bf16" => about(angle, |_, s| brain(turns(number(s[0])).cos())),
        _ => None,
    }
}

fn execute(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    if state.mode & 0xfc != 0xf0 || inst.modifiers.clamp || inst.modifiers.omod != 0 {
        return None;
    }
    lane::execute(&lane(inst.name())?, inst, state, target)
}

pub fn definition(name: &str) -> Option<Definition> {
    lane(name)?;
    let modifier: fn(&mut Random, Modifier) -> Option<u64> =
        |_, modifier| matches!(modifier, Modifier::Clamp | Modifier::Omod).then_some(0);
    let wishes = Wishes { denormals: true, ..Wishes::default() };
    Some(Definition { wishes, types: &[Bits::Brain], modifier: Some(modifier), ..Definition::whole(execute) })
}
