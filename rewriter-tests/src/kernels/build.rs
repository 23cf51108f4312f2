//! Compiling the test kernels: for the CPU, and for a GPU target at an optimisation level. Everything that is made lies
//! below `target/`, and is made again when a source, the compiler's arguments or the compiler itself are others.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use wavetap::isa::Target;

use super::{Reference, newer};
use crate::cores::on_all_cores;
use crate::{Failure, command, place};

pub(super) const CLANG: &str = "clang-19";
/// The variable that names another for device code: what one compiler makes wrong another may make right.
const OTHER_CLANG: &str = "WAVETAP_CLANG";
const LLVM_AS: &str = "llvm-as-19";

/// ROCm's device libraries, which sources with mathematical functions link.
const DEVICE_LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";

/// What both sides have in common: no fused operations that the source does not ask for, integers that wrap around, one
/// meaning of every expression.
const SAME_MEANING: &[&str] = &[
    "-std=c++20",
    "-w",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-Xclang",
    "-ffloat16-excess-precision=none",
];

/// How a source is compiled for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// The target, with its wave size.
    pub target: Target,
    /// `O0`, `O1`, `O2`, `O3`.
    pub level: &'static str,
    /// Version of the code object.
    pub version: u8,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} wave{} {} v{}", self.target.name(), self.target.wave_size(), self.level, self.version)
    }
}

/// Sources that are compiled for GPUs, and together into a program for the CPU.
#[derive(Debug, Clone)]
pub struct Sources {
    /// What the program is called.
    name: &'static str,
    files: Vec<PathBuf>,
}

impl Sources {
    /// Those of this folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn written() -> Result<Sources, Failure> {
        let files = sources()?.iter().map(|source| folder().join(format!("{source}.cpp"))).collect();
        Ok(Sources { name: "kernels", files })
    }

    /// Texts that a program has made, by name; they are written where they are compiled.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn made_up(name: &'static str, texts: &[(String, String)]) -> Result<Sources, Failure> {
        let write = |(file, text): &(String, String)| {
            let file = made_folder()?.join(format!("{file}.cpp"));
            if fs::read_to_string(&file).ok().as_ref() != Some(text) {
                write_whole(&file, text.as_bytes())?;
            }
            Ok(file)
        };
        Ok(Sources { name, files: texts.iter().map(write).collect::<Result<_, Failure>>()? })
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What the CPU makes of all kernels with waves of this size; run once for each.
    ///
    /// # Errors
    /// If the sources cannot be compiled for the CPU or the program fails.
    pub fn reference(&self, wave_size: u32) -> Result<Arc<Reference>, Failure> {
        type Key = (&'static str, usize, u32);
        static ALL: Mutex<Option<HashMap<Key, Arc<Reference>>>> = Mutex::new(None);
        let mut all = ALL.lock().map_err(|e| e.to_string())?;
        let all = all.get_or_insert_default();
        let key = (self.name, self.files.len(), wave_size);
        if let Some(found) = all.get(&key) {
            return Ok(found.clone());
        }
        let program = self.program()?;
        let folder = made_folder()?.join(format!("{}-cpu-wave{wave_size}", self.name));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let arguments: [OsString; 2] = [wave_size.to_string().into(), folder.clone().into()];
        command::run(&program, &arguments, &[], place::root())?.exited(0)?;
        let reference = Arc::new(Reference::read(&folder)?);
        all.insert(key, reference.clone());
        Ok(reference)
    }

    /// The program that runs all kernels on the CPU.
    fn program(&self) -> Result<PathBuf, Failure> {
        let mut files = self.files.clone();
        files.push(folder().join("shim/cpu.cpp"));
        let compile = |file: &PathBuf| {
            let mut arguments = strings(SAME_MEANING);
            // They run for a moment and compile for long: optimised, four times as long.
            arguments.extend(strings(&["-x", "c++", "-c", "-O0", "-fPIE", "-I"]));
            arguments.extend([folder().join("shim").into(), "-I".into(), folder().into(), file.into()]);
            made(&format!("{}.o", file.file_stem().unwrap_or_default().to_string_lossy()), CLANG, &arguments)
        };
        let mut objects = on_all_cores(&files, compile).into_iter().collect::<Result<Vec<_>, _>>()?;
        objects.sort();
        let mut arguments: Vec<OsString> = objects.into_iter().map(OsString::from).collect();
        // Half precision is in the compiler's own run-time library.
        arguments.extend(strings(&["-rtlib=compiler-rt", "-lm"]));
        made(&format!("{}-on-cpu", self.name), CLANG, &arguments)
    }
}

