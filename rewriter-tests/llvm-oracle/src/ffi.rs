//! The LLVM C API, opened with `dlopen`, and processes to call it in. All `unsafe` of the test tools is here.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
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

/// The LLVM that is asked: the one that [`LIBRARY_VARIABLE`] names, or else the Rust toolchain's: `$(rustc --print
/// sysroot)/lib/libLLVM*`.
pub fn library_path() -> Result<PathBuf, OracleError> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE) {
        return Ok(path.into());
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .map_err(|e| OracleError(format!("cannot run rustc: {e}")))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()).join("lib");
    let entries =
        std::fs::read_dir(&folder).map_err(|e| OracleError(format!("cannot list {}: {e}", folder.display())))?;
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

/// Opens the library and registers the target with these of its parts.
fn open_with(parts: &[&str]) -> Result<&'static Library, OracleError> {
    let path = library_path()?;
    // SAFETY: this is the library that rustc itself is linked with, whose initialisers are the ones rustc runs, or the
    // LLVM that the user named in its place.
    let library =
        unsafe { Library::new(&path) }.map_err(|e| OracleError(format!("cannot open {}: {e}", path.display())))?;
    // Never unloaded: function pointers of it outlive every borrow.
    let library: &'static Library = Box::leak(Box::new(library));
    for part in ["TargetInfo", "Target", "TargetMC"].iter().chain(parts) {
        // SAFETY: the C API declares each of these as `void f(void)`; they register the target and may be called once.
        unsafe { symbol::<Init>(library, &format!("LLVMInitializeAMDGPU{part}"))?() };
    }
    Ok(library)
}

fn open() -> Result<Api, OracleError> {
    let library = open_with(&["Disassembler"])?;
    // SAFETY: the types are those that `llvm-c/Disassembler.h` declares for these names.
    let (create, disassemble, dispose) = unsafe {
        (
            symbol::<Create>(library, "LLVMCreateDisasmCPUFeatures")?,
            symbol::<Disassemble>(library, "LLVMDisasmInstruction")?,
            symbol::<Dispose>(library, "LLVMDisasmDispose")?,
        )
    };
    Ok(Api { create, disassemble, dispose, version: version(library)? })
}

fn version(library: &'static Library) -> Result<(u32, u32, u32), OracleError> {
    let mut version = (0, 0, 0);
    // SAFETY: `llvm-c/Core.h`: three pointers to `unsigned`, each of which may be written.
    unsafe { symbol::<Version>(library, "LLVMGetVersion")?(&mut version.0, &mut version.1, &mut version.2) };
    Ok(version)
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
        let context = unsafe {
            (api.create)(triple.as_ptr(), cpu.as_ptr(), features.as_ptr(), std::ptr::null_mut(), 0, None, None)
        };
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

/// A string that LLVM has made, or null.
type Message = *mut c_char;
/// `LLVMParseCommandLineOptions(argc, argv, overview)`.
type ParseOptions = unsafe extern "C" fn(c_int, *const *const c_char, *const c_char);
type ContextCreate = unsafe extern "C" fn() -> *mut c_void;
/// `LLVMCreateMemoryBufferWithContentsOfFile(path, buffer, message)`: not 0 when it fails, as of all that take a
/// message.
type ReadFile = unsafe extern "C" fn(*const c_char, *mut *mut c_void, *mut Message) -> c_int;
/// `LLVMParseIRInContext2(context, buffer, module, message)`.
type ParseIr = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut *mut c_void, *mut Message) -> c_int;
/// `LLVMVerifyModule(module, action, message)`.
type Verify = unsafe extern "C" fn(*mut c_void, c_int, *mut Message) -> c_int;
/// `LLVMGetTargetFromTriple(triple, target, message)`.
type FindTarget = unsafe extern "C" fn(*const c_char, *mut *mut c_void, *mut Message) -> c_int;
/// `LLVMCreateTargetMachine(target, triple, cpu, features, level, relocations, code_model)`.
type CreateMachine =
    unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> *mut c_void;
/// `LLVMCreateTargetDataLayout(machine)`.
type LayoutOf = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// `LLVMSetModuleDataLayout(module, layout)`.
type SetLayout = unsafe extern "C" fn(*mut c_void, *mut c_void);
type CreatePassOptions = unsafe extern "C" fn() -> *mut c_void;
/// `LLVMRunPasses(module, passes, machine, options)`: an error or null.
type RunPasses = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void, *mut c_void) -> *mut c_void;
type ErrorMessage = unsafe extern "C" fn(*mut c_void) -> Message;
/// `LLVMTargetMachineEmitToFile(machine, module, path, kind, message)`.
type Emit = unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, c_int, *mut Message) -> c_int;

/// `LLVMReturnStatusAction`, `LLVMRelocPIC`, `LLVMCodeModelDefault` and `LLVMObjectFile` of the C API.
const RETURN_STATUS: c_int = 2;
const POSITION_INDEPENDENT: c_int = 2;
const DEFAULT_CODE_MODEL: c_int = 0;
const OBJECT_FILE: c_int = 1;

