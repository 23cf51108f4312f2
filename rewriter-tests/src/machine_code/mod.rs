//! Kernels made up from seeds directly in machine code: nested loops, early exits, branches of lanes and of waves,
//! calls, and operations of every queue with waits for any number of them. No compiler would write such waits, which is
//! what makes them telling. They need not wait for what they use: they run outside the strict mode.
//!
//! A [`Frame`] is a code object for a target with an empty kernel; a [`MachineKernel`] is what is put into it.

mod write;

use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::emulator::{Device, Dispatch, DispatchStats, Options};
use wavetap::isa::{self, Target};
use wavetap::kernel::{BodyKind, Image};

use crate::Failure;
use crate::kernels::build::{self, Variant};
use crate::random::Random;
use write::Writer;

/// Processors of the generations that the emulator runs.
pub const PROCESSORS: [&str; 8] = ["gfx803", "gfx900", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1200"];

/// The targets: each processor with each of its wave sizes.
#[must_use]
pub fn targets() -> Vec<Target> {
    let known = PROCESSORS.iter().filter_map(|name| Target::by_name(name));
    known.flat_map(|target| [64, 32].into_iter().filter_map(move |lanes| target.with_wave_size(lanes))).collect()
}

/// Dwords of code there is room for.
const ROOM: usize = 4096;
/// Bytes of memory that a kernel has, and what they are aligned to: offsets of lanes are or-ed to the address.
const MEMORY: u64 = 1 << 16;
/// Bytes of LDS.
pub const LDS: u32 = 4096;
/// Wave-instructions that a kernel may execute.
const FUEL: u64 = 2_000_000;
/// Waves of the only workgroup.
const WAVES: u32 = 4;
/// The kernel's name.
pub const NAME: &str = "k";

/// What a kernel is to be made of.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Statements, those inside others counted.
    pub statements: usize,
    /// Branches and loops.
    pub control: bool,
    /// Functions.
    pub calls: bool,
    /// LDS and scalar loads, not vector memory alone.
    pub mixed: bool,
    /// Any waits at all, or waits for all before what was loaded is used: code that a compiler could have written.
    pub careful: bool,
}

impl Wish {
    /// Anything.
    pub const ANYTHING: Wish = Wish { statements: 60, control: true, calls: true, mixed: true, careful: false };
}

/// A code object for a target with room for code.
pub struct Frame {
    target: Target,
    object: Vec<u8>,
    /// Where the code is in the file, and its address.
    offset: usize,
    address: u64,
}

/// A made-up kernel.
pub struct MachineKernel {
    /// The seed that it is made of.
    pub seed: u64,
    /// Its code; functions are after the kernel.
    pub code: Vec<u8>,
}

impl Frame {
    /// The frame for a target.
    ///
    /// # Errors
    /// If it cannot be assembled.
    pub fn new(target: Target) -> Result<Frame, Failure> {
        let rdna = target.generation() >= 10;
        let wave32 = if rdna {
            format!(".amdhsa_wavefront_size32 {}\n", u32::from(target.wave_size() == 32))
        } else {
            String::new()
        };
        let accum = if target.unified_accum() { ".amdhsa_accum_offset 64\n" } else { "" };
        let text = format!(
            ".amdhsa_code_object_version 5\n.text\n.globl {NAME}\n.p2align 8\n.type {NAME},@function\n{NAME}:\n.fill \
                {ROOM}, 4, 0\n\
             .rodata\n.p2align 6\n.amdhsa_kernel {NAME}\n .amdhsa_user_sgpr_kernarg_segment_ptr 1\n \
             .amdhsa_next_free_vgpr 64\n .amdhsa_next_free_sgpr 100\n {wave32}{accum}.amdhsa_group_segment_fixed_size \
             {LDS}\n.end_amdhsa_kernel\n"
        );
        let object = build::assembled(&text, Variant { target, level: "O0", version: 5 })?;
        let code = CodeObject::parse(&object).map_err(|e| e.to_string())?;
        let section = code.elf().section(".text").ok_or("no code")?;
        let (address, size) = (section.address, 4 * ROOM as u64);
        let offset = code.file_offset(address, size).ok_or("the code is not in the file")? as usize;
        Ok(Frame { target, object, offset, address })
    }

    /// Its target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The address of a kernel's first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The kernel of a seed.
    ///
    /// # Errors
    /// If an instruction that is needed is not known for the target, or there is no room.
    pub fn kernel(&self, seed: u64, wish: Wish) -> Result<MachineKernel, Failure> {
        let code = Writer::new(self.target, Random::new(seed.wrapping_mul(0x9e37) ^ 0x1357_9bdf), wish).kernel()?;
        if code.len() > 4 * ROOM {
            return Err(format!("{} bytes of code, there is room for {}", code.len(), 4 * ROOM));
        }
        Ok(MachineKernel { seed, code })
    }

    /// The kernel and what it calls, decoded.
    #[must_use]
    pub fn program(&self, kernel: &MachineKernel) -> Program {
        let mut image = Image::new();
        image.add_code(self.address, &kernel.code);
        Program::build(self.target, &image, [(NAME.to_owned(), BodyKind::Kernel, self.address)])
    }

    /// The code, printed.
    #[must_use]
    pub fn listing(&self, kernel: &MachineKernel) -> String {
        let mut text = String::new();
        let mut at = 0;
        while let Ok(inst) = isa::decode(self.target, &kernel.code[at..]) {
            text += &format!("{:#x} {}\n", self.address + at as u64, isa::print(self.target, &inst));
            at += usize::from(inst.size);
        }
        text
    }

    /// The code object with the kernel in it.
    #[must_use]
    pub fn object(&self, kernel: &MachineKernel) -> Vec<u8> {
        let mut object = self.object.clone();
        object[self.offset..self.offset + kernel.code.len()].copy_from_slice(&kernel.code);
        object
    }

    /// Runs it.
    ///
    /// # Errors
    /// What the emulator did not like.
    pub fn run(&self, kernel: &MachineKernel, options: Options) -> Result<DispatchStats, Failure> {
        let object = self.object(kernel);
        let text = |e: wavetap::error::Error| e.to_string();
        let device_target = Target::by_name(self.target.name()).unwrap_or(self.target);
        let mut device = Device::new(device_target, Options { strict: false, fuel: FUEL, threads: 1, ..options });
        let loaded = device.load(&object).map_err(text)?;
        let memory = device.malloc(MEMORY, MEMORY).map_err(text)?;
        let dispatch = Dispatch {
            kernel_object: loaded.kernel(NAME).ok_or("the descriptor is not loaded")?,
            grid: [WAVES * self.target.wave_size(), 1, 1],
            workgroup: [(WAVES * self.target.wave_size()) as u16, 1, 1],
            private_segment_size: 0,
            group_segment_size: LDS,
            kernarg_address: memory,
            dispatch_id: 0,
        };
        device.dispatch(&dispatch).map_err(|fault| fault.to_string())
    }
}
