//! One dispatch on the emulator: of an object as compiled, or of an instrumented one, whose counters are collected.

use wavetap::code_object::{CodeObject, Kernel};
use wavetap::collect::collector::Collector;
use wavetap::collect::memory::{DeviceMemory, MemoryError};
use wavetap::collect::session::{self, DispatchInfo, Session};
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{Device, Dispatch, DispatchStats, Fault, ObjectId, Options};
use wavetap::isa::{EventHazards, Target};
use wavetap::profile::accesses::{AllocatedRange, Apertures};
use wavetap::profile::file::{Backend, Profile};

use crate::Failure;

/// How many times as many instructions an instrumented kernel may execute as the original may.
pub const FUEL_FACTOR: u64 = 40;
/// The number that dispatches have in what is recorded of them.
const ORDINAL: u32 = 7;
const GIBIBYTE: u64 = 1 << 30;
/// How many of them lie between buffers and code: what an index of 32 bits reaches where elements have 16 bytes.
const WIDTH_OF_GAP: usize = 64;

/// What makes the kernel arguments, given the addresses of the buffers.
pub type Arguments<'a> = dyn Fn(&Kernel, &[u64]) -> Result<Vec<u8>, Failure> + 'a;

/// A dispatch.
pub struct Launch<'a> {
    /// The kernel's mangled name.
    pub kernel: &'a str,
    /// Work-items in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub group: [u16; 3],
    /// Bytes of LDS that the launch adds.
    pub dynamic: u32,
    /// What the buffers hold before.
    pub buffers: Vec<Vec<u8>>,
    /// The kernel arguments.
    pub arguments: Box<Arguments<'a>>,
    /// Wave-instructions that the original may execute.
    pub fuel: u64,
    /// Hazards that the original has: no run ends because of one.
    pub tolerated: EventHazards,
    /// The compiler is known to have made the original wrong: it uses registers that nothing has written, or leaves out
    /// a wait. What inserted code leaves in these is as good as what is there without it, and it waits, so that the
    /// instrumented kernel may go on where the original does not.
    pub undefined: bool,
}

impl Launch<'_> {
    /// Workgroups of the grid in x, y, z.
    #[must_use]
    pub fn workgroups(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.grid[axis].div_ceil(self.group[axis].into()))
    }
}

/// How what an instrumented kernel counts is collected.
#[derive(Debug, Clone)]
pub struct Collecting {
    /// The kernel, by its place in the object's map.
    pub kernel: u32,
    /// Records, and which workgroups have them.
    pub options: session::Options,
    /// Whether the profile has the counters of each wave.
    pub per_wave: bool,
}

/// What a dispatch left.
pub struct Outcome {
    /// The buffers.
    pub buffers: Vec<Vec<u8>>,
    /// What the emulator saw.
    pub stats: DispatchStats,
    /// The object in it.
    pub object: ObjectId,
    /// What was collected.
    pub session: Option<Session>,
}

impl Outcome {
    /// Ends the collection; none if nothing was collected.
    pub fn take_profile(&mut self) -> Option<Profile> {
        self.session.take().map(|mut session| session.finish())
    }
}

/// Why there is no outcome.
#[derive(Debug)]
pub enum Stopped {
    /// The emulator stopped the kernel.
    Fault(Box<Fault>),
    /// Something else does not fit.
    Failure(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        Stopped::Failure(failure)
    }
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stopped::Fault(fault) => fault.fmt(f),
            Stopped::Failure(failure) => f.write_str(failure),
        }
    }
}

/// Runs a kernel of a bare code object. Buffers come before the object, so that they lie at the same addresses whatever
/// the object's size, and far from it: a wild access of the original's is to meet the same nothing, not an object and
/// counters that are larger when instrumented.
///
/// # Errors
/// What stopped it.
pub fn run(
    object: &[u8],
    target: Target,
    launch: &Launch<'_>,
    options: &Options,
    collecting: Option<Collecting>,
) -> Result<Outcome, Stopped> {
    run_with_table(object, target, launch, options, collecting, &|ranges| ranges)
}

