//! The vendor's disassembler and real code, in the folder that `fetch.sh` filled.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The library with code for all targets.
pub const LIBRARY: &str = "libbitsandbytes_cuda130.so";

/// The folder with the disassembler and the library, named by `WAVETAP_NVIDIA`.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("WAVETAP_NVIDIA").map(PathBuf::from)
}

/// What `nvdisasm` prints of a cubin, or its error.
pub fn disassemble(arguments: &[&str], cubin: &[u8]) -> Result<String, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("wavetap-oracle-{}-{number}.cubin", std::process::id()));
    std::fs::write(&path, cubin).expect("a temporary file");
    let tool = folder().expect("WAVETAP_NVIDIA").join("nvdisasm");
    let output = Command::new(tool).args(arguments).arg(&path).output().expect("nvdisasm runs");
    std::fs::remove_file(&path).expect("the temporary file");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A cubin with one kernel whose code are these words, made from one that has one section of code.
pub fn with_code(cubin: &[u8], words: &[(u64, u64)]) -> Vec<u8> {
    let u64_at = |at: usize| u64::from_le_bytes(cubin[at..at + 8].try_into().expect("eight bytes")) as usize;
    let u16_at = |at: usize| usize::from(u16::from_le_bytes(cubin[at..at + 2].try_into().expect("two bytes")));
    let (sections, count, names) = (u64_at(40), u16_at(60), u16_at(62));
    let mut file = cubin.to_vec();
    file.resize(file.len().next_multiple_of(128), 0);
    let (start, size) = (file.len() as u64, words.len() as u64 * 16);
    for (lower, upper) in words {
        file.extend(lower.to_le_bytes());
        file.extend(upper.to_le_bytes());
    }
    let header = |index: usize| sections + 64 * index;
    let name_of = |index: usize| {
        let at = u64_at(header(names) + 24) + u64_at(header(index)) % (1 << 32);
        &cubin[at..]
    };
    for index in 0..count {
        if name_of(index).starts_with(b".text.") {
            file[header(index) + 24..header(index) + 32].copy_from_slice(&start.to_le_bytes());
            file[header(index) + 32..header(index) + 40].copy_from_slice(&size.to_le_bytes());
        }
        if name_of(index).starts_with(b".symtab\0") {
            for symbol in (u64_at(header(index) + 24)..).step_by(24).take(u64_at(header(index) + 32) / 24) {
                // Functions have the type 2.
                if cubin[symbol + 4] & 15 == 2 {
                    file[symbol + 16..symbol + 24].copy_from_slice(&size.to_le_bytes());
                }
            }
        }
    }
    file
}
