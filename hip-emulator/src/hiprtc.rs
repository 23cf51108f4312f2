//! hipRTC: programs that compile HIP while they run. The compiler is the Clang of this machine, with the headers and
//! device libraries that it finds there; without one a program cannot be compiled, and its log says so.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::handles::handle;
use crate::lock::runtime;
use crate::raw;
use crate::status::Outcome;
use wavetap::stderr_line;

/// `hiprtcResult`.
type Result<T = ()> = std::result::Result<T, c_int>;
const INVALID_INPUT: c_int = 3;
const INVALID_PROGRAM: c_int = 4;
const COMPILATION: c_int = 6;
const NO_NAME_EXPRESSIONS_AFTER_COMPILATION: c_int = 8;
const NO_LOWERED_NAMES_BEFORE_COMPILATION: c_int = 9;
const NAME_EXPRESSION_NOT_VALID: c_int = 10;
const INTERNAL_ERROR: c_int = 11;

/// The version that programs are told: the one of HIP that wrote the interface.
const VERSION: [c_int; 2] = [9, 0];

/// Names of Clang, the first of which is there is taken.
const COMPILERS: [&str; 8] =
    ["amdclang", "clang-19", "clang", "clang-20", "clang-21", "clang-22", "clang-18", "clang-17"];

/// Folders where ROCm's device libraries are installed; of ROCm in other places Clang knows.
const DEVICE_LIBRARIES: [&str; 2] = ["/opt/rocm/amdgcn/bitcode", "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"];

/// What programs need not include: AMD's compiler has these headers built in. Those of HIP 7 do not include the first
/// one themselves when a program is compiled while it runs.
const BUILT_IN: &str = "\
#include <hip/hip_runtime.h>
#if __has_include(<hip/amd_detail/device_library_decls.h>)
#include <hip/amd_detail/device_library_decls.h>
#endif
#if __has_include(<hip/amd_detail/amd_warp_functions.h>)
#include <hip/amd_detail/amd_warp_functions.h>
#endif
";

/// Variables of the compiled code by which the names of what it defines are found.
const NAME: &str = "__wavetap_name_";

/// A program to be compiled.
#[derive(Default)]
struct Program {
    source: String,
    name: String,
    /// Names by which they are included, and what they hold.
    headers: Vec<(String, String)>,
    /// Expressions whose names are asked for.
    expressions: Vec<String>,
    lowered: BTreeMap<String, CString>,
    log: String,
    /// The code object.
    code: Option<Vec<u8>>,
}

static PROGRAMS: Mutex<BTreeMap<usize, Program>> = Mutex::new(BTreeMap::new());

fn programs() -> MutexGuard<'static, BTreeMap<usize, Program>> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something with a program.
fn with<T>(program: *mut c_void, run: impl FnOnce(&mut Program) -> Result<T>) -> Result<T> {
    run(programs().get_mut(&(program as usize)).ok_or(INVALID_PROGRAM)?)
}

/// What reading the caller's pointers came to.
fn input<T>(outcome: Outcome<T>) -> Result<T> {
    outcome.map_err(|_| INVALID_INPUT)
}