/// The folder of the sources.
#[must_use]
pub fn folder() -> PathBuf {
    place::root().join("rewriter-tests/kernels")
}

/// The sources' file names without `.cpp`, sorted.
///
/// # Errors
/// If the folder cannot be read.
pub fn sources() -> Result<Vec<String>, Failure> {
    let entries = fs::read_dir(folder()).map_err(|e| e.to_string())?.flatten();
    let names = entries.filter_map(|e| e.file_name().to_str()?.strip_suffix(".cpp").map(str::to_owned));
    Ok(names.collect::<BTreeSet<_>>().into_iter().collect())
}

/// The processors that can be compiled for: those that the compiler knows, and those that the toolchain's newer LLVM
/// makes code for.
///
/// # Errors
/// If the compiler cannot be run.
pub fn known_processors() -> Result<BTreeSet<String>, Failure> {
    Ok(processors_of_compiler()?.union(&newer::processors()).cloned().collect())
}

fn processors_of_compiler() -> Result<BTreeSet<String>, Failure> {
    let arguments = ["--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus"];
    let finished = command::run(Path::new(&device_compiler()), &arguments, &[], place::root())?.exited(0)?;
    let text = finished.out() + &finished.err();
    let names: BTreeSet<String> =
        text.split_whitespace().filter(|word| word.starts_with("gfx")).map(str::to_owned).collect();
    if names.is_empty() { Err(finished.failure("the compiler names no processors")) } else { Ok(names) }
}

/// The code object of a source.
///
/// # Errors
/// If it cannot be compiled.
pub fn object(source: &str, variant: Variant) -> Result<Vec<u8>, Failure> {
    object_of(&folder().join(format!("{source}.cpp")), variant)
}

/// The code object of a source anywhere.
///
/// # Errors
/// If it cannot be compiled.
pub fn object_of(source: &Path, variant: Variant) -> Result<Vec<u8>, Failure> {
    if is_newer(variant.target)? {
        return newer::object_of(source, variant);
    }
    let file =
        made(&format!("{}.co", named(source, variant)), &device_compiler(), &device_arguments(source, variant)?)?;
    fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))
}

/// What the compiler makes of a source, as text for [`assembled`].
///
/// # Errors
/// If it cannot be compiled.
pub fn assembly(source: &str, variant: Variant) -> Result<String, Failure> {
    let source = folder().join(format!("{source}.cpp"));
    let mut arguments = device_arguments(&source, variant)?;
    arguments.push("-S".into());
    read(&made(&format!("{}.s", named(&source, variant)), &device_compiler(), &arguments)?)
}

/// The code object of a text in assembly language.
///
/// # Errors
/// If it cannot be assembled.
pub fn assembled(text: &str, variant: Variant) -> Result<Vec<u8>, Failure> {
    linked(&[text], variant)
}

