//! GPUs, their driver, and whether this user may use its devices.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use super::System;
use wavetap_amdgpu::Target;
use wavetap_profile::file::Backend;
use wavetap_report::doctor::{Check, Subject};

/// The driver's device for computing.
const DEVICE: &str = "/dev/kfd";
/// A folder for each processor that the driver knows.
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// PCI devices.
const PCI: &str = "/sys/bus/pci/devices";
/// The vendor id of AMD (and ATI).
const AMD: &str = "0x1002";
/// How the class of display controllers begins.
const DISPLAY: &str = "0x03";
/// Where groups have their names.
const GROUPS: &str = "/etc/group";
/// What the user of this process is.
const STATUS: &str = "/proc/self/status";

/// A GPU that the driver knows.
#[derive(Debug)]
pub(super) struct Gpu {
    node: String,
    /// `gfx90a`.
    target: String,
    /// Its device `/dev/dri/renderD…`; none if the driver does not say.
    render: Option<String>,
}

/// The GPUs that the driver knows.
pub(super) fn gpus(system: &System) -> Vec<Gpu> {
    let of_node = |node: String| {
        let properties = system.text(format!("{NODES}/{node}/properties"))?;
        let value = |name: &str| {
            let line = properties.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.trim().parse::<u32>().ok()
        };
        // CPUs have no SIMD, and 0 as their version.
        let version = value("gfx_target_version").filter(|version| *version > 0)?;
        let render = value("drm_render_minor").filter(|minor| *minor > 0);
        Some(Gpu { node, target: target(version), render: render.map(|minor| format!("/dev/dri/renderD{minor}")) })
    };
    system.names(NODES).into_iter().filter_map(of_node).collect()
}

/// The processor's name: 90010 is gfx90a (`gfx_target_version` of the driver: major, two digits minor, two stepping).
fn target(version: u32) -> String {
    format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

/// What there is to say of them.
pub(super) fn checks(system: &System, gpus: &[Gpu]) -> Vec<Check> {
    let mut checks = Vec::new();
    let has_device = system.exists(DEVICE);
    let problem =
        |name: &str, found: String, advice: &str| Check::problem(Subject::Gpu, name, found, advice, &[Backend::Gpu]);
    if gpus.is_empty() {
        let on_bus = system.names(PCI).iter().any(|device| {
            let is = |file: &str, begin: &str| {
                system.text(format!("{PCI}/{device}/{file}")).is_some_and(|text| text.starts_with(begin))
            };
            is("vendor", AMD) && is("class", DISPLAY)
        });
        checks.push(match (has_device, on_bus) {
            (true, _) => problem(
                "gpu",
                format!("{DEVICE} exists, but the driver lists no GPU in {NODES}"),
                "the driver does not support the GPU, or this container does not have /sys: dmesg says more",
            ),
            (false, true) => problem(
                "gpu",
                format!("there is an AMD GPU on the PCI bus, but {DEVICE} does not exist"),
                "load the driver (modprobe amdgpu); in a container, give it --device=/dev/kfd --device=/dev/dri",
            ),
            (false, false) => Check::note(
                Subject::Gpu,
                "gpu",
                format!("no AMD GPU: {DEVICE} does not exist"),
                "programs run on the emulator, which needs none",
            ),
        });
        return checks;
    }
    for gpu in gpus {
        let found = format!("{}, node {}", gpu.target, gpu.node);
        checks.push(match Target::by_name(&gpu.target) {
            Some(target) if target.rewritable() => Check::ok(Subject::Gpu, "gpu", found),
            _ => problem(
                "gpu",
                format!("{found}: not a target of this version"),
                "kernels for it are not rewritten: docs/reference/targets.md lists targets",
            ),
        });
    }
    checks.push(driver(system));
    if !has_device {
        checks.push(problem(
            "device",
            format!("{DEVICE} does not exist, although the driver lists GPUs"),
            "in a container, give it --device=/dev/kfd --device=/dev/dri",
        ));
        return checks;
    }
    let renders = gpus.iter().filter_map(|gpu| gpu.render.as_deref());
    checks.extend(std::iter::once(DEVICE).chain(renders).map(|device| permission(system, device)));
    checks
}

/// The driver and its version.
fn driver(system: &System) -> Check {
    let kernel = system.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    match system.text("/sys/module/amdgpu/version") {
        Some(version) => Check::ok(Subject::Gpu, "driver", format!("driver amdgpu {version}, Linux {kernel}")),
        None => Check::ok(Subject::Gpu, "driver", format!("driver amdgpu of Linux {kernel}")),
    }
}

/// The user of this process, as far as devices are concerned.
struct User {
    id: u32,
    groups: Vec<u32>,
}

impl User {
    fn of(system: &System) -> Option<User> {
        let status = system.text(STATUS)?;
        let numbers = |name: &str| -> Option<Vec<u32>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        };
        // Real, effective, saved, of files.
        let (users, own) = (numbers("Uid:")?, numbers("Gid:")?);
        let groups = numbers("Groups:").unwrap_or_default().into_iter().chain(own.get(1).copied()).collect();
        Some(User { id: *users.get(1)?, groups })
    }

    /// Whether the modes of a file let this user read and write it.
    fn may_use(&self, file: &fs::Metadata) -> bool {
        const READ_AND_WRITE: u32 = 0o6;
        let shift = match () {
            () if self.id == 0 => return true,
            () if self.id == file.uid() => 6,
            () if self.groups.contains(&file.gid()) => 3,
            () => 0,
        };
        file.mode() >> shift & READ_AND_WRITE == READ_AND_WRITE
    }
}

