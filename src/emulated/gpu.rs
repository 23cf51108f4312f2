//! An emulated GPU that runs single kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

use wavetap_amdgpu::Target;
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_collect::collector::Collector;
use wavetap_collect::session::{self, DispatchInfo, ObjectId, Overlap, Records, Session};
use wavetap_collect::uncounted::without_counters;
use wavetap_emulator::{Device, Dispatch, DispatchStats, LoadedObject, Options};
use wavetap_object::code_object::{CodeObject, KernelMetadata, demangle, digest};
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::{Selection, bare_name};
use wavetap_profile::file::{Backend, Profile};
use wavetap_profile::launches::{LaunchShape, UncountedDispatches};

use super::arguments::{KernelArgument, segment};
use super::memory::EmulatedMemory;

/// Scratch in bytes that a lane has for calls whose depth the compiler does not know, beside what it says.
const DYNAMIC_STACK: u64 = 16 << 10;
/// Buffers are aligned to this, as with HIP.
const BUFFER_ALIGN: u64 = 256;
/// Arguments are aligned to this at least.
const ARGUMENT_ALIGN: u64 = 64;

/// How a kernel is launched.
///
/// ```
/// use wavetap::emulated::Launch;
///
/// let launch = Launch::of_items(1000).workgroup([256, 1, 1]).dynamic_lds(4096);
/// assert_eq!(launch.items, [1000, 1, 1]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// Work-items of the grid in x, y, z; the last workgroups of a row may be partial.
    pub items: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of LDS of each workgroup beside the kernel's own.
    pub dynamic_lds: u32,
}

impl Launch {
    /// A grid of so many work-items in x, in workgroups of 64.
    #[must_use]
    pub fn of_items(items: u32) -> Launch {
        Launch { items: [items, 1, 1], workgroup: [64, 1, 1], dynamic_lds: 0 }
    }

    /// A grid of so many work-items in x, y, z, in workgroups of so many.
    #[must_use]
    pub fn of_grid(items: [u32; 3], workgroup: [u32; 3]) -> Launch {
        Launch { items, workgroup, dynamic_lds: 0 }
    }

    /// Sets [`Launch::workgroup`].
    #[must_use]
    pub fn workgroup(self, workgroup: [u32; 3]) -> Launch {
        Launch { workgroup, ..self }
    }

    /// Sets [`Launch::dynamic_lds`].
    #[must_use]
    pub fn dynamic_lds(self, bytes: u32) -> Launch {
        Launch { dynamic_lds: bytes, ..self }
    }

    fn shape(self) -> LaunchShape {
        let Launch { items, workgroup, dynamic_lds } = self;
        LaunchShape { grid: Some(items), workgroup, dynamic_lds, dispatches: 1 }
    }
}

/// A code object that an [`Emulator`] has loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Module(usize);

/// An emulated GPU with its memory and what it has loaded. What instrumented kernels count is collected.
///
/// ```
/// use wavetap::emulated::{Emulator, Launch};
/// use wavetap::{Options, probe, Program};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/vectoradd");
/// let program = Program::open(path)?;
/// let counting = wavetap::pipeline::rewrite(program.bytes(), &Options::new([probe::BRANCHES]))?;
///
/// let mut gpu = Emulator::new("gfx90a")?;
/// let module = gpu.load(&counting.bytes)?;
/// let ones: Vec<u8> = [1.0_f32; 4].iter().flat_map(|value| value.to_le_bytes()).collect();
/// let (a, b, sum) = (gpu.buffer(&ones)?, gpu.buffer(&ones)?, gpu.alloc(16)?);
/// // vectoradd(const float* a, const float* b, float* sum, int n)
/// let arguments = [a.into(), b.into(), sum.into(), 4_i32.into()];
/// gpu.launch(module, "vectoradd", Launch::of_items(100), &arguments)?;
/// assert_eq!(gpu.read(sum, 4)?, 2.0_f32.to_le_bytes());
/// assert_eq!(gpu.finish().kernels[0].waves, 2, "100 work-items, 64 in a wave");
/// # Ok::<(), wavetap::Error>(())
/// ```
pub struct Emulator {
    device: Device,
    session: Session,
    modules: Vec<LoadedModule>,
    launched: u32,
}

