//! Files that people have beside programs, libraries and code objects: told by their first bytes, and refused with a
//! word on what to do instead.

use crate::elf::constants::{EM_X86_64, ET_DYN, ET_EXEC, ET_REL};
use crate::elf::{Elf, Section};
use wavetap_base::error::Error;

/// What linked device code comes from.
const LINK_FIRST: &str = "rewrite the executable or shared library that it is linked into";

/// First bytes, what a file with them is, and what to do instead.
const SIGNATURES: &[(&[u8], &str, &str)] = &[
    (b"!<arch>\n", "a static archive (.a), whose members are not linked yet", LINK_FIRST),
    (b"!<thin>\n", "a thin static archive (.a), whose members are not linked yet", LINK_FIRST),
    (b"BC\xc0\xde", "LLVM bitcode, which is not compiled to instructions yet", LINK_FIRST),
    (
        &[0x10, 0xff, 0x10, 0xad],
        "an LLVM offload binary (what the new offload driver puts into object files)",
        LINK_FIRST,
    ),
    (
        &[0x03, 0x02, 0x23, 0x07],
        "SPIR-V, which is not compiled to instructions yet",
        "rewrite code that is compiled for a processor",
    ),
    (b"#!", "a script", "name the program or the library that it runs"),
    (b"MZ", "a Windows program", "rewrite the code objects inside, or the program's build for Linux"),
    (b"PK\x03\x04", "a ZIP archive (a Python wheel is one)", "unpack it and name the libraries inside"),
    (b"\x1f\x8b", "gzip data", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it first"),
    (b"# __CLANG_OFFLOAD_BUNDLE__", "an offload bundle of texts", "compile and link it first"),
    (b"; __CLANG_OFFLOAD_BUNDLE__", "an offload bundle of texts", "compile and link it first"),
];

/// Where the identifier of a FlatBuffer is, without and with the size before it.
const IDENTIFIER_AT: [usize; 2] = [4, 8];
/// The identifier of IREE's modules.
const IREE: &[u8] = b"IREE";

/// What a file is that is neither ELF nor a bundle.
pub(super) fn refuse(data: &[u8]) -> Error {
    if IDENTIFIER_AT.iter().any(|at| data.get(*at..).is_some_and(|rest| rest.starts_with(IREE))) {
        let instead =
            "compile it with --iree-hal-dump-executable-binaries-to=FOLDER and look into the code objects there";
        return Error::unsupported(format!("a module of IREE (.vmfb): {instead}")).at(0);
    }
    match SIGNATURES.iter().find(|(magic, ..)| data.starts_with(magic)) {
        Some((_, what, instead)) => Error::unsupported(format!("{what}: {instead}")).at(0),
        None => Error::malformed("neither an ELF file nor an offload bundle").at(0),
    }
}

/// The offset of `e_type` in the file header.
const TYPE_OFFSET: u64 = 16;

/// Refuses host files that no loader loads.
pub(super) fn check_host(elf: &Elf<'_>) -> Result<(), Error> {
    match elf.header.kind {
        ET_EXEC | ET_DYN => Ok(()),
        ET_REL => {
            Err(Error::unsupported(format!("a relocatable object file (.o), which is not linked yet: {LINK_FIRST}"))
                .at(TYPE_OFFSET))
        }
        other => Err(Error::unsupported(format!(
            "an x86-64 ELF file of type {other}: neither executable nor shared library"
        ))
        .at(TYPE_OFFSET)),
    }
}

/// Sections of programs whose device code is not HIP's.
const OTHER_RUNTIMES: &[(&str, &str)] = &[
    ("omp_offloading_entries", "OpenMP device code"),
    ("llvm_offload_entries", "device code that is registered through LLVM's offload entries"),
    (".llvm.offloading", "device code that is not linked yet (.llvm.offloading)"),
    (".nv_fatbin", "device code for NVIDIA GPUs"),
];

/// The section by which a host file's device code is not HIP's, if there is one, and what it is.
fn other_runtime<'e, 'd>(elf: &'e Elf<'d>) -> Option<(&'e Section<'d>, &'static str)> {
    let named = |name: &str| elf.sections.iter().find(|section: &&Section<'_>| section.name == name);
    OTHER_RUNTIMES.iter().find_map(|(name, what)| Some((named(name)?, *what)))
}

/// Whether a host file without bundles has no device code at all, HIP's or another's.
pub(super) fn has_no_device_code(elf: &Elf<'_>) -> bool {
    check_host(elf).is_ok() && other_runtime(elf).is_none()
}

/// A host file without bundles: what it has instead.
pub(super) fn without_bundles(elf: &Elf<'_>) -> Error {
    debug_assert_eq!(elf.header.machine, EM_X86_64);
    match other_runtime(elf) {
        Some((section, what)) => {
            let name = section.name;
            Error::unsupported(format!("an x86-64 program with {what} (section {name}): only HIP's is handled"))
                .at(section.offset)
        }
        // That they are not among the sections is what is wrong.
        None => Error::unsupported("an x86-64 program without device code (no .hip_fatbin, no .hipFatBinSegment)")
            .at(elf.header.sections_offset),
    }
}