/// [`assembled`] of several texts, each of which becomes an object, that are linked to one.
///
/// # Errors
/// If they cannot be assembled or linked.
pub fn linked(texts: &[&str], variant: Variant) -> Result<Vec<u8>, Failure> {
    let mut hasher = DefaultHasher::new();
    (texts, variant.target.name(), variant.target.wave_size()).hash(&mut hasher);
    let folder = made_folder()?.join(format!("edited-{:016x}", hasher.finish()));
    let mut sources = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let source = folder.with_extension(if number == 0 { "s".to_owned() } else { format!("{number}.s") });
        write_whole(&source, text.as_bytes())?;
        sources.push(source);
    }
    let processor = format!("-mcpu={}", variant.target.name());
    let mut arguments = strings(&["--target=amdgcn-amd-amdhsa", "-x", "assembler", "-nogpulib", &processor]);
    if variant.target.wave_size() == 64 && variant.target.with_wave_size(32).is_some() {
        arguments.push("-mwavefrontsize64".into());
    }
    arguments.push(format!("-mcode-object-version={}", variant.version).into());
    arguments.extend(sources.into_iter().map(Into::into));
    let name = folder.with_extension("co").file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = made(&name, CLANG, &arguments)?;
    fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))
}

/// Whether code for this target is made by the toolchain's LLVM, as the compiler does not know it.
///
/// # Errors
/// If the compiler cannot be run.
pub fn is_newer(target: Target) -> Result<bool, Failure> {
    static KNOWN: OnceLock<Result<BTreeSet<String>, Failure>> = OnceLock::new();
    KNOWN.get_or_init(processors_of_compiler).as_ref().map(|known| !known.contains(target.name())).map_err(Clone::clone)
}

fn device_compiler() -> String {
    std::env::var(OTHER_CLANG).unwrap_or_else(|_| CLANG.to_owned())
}

pub(super) fn named(source: &Path, variant: Variant) -> String {
    let source = source.file_stem().unwrap_or_default().to_string_lossy();
    let Variant { target, level, version } = variant;
    format!("{source}-{}-w{}-{level}-v{version}", target.name(), target.wave_size())
}

pub(super) fn device_arguments(source: &Path, variant: Variant) -> Result<Vec<OsString>, Failure> {
    let text = read(source)?;
    let target = variant.target;
    let mut arguments: Vec<OsString> = strings(SAME_MEANING);
    // Not `-nogpuinc` alone: HIP's own headers would be looked for.
    arguments.extend(strings(&["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib"]));
    // Denormals are kept wherever the hardware can, and a workgroup may be partial.
    arguments.extend(strings(&["-fno-gpu-flush-denormals-to-zero", "-fno-offload-uniform-block"]));
    arguments.extend([
        format!("--offload-arch={}", target.name()).into(),
        format!("-{}", variant.level).into(),
        format!("-mcode-object-version={}", variant.version).into(),
    ]);
    if target.wave_size() == 64 && target.with_wave_size(32).is_some() {
        arguments.push("-mwavefrontsize64".into());
    }
    if let Some(more) = text.lines().next().and_then(|line| line.strip_prefix("// device flags: ")) {
        arguments.extend(more.split_whitespace().map(OsString::from));
    }
    if text.contains("__ocml_") {
        for bitcode in [Path::new(DEVICE_LIBRARIES).join("ocml.bc"), library_settings(target)?] {
            arguments.extend(strings(&["-Xclang", "-mlink-builtin-bitcode", "-Xclang"]));
            arguments.push(bitcode.into());
        }
    }
    if source.parent() != Some(&folder()) {
        arguments.extend(["-I".into(), folder().into()]);
    }
    arguments.push(source.into());
    Ok(arguments)
}

/// The constants by which the device libraries learn what they are linked for. Debian's release has files of them for
/// the targets of its time alone.
fn library_settings(target: Target) -> Result<PathBuf, Failure> {
    // gfx90a is 9010, gfx1030 10300 + ...: hundreds for each step, the last digit hexadecimal (the library's
    // `oclc_isa_version_*.bc`).
    let digits = target.name().trim_start_matches("gfx").split('-').next().unwrap_or_default();
    let split = digits.len().saturating_sub(2).max(1);
    let number = |text: &str| u32::from_str_radix(text, 16).unwrap_or(0);
    let major = digits[..split].parse().unwrap_or(0);
    let (minor, step) =
        (number(digits.get(split..=split).unwrap_or("0")), number(digits.get(split + 1..).unwrap_or("0")));
    let version = major * 1000 + minor * 100 + step;
    let constant = |name: &str, kind: &str, value: u32| {
        format!("@__oclc_{name} = linkonce_odr protected local_unnamed_addr addrspace(4) constant {kind} {value}\n")
    };
    let text: String = [
        constant("ISA_version", "i32", version),
        constant("ABI_version", "i32", 500),
        constant("wavefrontsize64", "i8", u32::from(target.wave_size() == 64)),
        constant("finite_only_opt", "i8", 0),
        constant("unsafe_math_opt", "i8", 0),
        constant("daz_opt", "i8", 0),
        constant("correctly_rounded_sqrt32", "i8", 1),
    ]
    .concat();
    let name = format!("library-settings-{}-w{}", target.name(), target.wave_size());
    let file = made_folder()?.join(format!("{name}.ll"));
    if fs::read_to_string(&file).ok().as_deref() != Some(&text) {
        write_whole(&file, text.as_bytes())?;
    }
    made(&format!("{name}.bc"), LLVM_AS, &[file.into()])
}