/// A module in LLVM's language and how it is compiled.
#[derive(Debug, Clone, Copy)]
pub struct Compilation<'a> {
    /// The processor.
    pub processor: &'a str,
    /// `0` to `3`: which passes run, and what the code generator does.
    pub level: u8,
    /// The file of the module, as text or bitcode.
    pub module: &'a str,
    /// Where the object file goes; it is not linked.
    pub object: &'a str,
    /// What `-mllvm` would take: options of LLVM itself.
    pub options: &'a [&'a str],
}

/// The version of the LLVM that [`compile`] asks.
///
/// # Errors
/// If it cannot be opened.
pub fn compiler_version() -> Result<(u32, u32, u32), OracleError> {
    version(open_with(&[])?)
}

/// Compiles a module that has not been optimised. To be called once in a process, which LLVM ends where the module
/// cannot be compiled: it says why on standard error.
///
/// # Errors
/// If LLVM cannot be opened, or does not take the module.
pub fn compile(compilation: Compilation<'_>) -> Result<(), OracleError> {
    let library = open_with(&["AsmPrinter"])?;
    let c = |s: &str| CString::new(s).map_err(|_| OracleError(format!("{s:?} has a zero byte")));
    let words = [&["llvm-oracle"], compilation.options].concat().into_iter().map(c).collect::<Result<Vec<_>, _>>()?;
    let words: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    let (triple, processor, no_features) = (c("amdgcn-amd-amdhsa")?, c(compilation.processor)?, c("")?);
    let (input, object) = (c(compilation.module)?, c(compilation.object)?);
    let passes = c(&format!("default<O{}>", compilation.level))?;
    let mut message: Message = std::ptr::null_mut();
    let (mut buffer, mut module, mut target) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the types are those that `llvm-c/Core.h`, `IRReader.h`, `Analysis.h`, `TargetMachine.h`, `Target.h`,
    // `Error.h` and `Transforms/PassBuilder.h` declare for these names. All strings live to the end of this function;
    // what LLVM makes is handed to it as long as it is whole (each step is checked before the next) and is left to the
    // end of the process.
    unsafe {
        symbol::<ParseOptions>(library, "LLVMParseCommandLineOptions")?(
            words.len() as c_int,
            words.as_ptr(),
            std::ptr::null(),
        );
        let context = symbol::<ContextCreate>(library, "LLVMContextCreate")?();
        let read = symbol::<ReadFile>(library, "LLVMCreateMemoryBufferWithContentsOfFile")?;
        checked(compilation.module, read(input.as_ptr(), &mut buffer, &mut message), message)?;
        let parse = symbol::<ParseIr>(library, "LLVMParseIRInContext2")?;
        checked(compilation.module, parse(context, buffer, &mut module, &mut message), message)?;
        let find = symbol::<FindTarget>(library, "LLVMGetTargetFromTriple")?;
        checked("target", find(triple.as_ptr(), &mut target, &mut message), message)?;
        let machine = symbol::<CreateMachine>(library, "LLVMCreateTargetMachine")?(
            target,
            triple.as_ptr(),
            processor.as_ptr(),
            no_features.as_ptr(),
            // The levels of the code generator have the numbers of those on a command line.
            c_int::from(compilation.level),
            POSITION_INDEPENDENT,
            DEFAULT_CODE_MODEL,
        );
        if machine.is_null() {
            return Err(OracleError("no target machine".to_owned()));
        }
        let layout = symbol::<LayoutOf>(library, "LLVMCreateTargetDataLayout")?(machine);
        symbol::<SetLayout>(library, "LLVMSetModuleDataLayout")?(module, layout);
        let verify = symbol::<Verify>(library, "LLVMVerifyModule")?;
        checked("module", verify(module, RETURN_STATUS, &mut message), message)?;
        let options = symbol::<CreatePassOptions>(library, "LLVMCreatePassBuilderOptions")?();
        let error = symbol::<RunPasses>(library, "LLVMRunPasses")?(module, passes.as_ptr(), machine, options);
        if !error.is_null() {
            return checked("passes", 1, symbol::<ErrorMessage>(library, "LLVMGetErrorMessage")?(error));
        }
        let emit = symbol::<Emit>(library, "LLVMTargetMachineEmitToFile")?;
        checked(compilation.object, emit(machine, module, object.as_ptr(), OBJECT_FILE, &mut message), message)
    }
}

/// What a function that takes a message has returned.
///
/// # Safety
/// If it has failed, the message must be null or a string.
unsafe fn checked(what: &str, failed: c_int, message: Message) -> Result<(), OracleError> {
    if failed == 0 {
        return Ok(());
    }
    // SAFETY: forwarded to the caller.
    let text =
        if message.is_null() { "no reason given".into() } else { unsafe { CStr::from_ptr(message) }.to_string_lossy() };
    Err(OracleError(format!("{what}: {text}")))
}

/// What `work` writes, in a copy of this process, until it is done or dies. The copy has everything that this process
/// has opened, so that it starts in no time.
///
/// This process must have one thread only.
pub fn in_copy(work: impl FnOnce(&mut PipeWriter)) -> std::io::Result<Vec<u8>> {
    let (mut reader, mut writer) = std::io::pipe()?;
    // SAFETY: there is one thread, so that the copy finds no lock that is held by another one; it never returns from
    // here.
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
            // SAFETY: a child of this process that no one else waits for; its status is not asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(written)
        }
    }
}
