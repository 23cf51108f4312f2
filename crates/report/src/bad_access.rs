//! Accesses out of bounds, as text.

use crate::style::{Style, counted, place};
use wavetap_explain::{BadAccess, UncheckedAccess};
use wavetap_profile::bounds::NEAR;

/// Instructions listed for each kernel. JSON has all of them.
const SHOWN: usize = 20;

/// The lines of a kernel.
pub(crate) fn lines(found: &[BadAccess], style: Style, lines: &mut Vec<String>) {
    if found.is_empty() {
        return;
    }
    lines.push(String::new());
    let instructions = counted(found.len() as u64, "instruction", "instructions");
    lines.push(style.bad(&format!("  {instructions} accessed memory out of bounds")));
    for bad in found.iter().take(SHOWN) {
        let source = bad.source.as_ref().map(|source| format!(", {}", place(Some(source)))).unwrap_or_default();
        let (lanes, executions) =
            (counted(bad.lanes, "lane", "lanes"), counted(bad.executions, "execution", "executions"));
        lines.push(format!("    {:#x}: {}{source}: {lanes} in {executions}", bad.address, bad.instruction));
        let [x, y, z] = bad.workgroup;
        let at = match bad.partial {
            true => format!("{:#x}, in one of the waves", bad.accessed),
            false => format!("{:#x}, lane {}, wave {} of workgroup {x}, {y}, {z}", bad.accessed, bad.lane, bad.wave),
        };
        lines.push(format!("      first in dispatch {}: {at}", bad.dispatch));
        lines.push(format!("      {}", nearest(bad)));
    }
    if found.len() > SHOWN {
        lines.push(format!("    and {} more: --format json has all", found.len() - SHOWN));
    }
}

/// The lines of a kernel's accesses that were not checked.
pub(crate) fn unchecked_lines(unchecked: &[UncheckedAccess], style: Style, lines: &mut Vec<String>) {
    if unchecked.is_empty() {
        return;
    }
    lines.push(String::new());
    let instructions = counted(unchecked.len() as u64, "buffer instruction", "buffer instructions");
    lines.push(style.warn(&format!("  {instructions} not checked: swizzled, or of another kind that is not checked")));
    for access in unchecked.iter().take(SHOWN) {
        let source = access.source.as_ref().map(|source| format!(", {}", place(Some(source)))).unwrap_or_default();
        let executions = counted(access.executions, "execution", "executions");
        lines.push(format!("    {:#x}: {}{source}: {executions}", access.address, access.instruction));
    }
    if unchecked.len() > SHOWN {
        lines.push(format!("    and {} more: --format json has all", unchecked.len() - SHOWN));
    }
}

/// Where the address is beside the nearest allocation.
fn nearest(bad: &BadAccess) -> String {
    let (Some(range), Some(distance)) = (bad.nearest, bad.distance) else { return "nothing is allocated".to_owned() };
    if i128::from(distance).abs() >= NEAR {
        return "no allocation is near".to_owned();
    }
    let (address, end) = (bad.accessed, range.address.saturating_add(range.size));
    let what = format!("the allocation of {} at {:#x}", counted(range.size, "byte", "bytes"), range.address);
    let bytes = counted(distance.unsigned_abs(), "byte", "bytes");
    match distance {
        ..0 if (range.address..end).contains(&address) => format!("the access ends after {what}"),
        ..0 => format!("{bytes} before {what}"),
        0 => format!("at the end of {what}"),
        1.. => format!("{bytes} after the end of {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::accesses::AllocatedRange;

    #[test]
    fn where_an_address_is() {
        let bad = |accessed, distance| BadAccess {
            address: 0x1000,
            instruction: "global_load_dword v1, v0, s[2:3]".to_owned(),
            source: None,
            executions: 1,
            lanes: 2,
            dispatch: 3,
            workgroup: [4, 0, 0],
            wave: 1,
            lane: 5,
            partial: false,
            accessed,
            nearest: Some(AllocatedRange { address: 0x2000, size: 0x100 }),
            distance: Some(distance),
        };
        let text = |accessed, distance| nearest(&bad(accessed, distance));
        assert_eq!(text(0x1ff8, -8), "8 bytes before the allocation of 256 bytes at 0x2000");
        assert_eq!(text(0x20fe, -2), "the access ends after the allocation of 256 bytes at 0x2000");
        assert_eq!(text(0x2100, 0), "at the end of the allocation of 256 bytes at 0x2000");
        assert_eq!(text(0x1000_2000_2100, 0x1000_2000_0000), "no allocation is near");
        assert_eq!(text(0x2101, 1), "1 byte after the end of the allocation of 256 bytes at 0x2000");
    }

    #[test]
    fn accesses_that_are_not_checked_are_listed() {
        let access = |address| UncheckedAccess {
            address,
            instruction: "buffer_load_dword v1, v0, s[4:7], 0 idxen".to_owned(),
            source: None,
            executions: 1,
        };
        let text = |count: u64| {
            let mut lines = Vec::new();
            unchecked_lines(&(0..count).map(access).collect::<Vec<_>>(), Style::default(), &mut lines);
            lines
        };
        assert!(text(0).is_empty());
        let lines = text(SHOWN as u64 + 2);
        assert!(lines[1].contains("22 buffer instructions not checked"), "{lines:?}");
        assert_eq!(lines[3], "    0x1: buffer_load_dword v1, v0, s[4:7], 0 idxen: 1 execution");
        assert_eq!(lines.last().unwrap(), "    and 2 more: --format json has all");
    }
}