struct LoadedModule {
    object: LoadedObject,
    target: String,
    digest: String,
    /// What the metadata says of kernels, by their names.
    kernels: BTreeMap<String, Option<Arc<KernelMetadata>>>,
    /// The object in the session, if its kernels count.
    counting: Option<ObjectId>,
}

impl Emulator {
    /// A GPU of a processor (`gfx90a`) in strict mode: what the hardware leaves undefined is an error.
    ///
    /// # Errors
    /// Unsupported if the processor is not emulated.
    pub fn new(target: &str) -> Result<Emulator> {
        Emulator::with_options(target, Options::default())
    }

    /// The same with the emulator's options.
    ///
    /// # Errors
    /// As [`Emulator::new`].
    pub fn with_options(target: &str, options: Options) -> Result<Emulator> {
        let known = Target::by_name(target).filter(|target| target.emulated());
        let target = known.ok_or_else(|| Error::unsupported(format!("{target:?} is no processor that is emulated")))?;
        Ok(Emulator { device: Device::new(target, options), session: new_session(), modules: Vec::new(), launched: 0 })
    }

    /// The emulated device, for what is not here.
    pub fn device(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Loads the code object for this GPU's processor: of an executable, library or bundle, or a code object itself,
    /// rewritten or not.
    ///
    /// # Errors
    /// Malformed or unsupported if it cannot be read or has no code, or several code objects, for the processor.
    pub fn load(&mut self, data: &[u8]) -> Result<Module> {
        let processor = self.device.target().name().to_owned();
        let input = Input::parse(data)?;
        let selection = Selection { targets: vec![processor.clone()], ..Selection::default() };
        let found = selection.objects(&input, &[])?;
        let [found] = &found[..] else {
            let count = found.len();
            return Err(Error::unsupported(format!("{count} code objects for {processor}, one was expected")));
        };
        let code = CodeObject::parse(found.bytes)?;
        let object = self.device.load(found.bytes)?;
        let address_of = |name: &str| object.symbols.get(name).map(|symbol| symbol.address);
        let counting = self.session.attach(&EmulatedMemory(&mut self.device), &code, address_of)?;
        let original = counting.map(|id| self.session.map(id).map(|map| map.original.clone())).transpose()?;
        self.modules.push(LoadedModule {
            target: found.target_id(&code),
            digest: original.unwrap_or_else(|| digest(found.bytes)),
            kernels: code.kernels().iter().map(|kernel| (kernel.name.clone(), kernel.metadata.clone())).collect(),
            object,
            counting,
        });
        Ok(Module(self.modules.len() - 1))
    }

    /// Allocates zeroed memory and returns its address.
    ///
    /// # Errors
    /// Limit if memory is used up.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64> {
        self.device.malloc(bytes, BUFFER_ALIGN)
    }

    /// Allocates memory with these contents and returns its address.
    ///
    /// # Errors
    /// Limit if memory is used up.
    pub fn buffer(&mut self, contents: &[u8]) -> Result<u64> {
        let address = self.alloc(contents.len() as u64)?;
        self.device.write(address, contents)?;
        Ok(address)
    }

