//! The LLVM C API, opened with `dlopen`, and processes to call it in. All `unsafe` of the test tools is here.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::io::{PipeWriter, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use libloading::Library;

use crate::MAX_INSTRUCTION_BYTES;

/// Why LLVM could not be asked.
#[derive(Debug, Clone)]
pub struct OracleError(pub String);

impl std::fmt::Display for OracleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OracleError {}

/// The opaque handle that LLVM calls `LLVMDisasmContextRef`.
type Context = *mut c_void;
type Init = unsafe extern "C" fn();
/// `LLVMCreateDisasmCPUFeatures(triple, cpu, features, info, tag, op_info, symbol_lookup)`.
type Create = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *mut c_void,
    c_int,
    Option<unsafe extern "C" fn()>,
    Option<unsafe extern "C" fn()>,
) -> Context;
/// `LLVMDisasmInstruction(context, bytes, byte_count, pc, out, out_size)`: the size, or 0 when the bytes are rejected.
type Disassemble = unsafe extern "C" fn(Context, *mut u8, u64, u64, *mut c_char, usize) -> usize;
type Dispose = unsafe extern "C" fn(Context);
type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);

/// The functions of the opened library; the library itself is kept open for the life of the process.
struct Api {
    create: Create,
    disassemble: Disassemble,
    dispose: Dispose,
    version: (u32, u32, u32),
}

/// The environment variable that names another LLVM to ask.
pub const LIBRARY_VARIABLE: &str = "LLVM_ORACLE_LIBRARY";

/// The LLVM that is asked: the one that [`LIBRARY_VARIABLE`] names, or else the Rust toolchain's: `$(rustc --print sysroot)/lib/libLLVM*`.
pub fn library_path() -> Result<PathBuf, OracleError> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE) {
        return Ok(path.into());
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(rustc).args(["--print", "sysroot"]).output().map_err(|e| OracleError(format!("cannot run rustc: {e}")))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()).join("lib");
    let entries = std::fs::read_dir(&folder).map_err(|e| OracleError(format!("cannot list {}: {e}", folder.display())))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("libLLVM"))
        // The unversioned name is a linker script on some toolchains; the library is the big one.
        .filter(|e| e.metadata().is_ok_and(|m| m.len() > 1 << 20))
        .map(|e| e.path())
        .collect();
    found.sort();
    found.into_iter().next().ok_or_else(|| OracleError(format!("no libLLVM in {}", folder.display())))
}

fn api() -> Result<&'static Api, OracleError> {
    static API: OnceLock<Result<Api, OracleError>> = OnceLock::new();
    API.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Api, OracleError> {
    let path = library_path()?;
    // SAFETY: this is the library that rustc itself is linked with, whose initialisers are the ones rustc runs, or the LLVM that the
    // user named in its place.
    let library = unsafe { Library::new(&path) }.map_err(|e| OracleError(format!("cannot open {}: {e}", path.display())))?;
    // Never unloaded: the function pointers below outlive every borrow.
    let library: &'static Library = Box::leak(Box::new(library));
    for name in
        ["LLVMInitializeAMDGPUTargetInfo", "LLVMInitializeAMDGPUTarget", "LLVMInitializeAMDGPUTargetMC", "LLVMInitializeAMDGPUDisassembler"]
    {
        // SAFETY: the C API declares each of these as `void f(void)`; they register the target and may be called once.
        unsafe { symbol::<Init>(library, name)?() };
    }
    // SAFETY: the types are those that `llvm-c/Disassembler.h` declares for these names.
    let (create, disassemble, dispose) = unsafe {
        (
            symbol::<Create>(library, "LLVMCreateDisasmCPUFeatures")?,
            symbol::<Disassemble>(library, "LLVMDisasmInstruction")?,
            symbol::<Dispose>(library, "LLVMDisasmDispose")?,
        )
    };
    let mut version = (0, 0, 0);
    // SAFETY: `llvm-c/Core.h`: three pointers to `unsigned`, each of which may be written.
    unsafe { symbol::<Version>(library, "LLVMGetVersion")?(&mut version.0, &mut version.1, &mut version.2) };
    Ok(Api { create, disassemble, dispose, version })
}

