//! `wavetap check`: what kernels do wrong, written as findings.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use wavetap_collect::check::{CheckConfig, Recorder, places};
use wavetap_emulator::{Device, Fault, FaultKind, Finding};
use wavetap_profile::check::Tool;

use super::{faults, symbols};
use crate::raw;

/// What the emulated driver does not see of what each tool looks for.
const NOT_SEEN: [(Tool, &str); 5] = [
    (Tool::Memory, "memory: with AMD's runtime, accesses that leave an allocation but not its pages, and freed memory"),
    (Tool::Races, "races: with AMD's runtime, those of streams, copies and the host"),
    (Tool::Init, "init: with AMD's runtime, device memory that nothing has written"),
    (Tool::Sync, "sync: with AMD's runtime, workgroups that wait for one that has no room"),
    (Tool::Api, "api: calls of AMD's runtime"),
];

/// Largest code object that is read.
const LARGEST: u64 = 1 << 32;

/// What is checked, and what was found.
pub(crate) struct Check {
    recorder: Recorder,
    /// The bytes of code objects, by where they are loaded, if they are known.
    objects: HashMap<u64, Option<Vec<u8>>>,
    launches: u64,
}

impl Check {
    pub(crate) fn new(config: &CheckConfig) -> Check {
        let mut recorder = Recorder::new(config);
        recorder.begin();
        for (tool, what) in NOT_SEEN {
            if recorder.wants(tool) {
                recorder.not_checked(what.to_owned());
            }
        }
        if config.outputs.is_some() {
            recorder
                .not_checked("races: with AMD's runtime, whether kernels leave other memory in other orders".into());
        }
        Check { recorder, objects: HashMap::new(), launches: 0 }
    }

    /// The number of a launch that begins, from 1.
    pub(crate) fn launched(&mut self, device: &Device, kernel_object: u64) -> u64 {
        self.launches += 1;
        // HSA's runtime copies by code that is in no code object.
        let is_runtimes = || {
            symbols::base(device, kernel_object).is_none()
                || symbols::kernel(device, kernel_object).is_some_and(|name| faults::is_runtimes(&name))
        };
        if !self.recorder.has_launched() && !is_runtimes() {
            self.recorder.launched();
        }
        self.launches
    }

    /// Notes what a kernel goes on after.
    pub(crate) fn found(&mut self, found: Vec<Finding>, device: &Device, (kernel_object, launch): (u64, u64)) {
        for mut each in found {
            let base = in_object(&mut each.fault, device);
            self.add(each.checked(launch), device, base, kernel_object);
        }
    }

    /// Notes why a kernel was stopped.
    pub(crate) fn stopped(&mut self, fault: &Fault, device: &Device, (kernel_object, launch): (u64, u64)) {
        let mut fault = fault.clone();
        let base = in_object(&mut fault, device);
        self.add(fault.checked(launch), device, base, kernel_object);
    }

    fn add(
        &mut self,
        mut finding: wavetap_profile::check::Finding,
        device: &Device,
        base: Option<u64>,
        kernel_object: u64,
    ) {
        let kernel = symbols::kernel(device, kernel_object).unwrap_or_else(|| format!("at {kernel_object:#x}"));
        let others = finding.other.as_mut().and_then(|other| other.at.as_mut());
        finding.at.iter_mut().chain(others).for_each(|at| kernel.clone_into(&mut at.kernel));
        places::tell_host_pointer(&mut finding, |address| raw::is_mapped(address & !0xfff, 1));
        let Check { recorder, objects, .. } = self;
        recorder.add(finding, |finding| {
            let bytes = base.and_then(|base| objects.entry(base).or_insert_with(|| read(base)).as_deref());
            places::complete(finding, bytes, &kernel, None);
        });
    }

    /// The program ends.
    pub(crate) fn finish(&mut self) {
        self.recorder.finish();
    }
}

/// Gives a fault the addresses that its code object has; where that is.
fn in_object(fault: &mut Fault, device: &Device) -> Option<u64> {
    let code = device.code_base(fault.object?)?;
    let base = symbols::base(device, code + fault.address)?;
    let other = match &fault.kind {
        FaultKind::GlobalRace { other, .. } => other.object,
        _ => fault.object,
    };
    let of_object = |address: u64| (code + address).wrapping_sub(base);
    // The other access of a race may be in another object, whose addresses are left.
    if other == fault.object {
        fault.map_addresses(of_object);
    } else {
        fault.address = of_object(fault.address);
    }
    Some(base)
}

/// The bytes of the code object that is loaded there.
fn read(base: u64) -> Option<Vec<u8>> {
    let (_, place) = raw::loaded_objects().into_iter().find(|(loaded, _)| *loaded == base)?;
    let (path, part) = match place.split_once('#') {
        Some((path, part)) => (path, part),
        None => (place.as_str(), ""),
    };
    let number = |name: &str| {
        let text = part.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
    };
    let (offset, size) = (number("offset").unwrap_or(0), number("size"));
    let file = match path.strip_prefix("file://") {
        Some(path) => path.to_owned(),
        // Of this process.
        None if path.starts_with("memory://") => "/proc/self/mem".to_owned(),
        None => return None,
    };
    let file = File::open(file).ok()?;
    let size = size.or_else(|| file.metadata().ok()?.len().checked_sub(offset)).filter(|size| *size <= LARGEST)?;
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}
