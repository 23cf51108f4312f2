//! The paths that are the driver's: its devices, and files that describe it. All files are in a folder that stands for
//! `/`, with the same links between them, so that the C library can be asked for the file there instead.

use std::borrow::Cow;
use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::driver::Driver;
use crate::nodes::Node;
use crate::{raw, sysfs};

/// What a path is.
#[derive(Debug)]
pub(crate) enum Place {
    /// A device file, and the file that stands for it.
    Node(Node, CString),
    /// One of the driver's other files, or what is missing among them: where it is.
    Ours(CString),
    /// A file of the machine.
    Other,
    /// None at all: no path.
    None,
}

/// Folders and files of the driver, and the beginnings of such.
const PREFIXES: [&[u8]; 8] = [
    b"/dev/kfd",
    b"/dev/dri",
    b"/sys/class/kfd",
    b"/sys/class/drm",
    b"/sys/devices/virtual/kfd",
    b"/sys/module/amdgpu",
    b"/sys/bus/pci/drivers/amdgpu",
    b"/proc/modules",
];

/// Whether a path is a prefix itself or in such a folder.
fn is_in(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Whether a plain path is the driver's, with so many GPUs.
fn is_ours(path: &[u8], gpus: u32) -> bool {
    PREFIXES.iter().any(|prefix| is_in(path, prefix))
        || path.starts_with(b"/sys/") && sysfs::folders(gpus).any(|folder| is_in(path, folder.as_bytes()))
}

/// A path without doubled slashes and `.`; as it is where it has neither. A last slash stays: it follows a link.
fn plain(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.windows(2).any(|two| two == b"//" || two == b"/.") {
        return Cow::Borrowed(path);
    }
    let parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut joined = parts.fold(Vec::new(), |mut all, part| {
        all.push(b'/');
        all.extend_from_slice(part);
        all
    });
    if path.ends_with(b"/") || path.ends_with(b"/.") {
        joined.push(b'/');
    }
    Cow::Owned(joined)
}

/// What a path is.
pub(crate) fn place(path: *const c_char) -> Place {
    let Some(path) = raw::path(path) else { return Place::None };
    let bytes = path.to_bytes();
    // A relative path is none of the driver's, whose folders are no working folder of a process.
    let beginnings: [&[u8]; 4] = [b"/dev", b"/sys", b"/proc", b"//"];
    if !beginnings.iter().any(|beginning| bytes.starts_with(beginning)) {
        return Place::Other;
    }
    let plain = plain(bytes);
    // What a process may have at most, so that the driver does not start for the files of others.
    if !is_ours(&plain, crate::gpu::MOST) {
        return Place::Other;
    }
    let Some(driver) = Driver::files() else { return Place::Other };
    if !is_ours(&plain, driver.gpus) {
        return Place::Other;
    }
    driver.refresh(&plain);
    let relative = plain.strip_prefix(b"/").unwrap_or(&plain);
    let file = driver.root.join(OsStr::from_bytes(relative)).into_os_string().into_vec();
    let Ok(file) = CString::new(file) else { return Place::Other };
    match Node::of(&plain, driver.gpus) {
        Some(node) => Place::Node(node, file),
        None => Place::Ours(file),
    }
}

/// What stands for a path that the C library has found, if it is in the folder: without the folder.
pub(crate) fn without_root<'p>(path: &'p [u8], root: &Path) -> Option<&'p [u8]> {
    path.strip_prefix(root.as_os_str().as_bytes()).filter(|rest| rest.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_drivers_or_not() {
        let ours = |path: &str| is_ours(&plain(path.as_bytes()), 2);
        for path in [
            "/dev/kfd",
            "/dev/dri",
            "/dev/dri/renderD128",
            "/dev//dri/",
            "/sys/class/drm/./card0/device",
            "/sys/devices/virtual/kfd/kfd/topology/nodes",
            "/sys/bus/pci/devices/0000:04:00.0/vendor",
            "/sys/dev/char/226:129",
        ] {
            assert!(ours(path), "{path}");
        }
        for path in
            ["/dev/kfd2", "/dev/null", "/sys/class/drmx", "/sys/bus/pci/devices", "/sys/bus/pci/devices/0000:05:00.0"]
        {
            assert!(!ours(path), "{path}");
        }
    }
}