/// Whether this user may read and write a device.
fn permission(system: &System, device: &str) -> Check {
    const NAME: &str = "permission";
    let problem = |found: String, advice: String| Check::problem(Subject::Gpu, NAME, found, advice, &[Backend::Gpu]);
    let path = system.path(device);
    let facts = match fs::metadata(&path) {
        Ok(facts) => facts,
        Err(error) => {
            let found = format!("{device}: {error}");
            return problem(found, "in a container, give it --device=/dev/kfd --device=/dev/dri".to_owned());
        }
    };
    let opened = if system.is_this_machine() {
        // Also right where an access list or a container's rules decide.
        File::options().read(true).write(true).open(&path).map(drop).map_err(|error| error.kind())
    } else {
        let may = User::of(system).is_some_and(|user| user.may_use(&facts));
        if may { Ok(()) } else { Err(ErrorKind::PermissionDenied) }
    };
    match opened {
        Ok(()) => Check::ok(Subject::Gpu, NAME, format!("{device}: may be read and written")),
        Err(ErrorKind::PermissionDenied) => {
            let found = format!(
                "{device}: this user may not read and write it (group {}, mode {:o})",
                group(system, facts.gid()),
                facts.mode() & 0o777
            );
            let advice = match user_is_in(system, facts.gid()) {
                true => "the group may not either: the rules of udev for amdgpu set mode 660 or 666".to_owned(),
                false => format!(
                    "usermod -a -G {} USER and log in again; in a container, --group-add {}",
                    group(system, facts.gid()),
                    facts.gid()
                ),
            };
            problem(found, advice)
        }
        Err(error) => problem(format!("{device}: {error}"), "dmesg says more".to_owned()),
    }
}

fn user_is_in(system: &System, group: u32) -> bool {
    User::of(system).is_some_and(|user| user.groups.contains(&group))
}

/// A group's name, or its number.
fn group(system: &System, id: u32) -> String {
    let groups = system.text(GROUPS).unwrap_or_default();
    let name = groups.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(id)).then(|| fields[0].to_owned())
    });
    name.unwrap_or_else(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_targets() {
        for (version, name) in
            [(80_003, "gfx803"), (90_010, "gfx90a"), (90_402, "gfx942"), (110_000, "gfx1100"), (120_501, "gfx1251")]
        {
            assert_eq!(target(version), name);
            assert!(Target::by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_machine_without_files_has_no_gpu_and_no_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new().at(folder.path());
        let checks = checks(&system, &gpus(&system));
        assert_eq!(checks.len(), 1);
        assert!(checks[0].stops.is_empty() && checks[0].found.contains("no AMD GPU"), "{checks:?}");
    }
}