/// The Clang of this machine: HIP's variable names its folder, ROCm has one of its own, or it is in the path.
fn compiler() -> Option<PathBuf> {
    let named = env::var_os("HIP_CLANG_PATH").map(PathBuf::from);
    let rocm = env::var_os("ROCM_PATH").map_or_else(|| PathBuf::from("/opt/rocm"), PathBuf::from).join("llvm/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = named.into_iter().chain([rocm]).chain(env::split_paths(&path)).collect();
    COMPILERS.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}

/// Where an included file of this name goes, in a folder; none for a name that leaves it.
fn inside(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    (plain && !name.is_empty()).then(|| folder.join(path))
}

/// An option of hipRTC as Clang has it.
fn option(text: &str) -> String {
    match text.strip_prefix("--gpu-architecture=").or_else(|| text.strip_prefix("-arch=")) {
        Some(target) => format!("--offload-arch={target}"),
        None => text.to_owned(),
    }
}

/// A folder that goes with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let folder = env::temp_dir().join(format!("wavetap-hiprtc-{}-{:x}", std::process::id(), handle()));
        fs::create_dir(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Program {
    /// The source, with a variable for each name that is asked for, which has the address of what has the name.
    fn with_names(&self) -> String {
        let mut text = format!("#line 1 {:?}\n{}\n", self.name, self.source);
        for (number, expression) in self.expressions.iter().enumerate() {
            let plain = expression.trim().trim_start_matches('&');
            let variable = format!("__device__ __attribute__((used)) const void* {NAME}{number}");
            text += &format!("extern \"C\" {{ {variable} = (const void*)(&{plain}); }}\n");
        }
        text
    }

    /// Compiles; what the compiler said is the log.
    fn compile(&mut self, options: &[String]) -> Result {
        (self.log, self.code) = (String::new(), None);
        let Some(clang) = compiler() else {
            self.log = "no Clang was found (HIP_CLANG_PATH, ROCM_PATH/llvm/bin, PATH): hipRTC needs one".into();
            stderr_line!("wavetap: hiprtcCompileProgram: {}", self.log);
            return Err(COMPILATION);
        };
        self.compile_with(&clang, options).map_err(|error| {
            self.log += &error.to_string();
            COMPILATION
        })
    }

    fn compile_with(&mut self, clang: &Path, options: &[String]) -> io::Result<()> {
        let folder = Folder::new()?;
        let path = |name: &str| folder.0.join(name);
        fs::create_dir(path("include"))?;
        for (name, text) in &self.headers {
            let file = inside(&path("include"), name)
                .ok_or_else(|| io::Error::other(format!("a header cannot have the name {name:?}")))?;
            fs::create_dir_all(file.parent().unwrap_or(&folder.0))?;
            fs::write(file, text)?;
        }
        fs::write(path("built_in.h"), BUILT_IN)?;
        fs::write(path("program.hip"), self.with_names())?;
        let mut command = Command::new(clang);
        command
            .args(["-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-O3"])
            .args(["-D__HIPCC_RTC__", "-include"])
            .arg(path("built_in.h"))
            .arg("-I")
            .arg(path("include"));
        if let Some(libraries) = DEVICE_LIBRARIES.iter().find(|folder| Path::new(folder).is_dir()) {
            command.arg(format!("--rocm-device-lib-path={libraries}"));
        }
        let options: Vec<String> = options.iter().map(|text| option(text)).collect();
        if !options.iter().any(|option| option.starts_with("--offload-arch=")) {
            let target = runtime().device_id().map_err(|_| io::Error::other("there is no device to compile for"))?;
            command.arg(format!("--offload-arch={}", target.processor));
        }
        command.args(options).arg(path("program.hip"));
        let code = self.run(&mut command, &path("code"), &[])?;
        if !self.expressions.is_empty() {
            let assembly = self.run(&mut command, &path("assembly"), &["-S"])?;
            let names = names(&String::from_utf8_lossy(&assembly), self.expressions.len())
                .ok_or_else(|| io::Error::other("the compiled code does not have all names"))?;
            self.lowered = self.expressions.iter().cloned().zip(names).collect();
        }
        self.code = Some(code);
        Ok(())
    }

    /// Runs the compiler, and gives what it wrote.
    fn run(&mut self, command: &mut Command, out: &Path, more: &[&str]) -> io::Result<Vec<u8>> {
        let output = command.args(more).arg("-o").arg(out).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !self.log.contains(&*said) {
            self.log += &said;
        }
        if output.status.success() { fs::read(out) } else { Err(io::Error::other("")) }
    }
}

/// The symbols whose addresses the variables of [`Program::with_names`] have, by an assembly listing.
fn names(assembly: &str, count: usize) -> Option<Vec<CString>> {
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let symbol = |number: usize| {
        let label = format!("{NAME}{number}:");
        let at = lines.iter().position(|line| line.starts_with(&label))?;
        CString::new(lines.get(at + 1)?.strip_prefix(".quad")?.trim()).ok()
    };
    (0..count).map(symbol).collect()
}

/// Stores text with a terminating zero.
fn store_text(out: *mut c_char, text: &str) -> Result {
    input(raw::write(out as usize, &[text.as_bytes(), &[0]].concat()))
}

macro_rules! compiler_calls {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        extern "C" fn $name($($arg: $type),*) -> c_int {
            let run = || -> Result { $body };
            run().err().unwrap_or(0)
        }
    )*};
}

