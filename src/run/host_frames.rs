//! Functions and lines of a process's calls, from the symbols and line tables of its executable and libraries.

use std::collections::HashMap;

use wavetap_object::code_object::{LineTable, demangle};
use wavetap_object::elf::Elf;
use wavetap_profile::check::{Finding, HostCall, HostFrame};
use wavetap_profile::map::Source;

use crate::files;

/// Frames of the C library and the loader, which say nothing of the program.
const SYSTEM: [&str; 4] = ["libc.so", "libc-", "ld-linux", "libpthread"];

/// What is known of a file.
struct Module {
    /// Functions by address: start, end, name.
    functions: Vec<(u64, u64, String)>,
    lines: Option<LineTable>,
    /// What offsets count from.
    base: u64,
}

/// Reads files once.
#[derive(Default)]
pub(super) struct HostFrames(HashMap<String, Option<Module>>);

impl HostFrames {
    /// Names the functions and lines of all calls of a finding.
    pub(super) fn complete(&mut self, finding: &mut Finding) {
        let allocation = finding.allocation.iter_mut().flat_map(|it| [&mut it.made, &mut it.freed]).flatten();
        let earlier = finding.other.iter_mut().filter_map(|other| other.call.as_mut());
        let calls = finding.call.iter_mut().chain(&mut finding.destroyed).chain(allocation).chain(earlier);
        calls.for_each(|call| self.call(call));
    }

    fn call(&mut self, call: &mut HostCall) {
        call.stack.retain(|frame| {
            let name = frame.module.rsplit('/').next().unwrap_or_default();
            !SYSTEM.iter().any(|system| name.starts_with(system))
        });
        call.stack = std::mem::take(&mut call.stack).into_iter().flat_map(|frame| self.frame(frame)).collect();
        // Templates around the functions of HIP, in its own headers.
        let is_header = |frame: &HostFrame| {
            let file = frame.source.as_ref().map_or("", |source| source.file.as_str());
            file.ends_with("/hip/hip_runtime_api.h") || file.ends_with("/hip/amd_detail/amd_hip_runtime.h")
        };
        let templates = call.stack.iter().take_while(|frame| is_header(frame)).count();
        call.stack.drain(..templates);
        // What comes before `main` is how the program was started.
        if let Some(main) = call.stack.iter().position(|frame| frame.function.as_deref() == Some("main")) {
            call.stack.truncate(main + 1);
        }
    }

    /// A frame, and those that were inlined into it, the innermost first.
    fn frame(&mut self, frame: HostFrame) -> Vec<HostFrame> {
        let module = self.0.entry(frame.module.clone()).or_insert_with(|| Module::read(&frame.module));
        let Some(module) = module else { return vec![frame] };
        let address = module.base + frame.address;
        let symbol = module.function(address);
        let mut found: Vec<HostFrame> = module
            .lines
            .iter()
            .flat_map(|lines| lines.frames(address))
            .map(|inlined| HostFrame {
                function: inlined.function,
                source: inlined.location.filter(|at| at.line > 0).map(|at| Source { file: at.file, line: at.line }),
                ..frame.clone()
            })
            .collect();
        match found.last_mut() {
            Some(last) => last.function = last.function.take().or(symbol),
            None => found.push(HostFrame { function: symbol, ..frame }),
        }
        found
    }
}

impl Module {
    fn read(path: &str) -> Option<Module> {
        let data = files::read(path.as_ref()).ok()?;
        let elf = Elf::parse(&data).ok()?;
        let symbols = elf.symbols().unwrap_or_default().into_iter().chain(elf.dynamic_symbols().unwrap_or_default());
        let mut functions: Vec<(u64, u64, String)> = symbols
            .filter(|symbol| symbol.is_function() && symbol.is_defined() && symbol.size > 0)
            .map(|symbol| (symbol.address, symbol.address.saturating_add(symbol.size), symbol.name.to_owned()))
            .collect();
        functions.sort();
        let base = elf.loads().map(|load| load.address).min().unwrap_or(0) & !0xfff;
        Some(Module { functions, lines: LineTable::load(&elf).ok().flatten(), base })
    }

    fn function(&self, address: u64) -> Option<String> {
        let at = self.functions.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (_, end, name) = &self.functions[at];
        (address < *end).then(|| demangle(name).into_owned())
    }
}