    /// The bytes at an address.
    ///
    /// # Errors
    /// Malformed if not all of them are allocated.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut contents = vec![0; bytes];
        self.device.read(address, &mut contents)?;
        Ok(contents)
    }

    /// Writes bytes at an address.
    ///
    /// # Errors
    /// Malformed if not all of them are allocated.
    pub fn write(&mut self, address: u64, contents: &[u8]) -> Result<()> {
        self.device.write(address, contents)
    }

    /// Runs a kernel to its end. Its name is the mangled one, the demangled one, or that without parameters and return
    /// type. `arguments` are those of the source; the hidden ones are filled in (counts and sizes of workgroups,
    /// offsets, dynamic LDS). Hidden addresses of services of a HIP runtime (`printf`, `malloc` in kernels, queues) are
    /// null: a kernel that uses one faults.
    ///
    /// # Errors
    /// Unsupported if no kernel or several have the name, the arguments do not fit, or the kernel cannot be launched
    /// so; otherwise what stopped the kernel, of the kind that `From<Fault>` gives it.
    pub fn launch(
        &mut self,
        module: Module,
        kernel: &str,
        launch: Launch,
        arguments: &[KernelArgument],
    ) -> Result<DispatchStats> {
        let loaded = self.modules.get(module.0).ok_or_else(|| Error::unsupported("a module of another emulator"))?;
        let (name, metadata) = named(&loaded.kernels, kernel)?;
        let name = name.to_owned();
        let shape = launch.shape();
        let dispatch = self.dispatch(loaded, &name, metadata, &shape, arguments).within(|| format!("kernel {name}"))?;
        let (dispatch, segment, align) = dispatch;
        let kernarg_address = self.device.malloc(segment.len() as u64, align)?;
        self.device.write(kernarg_address, &segment)?;
        let stats = self.run(module, &name, &Dispatch { kernarg_address, ..dispatch }, shape);
        self.device.free(kernarg_address)?;
        stats.within(|| format!("kernel {name}"))
    }

    /// Everything that is known of a dispatch before its arguments have an address; they, and their alignment.
    fn dispatch(
        &self,
        loaded: &LoadedModule,
        name: &str,
        metadata: Option<&KernelMetadata>,
        shape: &LaunchShape,
        arguments: &[KernelArgument],
    ) -> Result<(Dispatch, Vec<u8>, u64)> {
        let metadata = metadata.ok_or_else(|| Error::unsupported("the code object has no metadata of it"))?;
        check(metadata, shape, self.device.target())?;
        let kernel_object =
            loaded.object.kernel(name).ok_or_else(|| Error::malformed("its descriptor is not loaded"))?;
        let bytes =
            |bytes: u64, what: &str| u32::try_from(bytes).map_err(|_| Error::limit(format!("{bytes} bytes of {what}")));
        let stack = if metadata.uses_dynamic_stack { DYNAMIC_STACK } else { 0 };
        let lds = metadata.group_segment_fixed_size.saturating_add(shape.dynamic_lds.into());
        let mut workgroup = [0; 3];
        for (to, from) in workgroup.iter_mut().zip(shape.workgroup) {
            *to = u16::try_from(from).map_err(|_| Error::limit(format!("{from} work-items of a workgroup")))?;
        }
        let dispatch = Dispatch {
            kernel_object,
            grid: shape.grid.unwrap_or_default(),
            workgroup,
            private_segment_size: bytes(metadata.private_segment_fixed_size.saturating_add(stack), "scratch")?,
            group_segment_size: bytes(lds, "LDS")?,
            kernarg_address: 0,
            dispatch_id: self.launched.into(),
        };
        let align = metadata.kernarg_segment_align.max(ARGUMENT_ALIGN).next_power_of_two();
        Ok((dispatch, segment(metadata, shape, arguments)?, align))
    }

    /// Runs a dispatch and collects what it counts.
    fn run(&mut self, module: Module, name: &str, dispatch: &Dispatch, shape: LaunchShape) -> Result<DispatchStats> {
        let loaded = self.modules.get(module.0).ok_or_else(|| Error::unsupported("a module of another emulator"))?;
        let map = loaded.counting.map(|object| self.session.map(object).cloned()).transpose()?;
        let place = map.as_ref().and_then(|map| map.kernels.iter().position(|kernel| kernel.name == name));
        let ordinal = self.launched;
        self.launched += 1;
        let (Some(object), Some(place)) = (loaded.counting, place) else {
            if let Some((why, detail)) = without_counters(map.as_deref(), None, name) {
                self.session.collector_mut().not_counted(UncountedDispatches {
                    name: name.to_owned(),
                    demangled: demangle(name).into_owned(),
                    target: loaded.target.clone(),
                    object: loaded.digest.clone(),
                    region: None,
                    why,
                    detail,
                    dispatches: 1,
                });
            }
            return self.device.dispatch(dispatch).map_err(Error::from);
        };
        let info = DispatchInfo {
            kernel: place as u32,
            grid: dispatch.grid,
            workgroup: shape.workgroup,
            ordinal,
            region: None,
        };
        let memory = &mut EmulatedMemory(&mut self.device);
        let ticket = self.session.begin_dispatch(memory, object, &info)?;
        match self.device.dispatch(dispatch) {
            Ok(stats) => {
                self.session.end_dispatch(&mut EmulatedMemory(&mut self.device), ticket, Some(shape))?;
                Ok(stats)
            }
            Err(fault) => {
                // What it had counted is not all.
                self.session.abandon(&mut EmulatedMemory(&mut self.device), ticket)?;
                Err(fault.into())
            }
        }
    }

    /// What instrumented kernels have counted since the GPU was made, or this was last called. Dispatches of kernels
    /// that do not count are in [`Profile::uncounted`].
    pub fn finish(&mut self) -> Profile {
        let mut profile = self.session.finish();
        profile.end();
        profile
    }
}