compiler_calls! {
    /// Version of the interface.
    fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) {
        input(raw::store(major, VERSION[0]).and_then(|()| raw::store(minor, VERSION[1])))
    }

    /// Makes a program of a source and what it includes.
    fn hiprtcCreateProgram(
        out: *mut usize, source: *const c_char, name: *const c_char, count: c_int,
        headers: *const *const c_char, include_names: *const *const c_char,
    ) {
        let count = usize::try_from(count).map_err(|_| INVALID_INPUT)?;
        if out.is_null() {
            return Err(INVALID_PROGRAM);
        }
        if source.is_null() || (count > 0 && (headers.is_null() || include_names.is_null())) {
            return Err(INVALID_INPUT);
        }
        let element = |list: *const *const c_char, at| input(raw::element(list, at).and_then(raw::string));
        let headers = (0..count)
            .map(|at| Ok((element(include_names, at)?, element(headers, at)?)))
            .collect::<Result<Vec<_>>>()?;
        let name = raw::string(name).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "default_program".into());
        let program = Program { source: input(raw::string(source))?, name, headers, ..Program::default() };
        let number = handle();
        programs().insert(number, program);
        input(raw::store(out, number))
    }

    /// Ends a program.
    fn hiprtcDestroyProgram(program: *mut *mut c_void) {
        let number = input(raw::load(program.cast_const()))?;
        programs().remove(&(number as usize)).ok_or(INVALID_PROGRAM)?;
        input(raw::store(program, std::ptr::null_mut()))
    }

    /// Compiles a program.
    fn hiprtcCompileProgram(program: *mut c_void, count: c_int, options: *const *const c_char) {
        let count = usize::try_from(count).map_err(|_| INVALID_INPUT)?;
        let options = (0..count)
            .map(|at| input(raw::element(options, at).and_then(raw::string)))
            .collect::<Result<Vec<_>>>()?;
        with(program, |program| program.compile(&options))
    }

    /// Asks for the name that something of a program has in its code.
    fn hiprtcAddNameExpression(program: *mut c_void, expression: *const c_char) {
        let expression = input(raw::string(expression))?;
        with(program, |program| {
            if program.code.is_some() {
                return Err(NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
            }
            program.expressions.push(expression);
            Ok(())
        })
    }

    /// The name that was asked for.
    fn hiprtcGetLoweredName(program: *mut c_void, expression: *const c_char, out: *mut *const c_char) {
        let expression = input(raw::string(expression))?;
        with(program, |program| {
            if program.code.is_none() {
                return Err(NO_LOWERED_NAMES_BEFORE_COMPILATION);
            }
            let name = program.lowered.get(&expression).ok_or(NAME_EXPRESSION_NOT_VALID)?;
            input(raw::store(out, name.as_ptr()))
        })
    }

    /// Bytes of what the compiler said, with the zero at its end.
    fn hiprtcGetProgramLogSize(program: *mut c_void, out: *mut usize) {
        with(program, |program| input(raw::store(out, program.log.len() + 1)))
    }

    /// What the compiler said.
    fn hiprtcGetProgramLog(program: *mut c_void, out: *mut c_char) {
        with(program, |program| store_text(out, &program.log))
    }

    /// Bytes of the code object.
    fn hiprtcGetCodeSize(program: *mut c_void, out: *mut usize) {
        with(program, |program| input(raw::store(out, program.code.as_ref().ok_or(INVALID_PROGRAM)?.len())))
    }

    /// The code object.
    fn hiprtcGetCode(program: *mut c_void, out: *mut c_char) {
        with(program, |program| input(raw::write(out as usize, program.code.as_ref().ok_or(INVALID_PROGRAM)?)))
    }
}

