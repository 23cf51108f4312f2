//! The operations that the emulator does not implement, by name and with the reason: made from the instruction tables.

use std::collections::BTreeMap;

use wavetap_amdgpu::{Inst, Modifiers, Opcode, Target, variants};

use super::pair;
use crate::exec;

/// Beginnings of names, and why what begins so has no meaning here.
const REASONS: &[(&[&str], &str)] = &[
    (
        &["image_", "exp", "v_interp_", "lds_param_load", "ds_param_load", "ds_bvh_", "v_screen_partition_4se_b32"],
        "graphics: depth comparisons, packed and multi-sampled images, exports, attributes, ray tracing",
    ),
    (
        &["lds_direct_load", "ds_direct_load"],
        "loads of LDS at M0 that run beside the vector ALU and have a wait of their own",
    ),
    (
        &[
            "tbuffer_load_format_d16_",
            "tbuffer_store_format_d16_",
            "tbuffer_load_d16_format_",
            "tbuffer_store_d16_format_",
            "buffer_load_format_d16_",
            "buffer_store_format_d16_",
            "buffer_load_d16_format_",
            "buffer_store_d16_format_",
            "buffer_load_d16_hi_format_",
            "buffer_store_d16_hi_format_",
        ],
        "typed buffers with 16-bit data: how the conversion rounds is not documented",
    ),
    (
        &["ds_ordered_count", "ds_add_gs_reg_rtn", "ds_sub_gs_reg_rtn", "global_atomic_ordered_add_b64"],
        "resources that the driver shares out between dispatches, and the order of waves of a pipeline",
    ),
    (&["s_rfe_"], "returns from a trap handler, of which there is none"),
    (
        &["s_dcache_discard"],
        "throws away what scalar stores have not written back: what is left of it depends on the cache",
    ),
    (
        &["v_swmmac_"],
        "sparse matrices of gfx1250: its guide says in two ways which numbers of B are chosen, and AMD's emulator has \
            a third",
    ),
    (&["v_mfma_ld_scale_", "v_wmma_ld_scale"], "the first half of a matrix instruction with scales, alone"),
    (
        &["v_cvt_scalef32_sr_pk8_", "v_cvt_scalef32_sr_pk16_"],
        "conversions of 8 and 16 numbers of gfx1250 by random bits: how these are aligned is not documented",
    ),
    (&["v_cvt_sr_pk_", "v_cvt_sr_bf8_f16", "v_cvt_sr_fp8_f16"], "which of the random bits are added is not documented"),
    (
        &["ds_load_tr", "global_load_tr"],
        "loads that transpose numbers of 4, 6 and 8 bits, and those of gfx12 in wave64: which lane gets which is not \
            documented exactly",
    ),
    (
        &[
            "s_barrier_init",
            "s_barrier_join",
            "s_barrier_leave",
            "s_wakeup_barrier",
            "ds_atomic_barrier_arrive_rtn_b64",
            "ds_atomic_async_barrier_arrive_b64",
        ],
        "barriers of a part of a workgroup",
    ),
    (&["s_alloc_vgpr"], "vector registers that come and go"),
    (&["tensor_save", "tensor_stop"], "what a trap handler does with copies of tensors"),
    (&["flat_load_monitor_", "global_load_monitor_"], "loads that watch an address"),
];

/// The operations of a target that the emulator does not implement, each once, by name, with the reason. A
/// target whose code is not run at all ([`Target::emulated`]) has a list as well.
///
/// ```
/// use wavetap_emulator::missing;
/// use wavetap_amdgpu::Target;
/// let missing = missing(Target::by_name("gfx90a").unwrap());
/// assert!(missing.iter().all(|(name, _)| *name != "v_add_f32"));
/// assert!(missing.iter().any(|(name, reason)| *name == "v_screen_partition_4se_b32" && reason.is_some()));
/// ```
#[must_use]
pub fn missing(target: Target) -> Vec<(&'static str, Option<&'static str>)> {
    let mut names = BTreeMap::new();
    for target in [32, 64].into_iter().filter_map(|lanes| target.with_wave_size(lanes)) {
        for variant in variants(target) {
            let inst = Inst {
                variant,
                size: 0,
                operands: Default::default(),
                modifiers: Modifiers::default(),
                ignored: 0,
                wave_size: target.wave_size() as u8,
            };
            match variant.halves {
                Some(_) => {
                    for name in pair::unknown(target, variant).map(Opcode::name) {
                        names.insert(name, reason(name));
                    }
                }
                None if exec::meaning(target, &inst).is_none() => {
                    names.insert(variant.name, reason(variant.name));
                }
                None => {}
            }
        }
    }
    names.into_iter().collect()
}

/// Why an operation has no meaning here.
pub(crate) fn reason(name: &str) -> Option<&'static str> {
    let applies = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    REASONS.iter().find(|(beginnings, _)| applies(beginnings)).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_meaning_has_a_reason_and_the_reasons_are_needed() {
        let mut used: std::collections::BTreeSet<&str> = Default::default();
        for target in Target::all() {
            for (name, reason) in missing(target) {
                assert!(reason.is_some(), "{}: {name} has neither meaning nor reason", target.name());
                for (beginnings, _) in REASONS {
                    used.extend(beginnings.iter().filter(|beginning| name.starts_with(**beginning)));
                }
            }
        }
        let needless: Vec<_> = REASONS
            .iter()
            .flat_map(|(beginnings, _)| *beginnings)
            .filter(|beginning| !used.contains(*beginning))
            .collect();
        assert!(needless.is_empty(), "nothing begins with {needless:?}");
    }
}
