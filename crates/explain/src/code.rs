//! What findings rest on of a kernel's code: its instructions with their source lines and what was counted of them.

use std::collections::BTreeMap;

use wavetap_mix::{Class, MathFunction};
use wavetap_object::code_object::Frame;
use wavetap_profile::map::Source;

/// The code of a kernel and of the functions that it calls.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecutedCode {
    /// Its instructions by address.
    pub instructions: BTreeMap<u64, ExecutedInstruction>,
    /// The instructions that narrow EXEC and were counted, with what runs under them.
    pub guards: Vec<LaneGuard>,
    /// Its loops.
    pub loops: Vec<ExecutedLoop>,
    /// The waves that leave the kernel at once, if some do.
    pub leaving: Option<IdleWaves>,
    /// Waves that stay without a lane for the kernel's work, if at least half do.
    pub idle: Option<IdleWaves>,
    /// Vector registers that the compiler spilled to scratch memory.
    pub spilled_vgprs: u64,
    /// Work-items of the largest workgroup that it was compiled for.
    pub largest_workgroup: Option<u64>,
}

/// An instruction, and what was counted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutedInstruction {
    /// The line of the program that it is for ([`program_line`]).
    pub source: Option<Source>,
    /// What it is.
    pub class: Class,
    /// The function that it computes together with others.
    pub math: Option<MathFunction>,
    /// How often waves executed it; none if that does not follow from the counts.
    pub executions: Option<u64>,
    /// Active lanes, summed over its executions; none if that does not follow.
    pub lanes: Option<u64>,
}

/// What runs under an instruction that narrows EXEC.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneGuard {
    /// Its address.
    pub address: u64,
    /// Whether it takes lanes out of a loop that others stay in.
    pub leaves_loop: bool,
    /// Executions of instructions under it.
    pub executions: u64,
    /// Their active lanes, summed.
    pub lanes: u64,
    /// Whether these follow from the counts.
    pub is_counted: bool,
    /// Lanes before it on average.
    pub before: f64,
    /// Lanes that are idle at these executions because of it, summed, by averages.
    pub idle: f64,
    /// Whether waves without a lane may be among these executions.
    pub with_empty: bool,
    /// Which part of the waves that came to it had lanes that disagreed, 0 to 1.
    pub disagreed: f64,
    /// Which part of the lanes that came to it goes on, 0 to 1.
    pub going_on: f64,
    /// Whether it tests nothing but a work-item's place in its workgroup.
    pub of_work_items: bool,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedLoop {
    /// Address of its first instruction.
    pub header: u64,
    /// Loops that it is in, itself among them.
    pub depth: u32,
    /// The addresses of its instructions.
    pub addresses: Vec<u64>,
    /// Whether it takes the lanes of a wave one by one.
    pub lane_by_lane: bool,
}

/// Waves that leave a kernel without having done anything, or that stay without doing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleWaves {
    /// Address of the test at which most of them do.
    pub address: u64,
    /// How many do: that leave, there and elsewhere; that stay, how often waves fail this test.
    pub waves: u64,
    /// Of how many.
    pub of: u64,
}

impl ExecutedCode {
    /// The line of the program of an instruction.
    pub fn line(&self, address: u64) -> Option<&Source> {
        self.instructions.get(&address)?.source.as_ref()
    }

    /// How many instructions waves executed; none if that is not known of all.
    pub fn executed(&self) -> Option<u64> {
        let all = self.instructions.values().map(|instruction| instruction.executions);
        all.sum::<Option<u64>>().filter(|sum| *sum > 0)
    }

    /// Active lanes of an instruction on average, if they are known and it was executed.
    pub fn average_lanes(&self, address: u64) -> Option<f64> {
        let instruction = self.instructions.get(&address)?;
        let executions = instruction.executions.filter(|count| *count > 0)?;
        Some(instruction.lanes? as f64 / executions as f64)
    }
}

/// Folders of the headers that come with compilers and with ROCm.
const SYSTEM_FOLDERS: [&str; 7] =
    ["/usr/include/", "/usr/local/include/", "/usr/lib/", "/opt/rocm", "include/hip/", "/lib/clang/", "/include/c++/"];
/// What the names of compilers' and HIP's own files begin with, wherever they are.
const SYSTEM_FILES: [&str; 3] = ["__clang_", "amd_hip_", "hip_runtime"];

/// Whether a file is a header that came with the compiler or with ROCm, by its path.
fn is_system(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    // Paths may have been made relative: `include/hip/…` for `/usr/include/hip/…`.
    let rooted = format!("/{}", file.trim_start_matches("./").trim_start_matches('/'));
    SYSTEM_FOLDERS.iter().any(|folder| rooted.contains(folder))
        || SYSTEM_FILES.iter().any(|begin| name.starts_with(begin))
}

/// The line of the program that an instruction is for: that of the innermost function that is in no header of the
/// compiler or of ROCm; if all are, that of the outermost, the kernel itself. Instructions that compilers give to no
/// line of a function (line 0) are for the line that calls it.
#[must_use]
pub fn program_line(frames: &[Frame]) -> Option<Source> {
    let mut lines = frames.iter().filter_map(|frame| frame.location.as_ref()).filter(|location| location.line > 0);
    let own = lines.clone().find(|location| !is_system(&location.file));
    let location = own.or_else(|| lines.next_back())?;
    Some(Source { file: location.file.clone(), line: location.line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_object::code_object::SourceLocation;

    fn frame(file: &str, line: u32) -> Frame {
        let location = Some(SourceLocation { file: file.to_owned(), line, column: 0 });
        Frame { function: None, location }
    }

    #[test]
    fn the_line_is_one_of_the_program() {
        let line = |frames: &[(&str, u32)]| {
            let frames: Vec<Frame> = frames.iter().map(|(file, line)| frame(file, *line)).collect();
            program_line(&frames).map(|source| (source.file, source.line))
        };
        let found = |file: &str, line: u32| Some((file.to_owned(), line));
        let atomic = "/usr/include/hip/amd_detail/amd_hip_atomic.h";
        assert_eq!(line(&[(atomic, 192), ("/src/p/main.cu", 27)]), found("/src/p/main.cu", 27));
        // The innermost of the program's, its own headers among them.
        assert_eq!(line(&[("include/hip/x.h", 1), ("p/tree.h", 5), ("p/main.cu", 9)]), found("p/tree.h", 5));
        assert_eq!(line(&[("./include/hip/amd_detail/device_functions.h", 1), ("./k.hip", 3)]), found("./k.hip", 3));
        assert_eq!(
            line(&[("/opt/rocm-6.2/include/rocprim/a.hpp", 1), ("/opt/rocm-6.2/include/b.hpp", 2)]).map(|l| l.1),
            Some(2),
            "all are headers: the kernel's"
        );
        assert_eq!(line(&[("/src/p/main.cu", 0), ("/src/p/main.cu", 12)]), found("/src/p/main.cu", 12));
        assert_eq!(
            line(&[("/usr/lib/llvm-19/lib/clang/19/include/__clang_hip_math.h", 7), ("src/usr/include_me.cu", 4)]),
            found("src/usr/include_me.cu", 4)
        );
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[("a.cu", 0)]), None);
    }
}
