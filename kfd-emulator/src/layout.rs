//! Where the fields of the structures are that the kernel's interface, the runtime and the hardware share: sizes and
//! offsets, by their names in `linux/kfd_ioctl.h` and in the HSA headers. A test compares them with these headers.

use std::marker::PhantomData;

/// A field: where it is.
pub(crate) struct Field<T> {
    /// Offset in bytes.
    pub(crate) at: u64,
    of: PhantomData<T>,
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

impl<T> Field<T> {
    const fn new(at: u64) -> Self {
        Field { at, of: PhantomData }
    }

    /// Its address in a structure on the device, which may be at any address.
    pub(crate) const fn of(self, structure: u64) -> u64 {
        structure.wrapping_add(self.at)
    }
}

/// A structure that the caller passes: its bytes, of which an older or newer caller may have fewer or more.
pub(crate) struct Record<'r>(pub(crate) &'r mut [u8]);

impl Record<'_> {
    fn place<const N: usize>(&mut self, at: u64) -> Option<&mut [u8; N]> {
        self.0.get_mut(at as usize..)?.first_chunk_mut()
    }

    /// A field; 0 where the caller's structure has none.
    pub(crate) fn word(&self, field: Field<u32>) -> u32 {
        let bytes = self.0.get(field.at as usize..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    /// A field; 0 where the caller's structure has none.
    pub(crate) fn double(&self, field: Field<u64>) -> u64 {
        let bytes = self.0.get(field.at as usize..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// Sets a field if the caller's structure has it.
    pub(crate) fn set_word(&mut self, field: Field<u32>, value: u32) {
        if let Some(bytes) = self.place(field.at) {
            *bytes = value.to_ne_bytes();
        }
    }

    /// Sets a field if the caller's structure has it.
    pub(crate) fn set_double(&mut self, field: Field<u64>, value: u64) {
        if let Some(bytes) = self.place(field.at) {
            *bytes = value.to_ne_bytes();
        }
    }
}

/// A structure's name in C, and each field's with its offset and size.
#[cfg(test)]
type Described = (&'static str, &'static [(&'static str, u64, usize)]);

macro_rules! structures {
    ($($(#[$doc:meta])* $module:ident = $structure:literal { $($field:ident: $type:ty = $at:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[allow(non_upper_case_globals)]
            pub(crate) mod $module {
                use super::Field;
                $(pub(crate) const $field: Field<$type> = Field::new($at);)*
            }
        )*

        /// All structures.
        #[cfg(test)]
        const STRUCTURES: &[Described] =
            &[$(($structure, &[$((stringify!($field), $at, size_of::<$type>()),)*]),)*];
    };
}

/// How often a signal was set, at the start of an element of [`event_data`].
pub(crate) const LAST_EVENT_AGE: Field<u64> = Field::new(0);

/// `mode_mask` of `AMDKFD_IOC_RUNTIME_ENABLE` (`struct kfd_ioctl_runtime_enable_args`, which older headers do not
/// have).
pub(crate) const RUNTIME_MODE_MASK: Field<u32> = Field::new(8);

structures! {
    /// `AMDKFD_IOC_GET_VERSION`.
    version = "struct kfd_ioctl_get_version_args" { major_version: u32 = 0, minor_version: u32 = 4, }
    /// `AMDKFD_IOC_CREATE_QUEUE`.
    create_queue = "struct kfd_ioctl_create_queue_args" {
        ring_base_address: u64 = 0,
        write_pointer_address: u64 = 8,
        read_pointer_address: u64 = 16,
        doorbell_offset: u64 = 24,
        ring_size: u32 = 32,
        gpu_id: u32 = 36,
        queue_type: u32 = 40,
        queue_id: u32 = 52,
    }
    /// `AMDKFD_IOC_DESTROY_QUEUE`.
    destroy_queue = "struct kfd_ioctl_destroy_queue_args" { queue_id: u32 = 0, }
    /// `AMDKFD_IOC_GET_CLOCK_COUNTERS`.
    clocks = "struct kfd_ioctl_get_clock_counters_args" {
        gpu_clock_counter: u64 = 0,
        cpu_clock_counter: u64 = 8,
        system_clock_counter: u64 = 16,
        system_clock_freq: u64 = 24,
    }
    /// An element of what `AMDKFD_IOC_GET_PROCESS_APERTURES_NEW` fills.
    aperture = "struct kfd_process_device_apertures" {
        lds_base: u64 = 0,
        lds_limit: u64 = 8,
        scratch_base: u64 = 16,
        scratch_limit: u64 = 24,
        gpuvm_base: u64 = 32,
        gpuvm_limit: u64 = 40,
        gpu_id: u32 = 48,
        pad: u32 = 52,
    }
    /// `AMDKFD_IOC_GET_PROCESS_APERTURES_NEW`.
    apertures = "struct kfd_ioctl_get_process_apertures_new_args" {
        kfd_process_device_apertures_ptr: u64 = 0,
        num_of_nodes: u32 = 8,
    }
    /// `AMDKFD_IOC_CREATE_EVENT`.
    create_event = "struct kfd_ioctl_create_event_args" {
        event_page_offset: u64 = 0,
        event_trigger_data: u32 = 8,
        event_type: u32 = 12,
        auto_reset: u32 = 16,
        event_id: u32 = 24,
        event_slot_index: u32 = 28,
    }
    /// `AMDKFD_IOC_DESTROY_EVENT`, `…_SET_EVENT` and `…_RESET_EVENT`.
    event = "struct kfd_ioctl_destroy_event_args" { event_id: u32 = 0, }
    /// `AMDKFD_IOC_WAIT_EVENTS`.
    wait_events = "struct kfd_ioctl_wait_events_args" {
        events_ptr: u64 = 0,
        num_events: u32 = 8,
        wait_for_all: u32 = 12,
        timeout: u32 = 16,
        wait_result: u32 = 20,
    }
    /// An element of the array that it waits for; of signals the first 8 bytes are how often they were set
    /// (`last_event_age`, which older headers do not have).
    event_data = "struct kfd_event_data" { event_id: u32 = 40, }
    /// What it says of a memory exception, at the start of the element.
    memory_exception = "struct kfd_hsa_memory_exception_data" { va: u64 = 16, gpu_id: u32 = 24, ErrorType: u32 = 28, }
    /// How the exception came, at the start of that.
    exception_failure = "struct kfd_memory_exception_failure" {
        NotPresent: u32 = 0,
        ReadOnly: u32 = 4,
        NoExecute: u32 = 8,
        imprecise: u32 = 12,
    }
    /// `AMDKFD_IOC_GET_TILE_CONFIG`.
    tile_config = "struct kfd_ioctl_get_tile_config_args" {
        num_tile_configs: u32 = 16,
        num_macro_tile_configs: u32 = 20,
        gb_addr_config: u32 = 28,
        num_banks: u32 = 32,
        num_ranks: u32 = 36,
    }
    /// `AMDKFD_IOC_ALLOC_MEMORY_OF_GPU`.
    alloc = "struct kfd_ioctl_alloc_memory_of_gpu_args" {
        va_addr: u64 = 0,
        size: u64 = 8,
        handle: u64 = 16,
        mmap_offset: u64 = 24,
        gpu_id: u32 = 32,
        flags: u32 = 36,
    }
    /// `AMDKFD_IOC_FREE_MEMORY_OF_GPU`.
    free = "struct kfd_ioctl_free_memory_of_gpu_args" { handle: u64 = 0, }
    /// `AMDKFD_IOC_MAP_MEMORY_TO_GPU` and `AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU`.
    map = "struct kfd_ioctl_map_memory_to_gpu_args" {
        handle: u64 = 0,
        device_ids_array_ptr: u64 = 8,
        n_devices: u32 = 16,
        n_success: u32 = 20,
    }
    /// `AMDKFD_IOC_SET_XNACK_MODE`: 1, 0, or less than 0 to ask.
    xnack = "struct kfd_ioctl_set_xnack_mode_args" { xnack_enabled: u32 = 0, }
    /// `AMDKFD_IOC_AVAILABLE_MEMORY`.
    available = "struct kfd_ioctl_get_available_memory_args" { available: u64 = 0, gpu_id: u32 = 8, }
    /// A queue of the runtime.
    amd_queue = "amd_queue_t" {
        write_dispatch_id: u64 = 56,
        queue_inactive_signal: u64 = 192,
    }
    /// A signal of the runtime.
    amd_signal = "amd_signal_t" {
        value: u64 = 8,
        event_mailbox_ptr: u64 = 16,
        event_id: u32 = 24,
        start_ts: u64 = 32,
        end_ts: u64 = 40,
    }
    /// A packet of dependences.
    barrier = "hsa_barrier_and_packet_t" { dep_signal: [u64; 5] = 8, completion_signal: u64 = 56, }
    /// AMD's packet that waits for a value (`hsa_amd_barrier_value_packet_t`).
    barrier_value = "hsa_amd_barrier_value_packet_t" {
        signal: u64 = 8,
        value: u64 = 16,
        mask: u64 = 24,
        cond: u32 = 32,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::process::Command;

    use super::*;

    /// The compiler is asked whether the headers have the fields there.
    #[test]
    fn fields_are_where_the_headers_have_them() {
        let headers =
            ["linux/kfd_ioctl.h", "hsa/hsa.h", "hsa/hsa_ext_amd.h", "hsa/amd_hsa_queue.h", "hsa/amd_hsa_signal.h"];
        let mut source: String =
            headers.iter().fold("#include <stddef.h>\n".into(), |text, header| format!("{text}#include <{header}>\n"));
        for (structure, fields) in STRUCTURES {
            for (field, at, size) in *fields {
                writeln!(
                    source,
                    "_Static_assert(offsetof({structure}, {field}) == {at} && \
                     sizeof((({structure} *)0)->{field}) == {size}, \"{structure}.{field}\");"
                )
                .expect("a string takes all");
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("offsets.c");
        std::fs::write(&file, source).expect("a file");
        // The driver's header includes the graphics drivers', which not every machine has, and whose types it uses.
        let drm = folder.path().join("drm");
        std::fs::create_dir(&drm).expect("a folder");
        std::fs::write(drm.join("drm.h"), "#include <linux/types.h>\n").expect("a file");
        let compiler =
            Command::new("clang-19").args(["-fsyntax-only", "-w", "-idirafter"]).args([folder.path(), &file]).output();
        let output = compiler.expect("clang-19 runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