/// Finds `name`.
///
/// # Safety
/// `T` must be the function pointer type that the C API declares for `name`.
unsafe fn symbol<T: Copy>(library: &'static Library, name: &str) -> Result<T, OracleError> {
    // SAFETY: forwarded to the caller.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|s| *s).map_err(|e| OracleError(format!("libLLVM has no {name}: {e}")))
}

/// An LLVM disassembler for one target, in this process. LLVM may end the process on bytes that are no instruction.
pub struct Disassembler {
    api: &'static Api,
    context: Context,
    text: Vec<u8>,
}

impl Disassembler {
    /// Room for the text of one instruction; the longest (MIMG with many addresses) needs under 300 bytes.
    const TEXT_BYTES: usize = 1024;

    /// Opens a disassembler for a target such as `gfx90a` or `gfx1200,+real-true16`.
    pub fn new(target: &str) -> Result<Self, OracleError> {
        let api = api()?;
        let (cpu, features) = target.split_once(',').unwrap_or((target, ""));
        let c = |s: &str| CString::new(s).map_err(|_| OracleError(format!("target {s:?} has a zero byte")));
        let (triple, cpu, features) = (c("amdgcn-amd-amdhsa")?, c(cpu)?, c(features)?);
        // SAFETY: three zero-terminated strings that live through the call; no callbacks, so no info is needed.
        let context = unsafe { (api.create)(triple.as_ptr(), cpu.as_ptr(), features.as_ptr(), std::ptr::null_mut(), 0, None, None) };
        if context.is_null() {
            return Err(OracleError(format!("LLVM does not know the target {target:?}")));
        }
        Ok(Self { api, context, text: vec![0; Self::TEXT_BYTES] })
    }

    /// LLVM's version: major, minor, patch.
    pub fn version(&self) -> (u32, u32, u32) {
        self.api.version
    }

    /// Decodes and prints the instruction at the start of `bytes`, which sits at address `pc`. `None`: LLVM rejects it.
    /// The text is as LLVM wrote it (tabs included), so that a benchmark pays for LLVM's work only.
    pub fn raw(&mut self, bytes: &[u8], pc: u64) -> Option<(usize, &[u8])> {
        let mut window = [0u8; MAX_INSTRUCTION_BYTES];
        let len = bytes.len().min(MAX_INSTRUCTION_BYTES);
        window[..len].copy_from_slice(&bytes[..len]);
        // SAFETY: `window` holds `len` readable bytes, `text` has the stated room, the context is alive until drop.
        let size = unsafe {
            (self.api.disassemble)(
                self.context,
                window.as_mut_ptr(),
                len as u64,
                pc,
                self.text.as_mut_ptr().cast::<c_char>(),
                self.text.len(),
            )
        };
        if size == 0 {
            return None;
        }
        let end = self.text.iter().position(|b| *b == 0).unwrap_or(self.text.len());
        Some((size, &self.text[..end]))
    }

    /// As [`Disassembler::raw`], with runs of white space made one space.
    pub fn disassemble(&mut self, bytes: &[u8], pc: u64) -> Option<(usize, String)> {
        let (size, text) = self.raw(bytes, pc)?;
        let text = String::from_utf8_lossy(text);
        Some((size, text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: made by `create`, disposed of once.
        unsafe { (self.api.dispose)(self.context) }
    }
}

/// What `work` writes, in a copy of this process, until it is done or dies. The copy has everything that this process has opened, so that it starts in no time.
///
/// This process must have one thread only.
pub fn in_copy(work: impl FnOnce(&mut PipeWriter)) -> std::io::Result<Vec<u8>> {
    let (mut reader, mut writer) = std::io::pipe()?;
    // SAFETY: there is one thread, so that the copy finds no lock that is held by another one; it never returns from here.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut writer)));
            // SAFETY: ends the copy without what the original has to do at its end.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        _ => {
            // Else the end of the copy would not be the end of the pipe.
            drop(writer);
            let mut written = Vec::new();
            reader.read_to_end(&mut written)?;
            // SAFETY: a child of this process that nobody else waits for; its status is not asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(written)
        }
    }
}
