//! The control block of a rewritten code object, as any host treats it: through ordinary reads and writes of device memory.

use std::collections::HashMap;

use wavetap::code_object::{CodeObject, KernelMetadata};
use wavetap::emulator::{Device, LoadedObject};
use wavetap::error::{Error, Result, ResultExt};
use wavetap::profile::control::{self, Control};
use wavetap::profile::map::{Declared, ObjectMap};

use crate::settings::{Records, Settings};

/// Device memory that one object's records may take.
const MEMORY_LIMIT: u64 = 256 << 20;

/// Records that are there before the first dispatch asks for more.
const FIRST_CAPACITY: u32 = 256;

/// The control block and record buffer of a loaded object.
pub(crate) struct Counters {
    pub(crate) map: ObjectMap,
    block: u64,
    records: Records,
    stride: u32,
    buffer: u64,
    capacity: u32,
    shared: bool,
    /// The dispatch that the block is armed for now.
    owner: Option<u64>,
    /// Other dispatches in flight that count: each is given its block back while it runs.
    parked: HashMap<u64, Parked>,
}

/// What the block says of a dispatch while another one runs.
struct Parked {
    block: [u8; control::SIZE as usize],
    buffer: u64,
    capacity: u32,
    shared: bool,
}

impl Counters {
    /// Finds the control block of an object and gives it a buffer; `None` if the object was not rewritten.
    pub(crate) fn attach(device: &mut Device, object: &LoadedObject, code: &CodeObject<'_>, settings: &Settings) -> Result<Option<Self>> {
        let Some(symbol) = object.symbols.get(control::SYMBOL) else { return Ok(None) };
        let section = code.elf().section(control::MAP_SECTION);
        let section =
            section.ok_or_else(|| Error::malformed(format!("{} is there and {} is not", control::SYMBOL, control::MAP_SECTION)))?;
        let map = ObjectMap::unpack(code.elf().contents(section)?).within(|| control::MAP_SECTION.into())?;
        let mut counters = Counters {
            map,
            block: symbol.address,
            records: settings.records,
            stride: 0,
            buffer: 0,
            capacity: 0,
            shared: false,
            owner: None,
            parked: HashMap::new(),
        };
        counters.stride = counters.read(device)?.stride;
        if counters.stride == 0 || !counters.stride.is_multiple_of(8) {
            return Err(Error::malformed(format!("the control block has a record stride of {}", counters.stride)));
        }
        counters.make_room(device, FIRST_CAPACITY.into())?;
        Ok(Some(counters))
    }

    fn read(&self, device: &Device) -> Result<Control> {
        let mut block = [0; control::SIZE as usize];
        device.read(self.block, &mut block)?;
        Control::from_bytes(&block).within(|| control::SYMBOL.into())
    }

    /// Sees to it that a dispatch of `waves` waves finds its records.
    fn make_room(&mut self, device: &mut Device, waves: u64) -> Result<()> {
        let most = u32::try_from(MEMORY_LIMIT / u64::from(self.stride)).unwrap_or(u32::MAX).max(1);
        let power_below = |count: u32| 1 << count.ilog2();
        let (capacity, shared) = match self.records {
            Records::Shared(count) => (count.checked_next_power_of_two().unwrap_or(1 << 31).min(power_below(most)), true),
            Records::Dropping(count) => (count.min(most), false),
            Records::PerWave => match u32::try_from(waves) {
                Ok(waves) if waves <= self.capacity => return Ok(()),
                Ok(waves) if waves <= most => (waves.checked_next_power_of_two().unwrap_or(waves).min(most), false),
                _ => (power_below(most), true),
            },
        };
        if (capacity, shared) != (self.capacity, self.shared) {
            if self.buffer != 0 {
                device.free(self.buffer)?;
            }
            let size = u64::from(capacity) * u64::from(self.stride);
            (self.capacity, self.shared) = (capacity, shared);
            self.buffer = device.malloc(size, 64)?;
            self.clear(device, size)?;
        }
        Ok(())
    }

    fn clear(&self, device: &mut Device, size: u64) -> Result<()> {
        let zeros = vec![0; usize::try_from(size).map_err(|_| Error::limit("the record buffer is too large for this machine"))?];
        device.write(self.buffer, &zeros)
    }

    /// Keeps what the block says of the dispatch that it is armed for, if one is.
    fn park(&mut self, device: &Device) -> Result<()> {
        let Some(owner) = self.owner.take() else { return Ok(()) };
        let mut parked = Parked { block: [0; control::SIZE as usize], buffer: self.buffer, capacity: self.capacity, shared: self.shared };
        device.read(self.block, &mut parked.block)?;
        (self.buffer, self.capacity, self.shared) = (0, 0, false);
        self.parked.insert(owner, parked);
        Ok(())
    }

