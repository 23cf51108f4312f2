//! Which device is emulated, and which code runs on it.

use wavetap::isa::Target;
use wavetap::offload_bundle::TargetId;

/// The device that is emulated unless the program has no code for it.
const DEFAULT_PROCESSOR: &str = "gfx90a";

/// The settings that a device of this processor has unless told otherwise (ROCm's defaults: error correction on, no
/// page retry).
fn default_id(processor: &str) -> TargetId {
    let target = Target::by_name(processor);
    let xnack = target.is_some_and(Target::supports_xnack).then_some(false);
    let sramecc = target.is_some_and(Target::supports_sramecc).then_some(true);
    TargetId { processor: processor.to_owned(), xnack, sramecc }
}

/// A device of the processor of `wanted` with the features that it names.
fn device_for(wanted: &TargetId) -> TargetId {
    let base = default_id(processor_for(wanted));
    TargetId { xnack: wanted.xnack.or(base.xnack), sramecc: wanted.sramecc.or(base.sramecc), ..base }
}

/// The device to emulate, given what the program has code for.
pub(crate) fn choose_device(wanted: Option<&TargetId>, available: &[TargetId]) -> TargetId {
    let fallback = default_id(DEFAULT_PROCESSOR);
    let device = wanted.map_or(fallback, device_for);
    if available.iter().any(|code| runs_on(code, &device)) {
        return device;
    }
    // Code for the same processor with other features, then any emulated processor unless one was asked for.
    let fits = |code: &&TargetId| {
        code.processor == device.processor && wanted.is_none_or(|id| id.xnack.is_none() && id.sramecc.is_none())
    };
    let real = |code: &&TargetId| wanted.is_none() && is_emulated(code) && processor_for(code) == code.processor;
    let any = |code: &&TargetId| wanted.is_none() && is_emulated(code);
    let other =
        available.iter().find(fits).or_else(|| available.iter().find(real)).or_else(|| available.iter().find(any));
    other.map_or(device, device_for)
}

/// Whether code runs on a device: it is for its processor, or for the generic one of its kind.
pub(crate) fn runs_on(code: &TargetId, device: &TargetId) -> bool {
    let generic = Target::by_name(&device.processor).and_then(Target::generic);
    let alike = generic.map(|generic| TargetId { processor: generic.name().to_owned(), ..device.clone() });
    code.runs_on(device) || alike.is_some_and(|alike| code.runs_on(&alike))
}

/// A processor that code runs on: its own, or the first one of its kind if it is generic.
pub(crate) fn processor_for(code: &TargetId) -> &str {
    let is_generic = |target: Target| target.generic() == Some(target);
    match Target::by_name(&code.processor) {
        Some(generic) if is_generic(generic) => {
            let real = Target::all().find(|target| target.generic() == Some(generic) && !is_generic(*target));
            real.map_or(&code.processor, |target| target.name())
        }
        _ => &code.processor,
    }
}

/// Whether the emulator runs code of the processor.
pub(crate) fn is_emulated(target: &TargetId) -> bool {
    Target::by_name(&target.processor).is_some_and(Target::emulated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TargetId {
        TargetId::parse(text).unwrap()
    }

    #[test]
    fn chooses_the_device_that_the_program_has_code_for() {
        let choose = |wanted: Option<&str>, available: &[&str]| {
            let available: Vec<TargetId> = available.iter().map(|text| id(text)).collect();
            choose_device(wanted.map(id).as_ref(), &available).to_string()
        };
        assert_eq!(choose(None, &[]), "gfx90a:sramecc+:xnack-");
        assert_eq!(choose(None, &["gfx906", "gfx90a"]), "gfx90a:sramecc+:xnack-");
        assert_eq!(choose(None, &["gfx9-generic", "gfx906:xnack-", "gfx942"]), "gfx906:sramecc+:xnack-");
        assert_eq!(choose(None, &["gfx9-generic", "gfx11-generic"]), "gfx900:xnack-");
        assert_eq!(choose(Some("gfx1036"), &["gfx10-3-generic", "gfx90a"]), "gfx1036");
        assert_eq!(choose(None, &["gfx1030", "gfx906"]), "gfx1030");
        assert_eq!(choose(None, &["gfx90a:xnack+"]), "gfx90a:sramecc+:xnack+");
        assert_eq!(choose(Some("gfx942"), &["gfx90a"]), "gfx942:sramecc+:xnack-");
        assert_eq!(choose(Some("gfx90a"), &["gfx90a:sramecc-"]), "gfx90a:sramecc-:xnack-");
        assert_eq!(choose(Some("gfx90a:xnack-"), &["gfx90a:xnack+"]), "gfx90a:sramecc+:xnack-");
        assert_eq!(choose(Some("gfx900"), &[]), "gfx900:xnack-");
    }
}
