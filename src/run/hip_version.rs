//! Which code objects the installed HIP can load, and launch.

use std::path::{Path, PathBuf};

use memchr::memmem;
use wavetap_object::offload_bundle::Input;

/// Where a loader looks for libraries last.
const FOLDERS: [&str; 3] = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/opt/rocm/lib"];

/// The library whose file's name ends with HIP's version: `libamdhip64.so.5.2.21153`.
const LIBRARY: &str = "libamdhip64.so.5";

/// The last version of HIP that takes code objects of version 4 at most.
const LAST_WITHOUT_V5: [u32; 2] = [5, 2];

/// The kind of a kernel argument, in the metadata: a queue on the device. HIP 5.2 ends programs with such a kernel.
const DEVICE_QUEUE: &[u8] = b"hidden_default_queue";

/// How an ELF file for the HSA runtime begins: 64 bits, little-endian. The ABI's version is the next byte.
const HSA_OBJECT: &[u8] = b"\x7fELF\x02\x01\x01\x40";

/// The ABI's version of code objects of version 4.
const V4: u8 = 2;

/// What the user has to be told of an application that has code which its HIP cannot load or launch: HIP answers with a
/// code that does not say why, or ends the application by SIGSEGV.
pub(super) fn warning(data: &[u8], folders: &[PathBuf]) -> Option<String> {
    // OpenMP's programs, for one, have code objects and load them without HIP.
    memmem::find(data, LIBRARY.as_bytes())?;
    let (found, library) = installed(folders)?;
    if found > LAST_WITHOUT_V5 {
        return None;
    }
    let input = Input::parse(data).ok();
    let mut reasons: Vec<String> = Vec::new();
    if input.iter().flat_map(|input| &input.bundles).any(|bundle| bundle.compressed.is_some()) {
        let reason = "it ends by SIGSEGV at the application's compressed bundle: compile without --offload-compress";
        reasons.push(reason.to_owned());
    }
    if let Some(version) = newest_object(data, input.as_ref()) {
        reasons.push(format!(
            "it loads code objects up to version 4, and the application has version {version}, to whose kernels it \
                answers hipErrorInvalidDeviceFunction (98): compile with -mcode-object-version=4"
        ));
    } else if memmem::find(data, DEVICE_QUEUE).is_some() {
        let reason = "it ends by SIGSEGV when the application launches kernels that have an argument for a queue on \
                      the device (hidden_default_queue): compile with -O2, without calls, printf and assert in kernels";
        reasons.push(reason.to_owned());
    }
    let [major, minor] = found;
    let library = library.display();
    let reasons = (!reasons.is_empty()).then(|| reasons.join("; "))?;
    Some(format!("the installed HIP {major}.{minor} ({library}) is too old: {reasons}; or use --stack hip"))
}

/// The newest version of the code objects in a file, if it is not one that every HIP loads.
fn newest_object(data: &[u8], input: Option<&Input<'_>>) -> Option<u8> {
    let newest = |bytes: &[u8]| {
        let abi = |at: usize| bytes.get(at + HSA_OBJECT.len()).copied();
        memmem::find_iter(bytes, HSA_OBJECT).filter_map(abi).max()
    };
    // Those in compressed bundles, too.
    let bundled = input.iter().flat_map(|input| input.code_objects()).filter_map(|found| newest(found.bytes));
    bundled.chain(newest(data)).max().filter(|abi| *abi > V4).map(|abi| abi + 2)
}

/// Major and minor version of the HIP that the loader finds, and its file.
fn installed(folders: &[PathBuf]) -> Option<([u32; 2], PathBuf)> {
    let folders = folders.iter().map(PathBuf::as_path).chain(FOLDERS.iter().map(Path::new));
    let library = folders.map(|folder| folder.join(LIBRARY)).find_map(|file| file.canonicalize().ok())?;
    let name = library.file_name()?.to_str()?;
    let mut numbers = name.strip_prefix("libamdhip64.so.")?.split('.').map(str::parse::<u32>);
    let version = [numbers.next()?.ok()?, numbers.next()?.ok()?];
    Some((version, library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_objects_are_found() {
        let object = |abi: u8| [b"something", HSA_OBJECT, &[abi, 0, 0]].concat();
        assert_eq!(newest_object(&object(2), None), None);
        assert_eq!(newest_object(&[object(2), object(3)].concat(), None), Some(5));
        assert_eq!(newest_object(&object(4), None), Some(6));
        assert_eq!(newest_object(HSA_OBJECT, None), None);
    }

    #[test]
    fn the_version_is_in_the_files_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libamdhip64.so.5.2.21153");
        std::fs::write(&file, "").expect("a file");
        std::os::unix::fs::symlink(&file, folder.path().join(LIBRARY)).expect("a link");
        let folders = [folder.path().to_owned()];
        assert_eq!(installed(&folders).map(|(version, _)| version), Some([5, 2]));
        let object = [HSA_OBJECT, &[3]].concat();
        let of_hip = [LIBRARY.as_bytes(), &object].concat();
        assert!(warning(&of_hip, &folders).is_some_and(
            |text| text.contains("HIP 5.2") && text.contains("up to version 4, and the application has version 5")
        ));
        let with_queue = [LIBRARY.as_bytes(), HSA_OBJECT, &[V4], DEVICE_QUEUE].concat();
        assert!(warning(&with_queue, &folders).is_some_and(|text| text.contains("hidden_default_queue")));
        let v4 = [LIBRARY.as_bytes(), HSA_OBJECT, &[V4], b"hidden_multigrid_sync_arg"].concat();
        assert!(warning(&v4, &folders).is_none());
        assert!(warning(&object, &folders).is_none(), "a program that does not use HIP");
        assert!(warning(LIBRARY.as_bytes(), &folders).is_none(), "a program without code objects");
    }
}