    /// Arms the block for a dispatch in flight that is about to run.
    pub(crate) fn install(&mut self, device: &mut Device, dispatch: u64) -> Result<()> {
        if self.owner == Some(dispatch) {
            return Ok(());
        }
        self.park(device)?;
        let missing = || Error::internal(format!("dispatch {dispatch} counts and has no control block"));
        let Parked { block, buffer, capacity, shared } = self.parked.remove(&dispatch).ok_or_else(missing)?;
        if self.buffer != 0 {
            device.free(self.buffer)?;
        }
        device.write(self.block, &block)?;
        (self.buffer, self.capacity, self.shared, self.owner) = (buffer, capacity, shared, Some(dispatch));
        Ok(())
    }

    /// Prepares the block and the buffer for a dispatch of at most `waves` waves.
    pub(crate) fn arm(&mut self, device: &mut Device, waves: u64, dispatch: u64) -> Result<()> {
        self.park(device)?;
        self.make_room(device, waves)?;
        self.owner = Some(dispatch);
        let ordinal = dispatch as u32;
        let flags = if self.shared { control::FLAG_SHARED } else { 0 };
        for (offset, value) in [
            (control::FLAGS, flags),
            (control::CAPACITY, self.capacity),
            (control::HEAD, 0),
            (control::DROPPED, 0),
            (control::DISPATCH, ordinal),
        ] {
            device.write(self.block + offset, &value.to_le_bytes())?;
        }
        device.write(self.block + control::BUFFER, &self.buffer.to_le_bytes())
    }

    /// Makes kernels count nothing until the next [`Counters::arm`] or [`Counters::install`].
    pub(crate) fn disarm(&mut self, device: &mut Device) -> Result<()> {
        self.park(device)?;
        device.write(self.block + control::BUFFER, &0_u64.to_le_bytes())
    }

    /// Reads back what a dispatch left, and clears it.
    pub(crate) fn drain(&mut self, device: &mut Device) -> Result<(Control, Vec<u8>)> {
        let control = self.read(device)?;
        if (control.buffer, control.capacity, control.stride) != (self.buffer, self.capacity, self.stride) {
            return Err(Error::malformed(format!("the control block was overwritten: {control:x?}")));
        }
        let used = u64::from(control.head.min(control.capacity)) * u64::from(self.stride);
        let mut records = vec![0; usize::try_from(used).map_err(|_| Error::limit("too many records for this machine"))?];
        device.read(self.buffer, &mut records)?;
        self.clear(device, used)?;
        self.owner = None;
        Ok((control, records))
    }

    /// The metadata of the instrumented kernels before counting code was put into them, by name, given what they say now.
    pub(crate) fn originals(&self, code: &CodeObject<'_>) -> Result<HashMap<String, KernelMetadata>> {
        let now: HashMap<&str, &KernelMetadata> =
            code.kernels().iter().filter_map(|kernel| Some((kernel.name.as_str(), kernel.metadata.as_deref()?))).collect();
        let mut originals = HashMap::new();
        for kernel in &self.map.kernels {
            let what = "it does not say what the original kernel needs; an older version wrote it: rewrite the program again";
            let missing = || Error::unsupported(format!("the site table's entry of {}: {what}", kernel.demangled));
            let declared = kernel.declared.ok_or_else(missing)?;
            if let Some(now) = now.get(kernel.name.as_str()) {
                originals.insert(kernel.name.clone(), original(&declared, now));
            }
        }
        Ok(originals)
    }

    /// The kernel's index in the site table, if it was instrumented.
    pub(crate) fn index_of(&self, kernel: &str) -> Option<u32> {
        self.map.kernels.iter().position(|mapped| mapped.name == kernel).and_then(|index| u32::try_from(index).ok())
    }
}

/// The original's metadata, given the rewritten object's.
fn original(declared: &Declared, rewritten: &KernelMetadata) -> KernelMetadata {
    KernelMetadata {
        sgpr_count: declared.sgpr_count,
        vgpr_count: declared.vgpr_count,
        agpr_count: declared.agpr_count,
        group_segment_fixed_size: declared.group_segment_fixed_size,
        private_segment_fixed_size: declared.private_segment_fixed_size,
        ..rewritten.clone()
    }
}

/// The largest number of waves that a dispatch can have: every workgroup whole.
pub(crate) fn waves(items: [u32; 3], workgroup: [u32; 3], wave_size: u32) -> u64 {
    let groups: u64 = items.iter().zip(workgroup).map(|(items, size)| u64::from(items.div_ceil(size.max(1)))).product();
    let lanes: u64 = workgroup.iter().map(|size| u64::from(*size)).product();
    groups.saturating_mul(lanes.div_ceil(wave_size.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_waves() {
        assert_eq!(waves([1000, 1, 1], [256, 1, 1], 64), 16);
        assert_eq!(waves([100, 70, 1], [32, 8, 1], 64), 4 * 9 * 4);
        assert_eq!(waves([1, 1, 1], [1, 1, 1], 64), 1);
        assert_eq!(waves([65, 3, 2], [65, 1, 2], 64), 3 * 3);
    }
}