fn new_session() -> Session {
    let options = session::Options::new(Overlap::TimeSliced, Records::PerWave);
    Session::new(Collector::new(Backend::Emulator, false), options)
}

/// The kernel of this name and what the metadata says of it.
fn named<'k>(
    kernels: &'k BTreeMap<String, Option<Arc<KernelMetadata>>>,
    name: &str,
) -> Result<(&'k str, Option<&'k KernelMetadata>)> {
    let is_named = |mangled: &str| {
        let demangled = demangle(mangled);
        [mangled, &demangled, bare_name(&demangled)].contains(&name)
    };
    let found: Vec<_> = kernels.iter().filter(|(mangled, _)| is_named(mangled)).collect();
    match found[..] {
        [(mangled, metadata)] => Ok((mangled, metadata.as_deref())),
        [] => Err(Error::unsupported(format!("no kernel is called {name:?}"))),
        _ => {
            let names: Vec<&str> = found.iter().map(|(mangled, _)| mangled.as_str()).collect();
            Err(Error::unsupported(format!("several kernels are called {name:?}: {}", names.join(", "))))
        }
    }
}

/// Refuses launches that no runtime would make.
fn check(kernel: &KernelMetadata, shape: &LaunchShape, target: Target) -> Result<()> {
    let items: u64 = shape.workgroup.iter().map(|size| u64::from(*size)).product();
    let most = u64::from(target.max_workgroup()).min(kernel.max_flat_workgroup_size);
    if items == 0 || items > most {
        return Err(Error::unsupported(format!("a workgroup of {items} work-items, 1 to {most} are possible")));
    }
    if shape.grid.is_none_or(|grid| grid.contains(&0)) {
        return Err(Error::unsupported("a grid without work-items"));
    }
    let given = shape.workgroup.map(u64::from);
    if let Some(required) = kernel.reqd_workgroup_size.filter(|required| *required != given) {
        return Err(Error::unsupported(format!("a workgroup of {given:?}, the kernel requires {required:?}")));
    }
    if let Some(clusters) = kernel.cluster_dims {
        return Err(Error::unsupported(format!("the kernel is compiled for clusters of {clusters:?} workgroups")));
    }
    let lds = kernel.group_segment_fixed_size.saturating_add(shape.dynamic_lds.into());
    if lds > u64::from(target.lds_bytes()) {
        let most = target.lds_bytes();
        return Err(Error::limit(format!("{lds} bytes of LDS, a workgroup can have {most}")));
    }
    Ok(())
}