/// What the CPU makes of all kernels of this folder with waves of this size.
///
/// # Errors
/// If the sources cannot be compiled for the CPU or the program fails.
pub fn reference(wave_size: u32) -> Result<Arc<Reference>, Failure> {
    Sources::written()?.reference(wave_size)
}

pub(super) fn strings(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

pub(super) fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

pub(super) fn made_folder() -> Result<PathBuf, Failure> {
    let folder = place::build_folder().join("kernels");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// A file that `tool ARGUMENTS -o FILE` makes, made if it is not there or was made from something else: other
/// arguments, or other contents of the files among them and of the shim.
pub(super) fn made(name: &str, tool: &str, arguments: &[OsString]) -> Result<PathBuf, Failure> {
    made_by(name, tool, "", arguments)
}

/// The same with a tool that may be another though its name and the compiler's version are the same: its identity says
/// so.
pub(super) fn made_by(name: &str, tool: &str, identity: &str, arguments: &[OsString]) -> Result<PathBuf, Failure> {
    let file = made_folder()?.join(name);
    let stamp = file.with_extension(format!("{}.made-from", file.extension().unwrap_or_default().to_string_lossy()));
    let mut hasher = DefaultHasher::new();
    (tool, identity, arguments, shim()?).hash(&mut hasher);
    for argument in arguments {
        if let Ok(bytes) = fs::read(argument) {
            bytes.hash(&mut hasher);
        }
    }
    let key = format!("{:016x}", hasher.finish());
    if file.is_file() && fs::read_to_string(&stamp).is_ok_and(|found| found == key) {
        return Ok(file);
    }
    let own = unfinished(&file);
    let mut all = arguments.to_vec();
    all.extend(["-o".into(), own.clone().into()]);
    command::run(Path::new(tool), &all, &[], place::root())?.exited(0)?;
    fs::rename(&own, &file).map_err(|e| format!("{}: {e}", file.display()))?;
    write_whole(&stamp, key.as_bytes())?;
    Ok(file)
}

/// Where to make a file that other threads, and other runs of the tests, may be making or reading: each makes its own,
/// and renames it when it is whole.
fn unfinished(file: &Path) -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    file.with_extension(format!("{}-{}.tmp", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed)))
}

/// Writes a file that another thread may be reading.
pub(super) fn write_whole(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let own = unfinished(file);
    fs::write(&own, bytes).and_then(|()| fs::rename(&own, file)).map_err(|e| format!("{}: {e}", file.display()))
}

/// The text of the shim and the compiler's version, which every file depends on.
fn shim() -> Result<&'static str, Failure> {
    static TEXT: OnceLock<Result<String, Failure>> = OnceLock::new();
    let made = TEXT.get_or_init(|| {
        let version = command::run(Path::new(CLANG), &["--version"], &[], place::root())?.exited(0)?.out();
        let headers = ["kernel.h", "device.h", "cpu.h"].map(|name| read(&folder().join("shim").join(name)));
        headers.into_iter().try_fold(version, |all, text| Ok(all + &text?))
    });
    made.as_deref().map_err(Clone::clone)
}