/// [`run`], where what the session is told of allocations is changed.
///
/// # Errors
/// As there.
pub fn run_with_table(
    object: &[u8],
    target: Target,
    launch: &Launch<'_>,
    options: &Options,
    collecting: Option<Collecting>,
    change: &Change<'_>,
) -> Result<Outcome, Stopped> {
    let text = |e: wavetap::error::Error| e.to_string();
    let code = CodeObject::parse(object).map_err(text)?;
    let kernel = code.kernel(launch.kernel).ok_or_else(|| format!("no kernel {}", launch.kernel))?;
    let metadata = kernel.metadata.as_ref().ok_or("no metadata".to_owned())?;
    // The kernel's descriptor says how many lanes its waves have.
    let mut device = Device::new(Target::by_name(target.name()).unwrap_or(target), options.clone());
    let mut allocate = |bytes: &[u8]| -> Result<u64, Failure> {
        let address = device.malloc(bytes.len().max(4) as u64, 256).map_err(text)?;
        device.write(address, bytes).map_err(text)?;
        Ok(address)
    };
    let addresses = launch.buffers.iter().map(|buffer| allocate(buffer)).collect::<Result<Vec<u64>, Failure>>()?;
    let kernarg_address = allocate(&(launch.arguments)(kernel, &addresses)?)?;
    for _ in 0..WIDTH_OF_GAP {
        device.malloc(1, GIBIBYTE).map_err(text)?;
    }
    let loaded = device.load(object).map_err(text)?;
    let mut begun = None;
    if let Some(Collecting { kernel, options, per_wave }) = collecting {
        let mut session = Session::new(Collector::new(Backend::Emulator, per_wave), options);
        let memory = &mut Told { memory: EmulatedMemory(&mut device), change };
        let address_of = |name: &str| loaded.symbols.get(name).map(|symbol| symbol.address);
        let attached = session.attach(memory, &code, address_of).map_err(text)?.ok_or("no control block".to_owned())?;
        let workgroup = launch.group.map(u32::from);
        let info = DispatchInfo { kernel, grid: launch.grid, workgroup, ordinal: ORDINAL, region: None };
        let ticket = session.begin_dispatch(memory, attached, &info).map_err(|error| error.to_string())?;
        begun = Some((session, ticket));
    }
    let dispatch = Dispatch {
        kernel_object: loaded.kernel(launch.kernel).ok_or("the descriptor is not loaded".to_owned())?,
        grid: launch.grid,
        workgroup: launch.group,
        private_segment_size: scratch_bytes(kernel),
        group_segment_size: metadata.group_segment_fixed_size as u32 + launch.dynamic,
        kernarg_address,
        dispatch_id: 0,
    };
    let stats = device.dispatch(&dispatch).map_err(|fault| Stopped::Fault(Box::new(fault)))?;
    let read = |address: u64, size: usize| -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; size];
        device.read(address, &mut bytes).map_err(text)?;
        Ok(bytes)
    };
    let buffers = addresses
        .iter()
        .zip(&launch.buffers)
        .map(|(&at, buffer)| read(at, buffer.len()))
        .collect::<Result<_, Failure>>()?;
    let mut session = None;
    if let Some((mut begun, ticket)) = begun {
        begun.end_dispatch(&mut EmulatedMemory(&mut device), ticket, None).map_err(text)?;
        session = Some(begun);
    }
    Ok(Outcome { buffers, stats, object: loaded.id, session })
}

/// Changes what is allocated.
pub type Change<'a> = dyn Fn(Vec<AllocatedRange>) -> Vec<AllocatedRange> + 'a;

/// Memory that tells something else of what is allocated in it.
struct Told<'a> {
    memory: EmulatedMemory<'a>,
    change: &'a Change<'a>,
}

impl DeviceMemory for Told<'_> {
    fn alloc(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        self.memory.alloc(size, align)
    }

    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(address, into)
    }

    fn allocations(&self) -> Vec<AllocatedRange> {
        self.memory.allocations()
    }

    fn accessible(&self) -> Option<Vec<AllocatedRange>> {
        self.memory.accessible().map(self.change)
    }

    fn apertures(&self) -> Option<Apertures> {
        self.memory.apertures()
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.memory.write(address, bytes)
    }
}

/// Scratch of a lane: what the metadata says, and room for calls whose depth the compiler does not know.
///
/// # Panics
/// If the kernel has no metadata.
#[must_use]
pub fn scratch_bytes(kernel: &Kernel) -> u32 {
    /// More than the recursion of any test kernel takes.
    const STACK: u32 = 16 << 10;
    let metadata = kernel.metadata.as_ref().expect("looked at before");
    metadata.private_segment_fixed_size as u32 + if metadata.uses_dynamic_stack { STACK } else { 0 }
}
