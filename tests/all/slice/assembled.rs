//! Kernels in assembly.

use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::kernel::Image;
use wavetap::pipeline::Selection;
use wavetap::pipeline::{self, Evidence};
use wavetap::report::slice::{Chain, KernelSlice, Slice, WaitCertainty, WaitSlice};

use crate::hip_compiler::Workshop;

/// Says loudly why a test did nothing.
pub fn assembler_is_there() -> bool {
    let there = |tool| std::process::Command::new(tool).arg("--version").output().is_ok();
    let both = there("clang-19") && there("ld.lld-19");
    if !both {
        eprintln!("SKIPPED: clang-19 or ld.lld-19 is not installed; this test assembles its own kernels");
    }
    both
}

/// An object with these kernels. Its source lines are those of the assembly, `k.s`.
pub fn assemble(target: &str, kernels: &[(&str, &str)]) -> Vec<u8> {
    let workshop = Workshop::new();
    let mut text = String::from(".amdhsa_code_object_version 5\n.text\n");
    for (name, body) in kernels {
        text += &format!(
            ".globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\n s_endpgm\n.size {name}, .-{name}\n"
        );
    }
    text += ".rodata\n";
    let accum =
        if target.starts_with("gfx90a") || target.starts_with("gfx94") { ".amdhsa_accum_offset 64\n" } else { "" };
    for (name, _) in kernels {
        text += &format!(
            ".p2align 6\n.amdhsa_kernel {name}\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_next_free_vgpr 128\n\
                .amdhsa_next_free_sgpr 40\n{accum}.end_amdhsa_kernel\n"
        );
    }
    workshop.write("k.s", &text);
    let cpu = format!("-mcpu={target}");
    workshop.run("clang-19", &["--target=amdgcn-amd-amdhsa", &cpu, "-g", "-c", "k.s", "-o", "k.o"]);
    workshop.run("ld.lld-19", &["-shared", "k.o", "-o", "k.co"]);
    workshop.read("k.co")
}

/// An instruction as it is in an object.
#[derive(Debug, Clone)]
pub struct Placed {
    pub kernel: String,
    pub address: u64,
    pub text: String,
}

/// All instructions of an object's kernels.
pub fn instructions(object: &[u8]) -> Vec<Placed> {
    let code = CodeObject::parse(object).expect("a code object");
    let target = code.target().expect("a target");
    let image = Image::of(&code).expect("an image");
    let program = Program::of(target, &image);
    let of = |body: &wavetap::kernel::Body| -> Vec<Placed> {
        let placed = |id| Placed {
            kernel: body.name().to_owned(),
            address: body.address(id),
            text: wavetap::isa::print(target, body.inst(id)),
        };
        body.ids().map(placed).collect()
    };
    program.bodies().iter().flat_map(of).collect()
}

/// The address of the `nth` instruction of a kernel that begins like this.
pub fn address(object: &[u8], kernel: &str, text: &str, nth: usize) -> u64 {
    let all = instructions(object);
    let found = all.iter().filter(|placed| placed.kernel == kernel && placed.text.starts_with(text)).nth(nth);
    found.unwrap_or_else(|| panic!("no {text} in {all:?}")).address
}

/// The slice of an object without any evidence.
pub fn slice(object: &[u8]) -> Slice {
    pipeline::slice(object, &Selection::default(), Evidence::default()).expect("a slice")
}

/// The only kernel of a slice.
pub fn only(slice: Slice) -> KernelSlice {
    let [kernel] = <[KernelSlice; 1]>::try_from(slice.kernels).expect("one kernel");
    kernel
}

/// What the `nth` wait in memory for a counter waits for.
pub fn waited(kernel: &KernelSlice, counter: &str, nth: usize) -> Vec<(String, WaitCertainty)> {
    let mut waits: Vec<&WaitSlice> = kernel.waits.iter().filter(|wait| wait.counter == counter).collect();
    waits.sort_by_key(|wait| wait.address);
    let wait = waits.get(nth).unwrap_or_else(|| panic!("no wait {nth} for {counter}: {waits:?}"));
    wait.operations
        .iter()
        .map(|operation| (operation.instruction.clone().unwrap_or_default(), operation.certainty))
        .collect()
}

/// The chains of the last wait in memory.
pub fn last_chains(kernel: &KernelSlice) -> Vec<&Chain> {
    let last = kernel.waits.iter().map(|wait| wait.address).max();
    kernel.chains.iter().filter(|chain| Some(chain.address) == last).collect()
}

/// The instructions of a chain, from the wait on.
pub fn path(chain: &Chain) -> Vec<&str> {
    chain.path.iter().map(|step| step.instruction.as_str()).collect()
}
