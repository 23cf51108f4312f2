//! What kernels leave in memory, to compare it with that of other orders of workgroups and waves.

use wavetap::code_object::demangle;
use wavetap::collect::check::Outputs;
use wavetap::emulator::{Device, LastWrite};
use wavetap::profile::check::{
    Access, AccessKind, Allocation, Class, CodePlace, Executor, Finding, Line, Output, OutputPage,
};

use super::Check;

/// Bytes of memory of a launch that are written down.
const MOST_BYTES: usize = 64 << 20;

impl Check {
    /// A kernel has ended, and whether others go on. `complete` adds the kernel's name and source lines.
    pub(crate) fn ended(
        &mut self,
        (device, launch, kernel): (&mut Device, u64, &str),
        others_go_on: bool,
        complete: impl FnOnce(&mut Finding, &LastWrite),
    ) {
        let Some(outputs) = self.config.outputs else { return };
        self.kernels.push(demangle(kernel).into_owned());
        if others_go_on {
            return;
        }
        let kernels = std::mem::take(&mut self.kernels);
        let digest = device.digest_of_written_memory();
        self.recorder.output(&Line::Output(Output { launch, kernels, digest }));
        match outputs {
            Outputs::Pages { launch: wanted } if wanted == launch => self.pages(device),
            Outputs::Byte { launch: wanted, address } if wanted == launch => {
                if let Some((finding, write)) = written(device, launch, address) {
                    let allocations = &self.allocations;
                    self.recorder.add(finding, |finding| {
                        complete(finding, &write);
                        allocations.add_calls(finding);
                    });
                }
            }
            _ => {}
        }
    }

    fn pages(&mut self, device: &Device) {
        let mut written = 0;
        for (address, bytes) in device.written_memory() {
            written += bytes.len();
            if written > MOST_BYTES {
                break;
            }
            let bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            self.recorder.output(&Line::Page(OutputPage { address, bytes }));
        }
    }
}

/// The finding that says what has written a byte.
fn written(device: &mut Device, launch: u64, address: u64) -> Option<(Finding, LastWrite)> {
    let write = device.last_write(address)?;
    let mut finding = Finding::new(Class::OrderDependent, String::new());
    let size = write.size.clamp(1, 8) as u64;
    finding.access =
        Some(Access { kind: AccessKind::Store, address: format!("{:#x}", address / size * size), size: size as u32 });
    finding.at = Some(CodePlace {
        kernel: String::new(),
        address: write.address,
        instruction: write.instruction.to_owned(),
        source: None,
        function: None,
        inlined_at: Vec::new(),
    });
    finding.by = Some(Executor { launch, workgroup: write.workgroup, wave: write.wave, lanes: Vec::new() });
    finding.allocation = device.allocation_of(address).map(|memory| Allocation {
        address: memory.address,
        size: memory.size,
        offset: (address / size * size).wrapping_sub(memory.address) as i64,
        variable: None,
        made: None,
        freed: None,
    });
    Some((finding, write))
}