/// Refuses what needs LLVM's own code, which nothing here links.
fn refuse(name: &str) -> Result {
    stderr_line!("wavetap: {name} is not implemented by the built-in runtime");
    Err(INTERNAL_ERROR)
}

compiler_calls! {
    /// Needs LLVM's own code.
    fn hiprtcGetBitcode() {
        refuse("hiprtcGetBitcode")
    }

    /// Needs LLVM's own code.
    fn hiprtcGetBitcodeSize() {
        refuse("hiprtcGetBitcodeSize")
    }

    /// Needs LLVM's own code.
    fn hiprtcLinkCreate() {
        refuse("hiprtcLinkCreate")
    }

    /// Needs LLVM's own code.
    fn hiprtcLinkAddFile() {
        refuse("hiprtcLinkAddFile")
    }

    /// Needs LLVM's own code.
    fn hiprtcLinkAddData() {
        refuse("hiprtcLinkAddData")
    }

    /// Needs LLVM's own code.
    fn hiprtcLinkComplete() {
        refuse("hiprtcLinkComplete")
    }

    /// Needs LLVM's own code.
    fn hiprtcLinkDestroy() {
        refuse("hiprtcLinkDestroy")
    }
}

/// Text of a result.
#[unsafe(no_mangle)]
extern "C" fn hiprtcGetErrorString(result: c_int) -> *const c_char {
    let text = match result {
        0 => c"HIPRTC_SUCCESS",
        1 => c"HIPRTC_ERROR_OUT_OF_MEMORY",
        2 => c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
        INVALID_INPUT => c"HIPRTC_ERROR_INVALID_INPUT",
        INVALID_PROGRAM => c"HIPRTC_ERROR_INVALID_PROGRAM",
        5 => c"HIPRTC_ERROR_INVALID_OPTION",
        COMPILATION => c"HIPRTC_ERROR_COMPILATION",
        7 => c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        NO_NAME_EXPRESSIONS_AFTER_COMPILATION => c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        NO_LOWERED_NAMES_BEFORE_COMPILATION => c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        NAME_EXPRESSION_NOT_VALID => c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        INTERNAL_ERROR => c"HIPRTC_ERROR_INTERNAL_ERROR",
        100 => c"HIPRTC_ERROR_LINKING",
        _ => c"Invalid HIPRTC error code",
    };
    text.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_stay_in_their_folder() {
        let folder = Path::new("/f");
        assert_eq!(inside(folder, "a/b.h"), Some(PathBuf::from("/f/a/b.h")));
        for name in ["", "../b.h", "/etc/b.h", "a/../../b.h"] {
            assert_eq!(inside(folder, name), None, "{name}");
        }
    }

    #[test]
    fn names_come_from_the_listing() {
        let listing = "__wavetap_name_0:\n\t.quad\t_Z1fv\n\t.size\n__wavetap_name_1:\n\t.quad v ; a comment\n";
        assert_eq!(names(listing, 1), Some(vec![c"_Z1fv".into()]));
        assert_eq!(names(listing, 3), None);
    }

    /// Headers as in HIP 7: those of warps use what another one declares, and do not include it.
    #[test]
    fn what_is_built_in_declares_what_it_uses() {
        let folder = Folder::new().expect("a folder");
        let details = folder.0.join("hip/amd_detail");
        fs::create_dir_all(&details).expect("a folder");
        fs::write(folder.0.join("hip/hip_runtime.h"), "").expect("a header");
        fs::write(details.join("device_library_decls.h"), "int any_of_wave(int);").expect("a header");
        fs::write(details.join("amd_warp_functions.h"), "inline int any(int x) { return any_of_wave(x); }")
            .expect("a header");
        fs::write(folder.0.join("built_in.h"), BUILT_IN).expect("a header");
        let mut command = Command::new(compiler().expect("the tests need a Clang"));
        command.args(["-x", "c++", "-fsyntax-only", "-nostdinc", "-I"]).arg(&folder.0).arg(folder.0.join("built_in.h"));
        let output = command.output().expect("the compiler runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
