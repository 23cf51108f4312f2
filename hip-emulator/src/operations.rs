//! Doing what a stream is given to do and takes no time, or no more than a copy.

use std::ffi::c_void;

use wavetap::profile::check::Tool;
use wavetap::profile::host::HostOperation;

use crate::begin::{Begin, End};
use crate::copies::{BoxCopy, BoxFill};
use crate::extents::Extent;
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::{Comparison, StreamOp, ValueWait};

/// Copies between device memory and the host go through a buffer of at most this size.
const CHUNK: usize = 4 << 20;

impl Runtime {
    /// Does what takes no time, or no more than a copy; gives when it ends.
    pub(crate) fn run(&mut self, operation: &StreamOp, begin: &Begin) -> Outcome<End> {
        match operation {
            StreamOp::Empty | StreamOp::Wait(_) => Ok(begin.end()),
            // When the value was written is not known: not later than all that has been done.
            StreamOp::WaitValue(_) => Ok(begin.end().and(&self.clocks.latest())),
            StreamOp::Free(address) if self.graph_memory.is_owned(*address) => Ok(begin.end()),
            StreamOp::Free(address) => {
                let end = self.note_free(*address, begin);
                // Its graph has ended; what the program has freed itself is not freed again.
                let _ = self.free(*address);
                Ok(end)
            }
            StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. } => {
                self.copy(copy)?;
                self.note_unwritten(copy, begin);
                let end = self.copied(copy, begin);
                Ok(self.note_accesses(&copy.accesses(), begin, end))
            }
            StreamOp::Staged { copy, bytes } => {
                self.copy(&copy.with_source(bytes))?;
                let end = self.copied(copy, begin);
                Ok(self.note_accesses(&copy.accesses(), begin, end))
            }
            StreamOp::Fill(fill) => {
                self.fill(fill)?;
                let bytes = fill.extent.elements().saturating_mul(fill.element.len() as u64);
                self.collection.host(&self.settings, HostOperation::Fill, bytes);
                let on_device = self.is_device_memory(fill.to.start);
                let end = begin.end_at(self.clocks.moved(begin, HostOperation::Fill, bytes, on_device));
                Ok(self.note_accesses(&fill.accesses(), begin, end))
            }
            StreamOp::Record(event) => self.streams.record(*event as *mut c_void, begin.end()).map(|()| begin.end()),
            StreamOp::Allocate { address, size } => self.make_fresh(*address, *size).map(|()| begin.end()),
            StreamOp::Release(address) => {
                let end = self.note_free(*address, begin);
                self.free(*address).map(|()| end)
            }
            StreamOp::Kernel(_) | StreamOp::Host { .. } | StreamOp::Steps(_) | StreamOp::Child(_) => Err(INVALID_VALUE),
        }
    }

    /// Records a copy that was made; gives when it ends.
    fn copied(&mut self, copy: &BoxCopy, begin: &Begin) -> End {
        let operation =
            HostOperation::copy(self.is_device_memory(copy.to.start), self.is_device_memory(copy.from.start));
        self.collection.host(&self.settings, operation, copy.extent.elements());
        begin.end_at(self.clocks.moved(begin, operation, copy.extent.elements(), true))
    }

    /// Where a copy ends that the program's own memory is the target of, which may be gone once the call returns.
    pub(crate) fn is_to_pageable(&self, operation: &StreamOp) -> bool {
        match operation {
            StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. } => self.is_pageable(copy.to.start),
            _ => false,
        }
    }

    /// What is where a stream waits for a value.
    pub(crate) fn value(&self, wait: &ValueWait) -> Outcome<u64> {
        let mut value = [0; 8];
        let into = &mut value[..wait.bytes];
        if self.is_device_memory(wait.address) {
            self.read_device(wait.address, into)?
        } else {
            raw::read(wait.address as usize, into)?
        }
        Ok(u64::from_le_bytes(value))
    }

    /// Whether memory has a value that a stream waits for.
    pub(crate) fn has_value(&self, wait: &ValueWait) -> Outcome<bool> {
        let found = self.value(wait)? & wait.mask;
        Ok(match wait.comparison {
            Comparison::AtLeast => found >= wait.value,
            Comparison::Equal => found == wait.value,
            Comparison::AnyBit => found & wait.value != 0,
            Comparison::Nor => !(found | (wait.value & wait.mask)) & wait.mask != 0,
        })
    }

    /// Copies `size` bytes. Addresses tell where they are, and a copy that leaves an allocation is refused before
    /// anything is written.
    fn copy_bytes(&mut self, to: u64, from: u64, size: usize) -> Outcome {
        if size == 0 {
            return Ok(());
        }
        let (to_device, from_device) = (self.is_device_memory(to), self.is_device_memory(from));
        if !to_device && !from_device {
            return raw::copy(to as usize, from as usize, size);
        }
        for (address, on_device) in [(to, to_device), (from, from_device)] {
            if on_device {
                self.check_range(address, size)?;
            }
        }
        let device = self.device()?;
        let mut buffer = vec![0; size.min(CHUNK)];
        // From the end when the ranges overlap that way.
        let backwards = to_device && from_device && to > from;
        let starts: Box<dyn Iterator<Item = usize>> = if backwards {
            Box::new((0..size).step_by(CHUNK).collect::<Vec<_>>().into_iter().rev())
        } else {
            Box::new((0..size).step_by(CHUNK))
        };
        for start in starts {
            let part = &mut buffer[..CHUNK.min(size - start)];
            let at = start as u64;
            if from_device {
                device.read(from + at, part).map_err(|_| INVALID_VALUE)?;
            } else {
                raw::read(from as usize + start, part)?;
            }
            if to_device {
                device.write(to + at, part).map_err(|_| INVALID_VALUE)?;
                if from_device {
                    device.copy_undefined(to + at, from + at, part.len() as u64);
                }
            } else {
                raw::write(to as usize + start, part)?;
            }
        }
        Ok(())
    }

    fn check_range(&mut self, address: u64, size: usize) -> Outcome {
        let allocation = self.device()?.allocation_of(address).ok_or(INVALID_VALUE)?;
        if size as u64 > allocation.size - (address - allocation.address) { Err(INVALID_VALUE) } else { Ok(()) }
    }

    /// Copies a box.
    fn copy(&mut self, copy: &BoxCopy) -> Outcome {
        let BoxCopy { to, from, extent, .. } = *copy;
        if extent.height.saturating_mul(extent.depth) > 1 && (extent.width > to.pitch || extent.width > from.pitch) {
            return Err(INVALID_PITCH_VALUE);
        }
        for z in 0..extent.depth {
            for y in 0..extent.height {
                self.copy_bytes(to.row(y, z)?, from.row(y, z)?, extent.width)?;
            }
        }
        Ok(())
    }

    /// Notes that a copy to the host has bytes that nothing has written, if that is checked.
    fn note_unwritten(&mut self, copy: &BoxCopy, begin: &Begin) {
        let BoxCopy { to, from, extent, .. } = *copy;
        if !self.check.as_ref().is_some_and(|check| check.wants(Tool::Init))
            || !self.is_device_memory(from.start)
            || self.is_device_memory(to.start)
        {
            return;
        }
        let Ok(device) = self.device() else { return };
        let rows = (0..extent.depth).flat_map(|z| (0..extent.height).map(move |y| (y, z)));
        let starts = rows.filter_map(|(y, z)| from.row(y, z).ok());
        let found = starts
            .filter_map(|start| device.undefined_bytes(start, extent.width as u64))
            .reduce(|(sum, first), (more, _)| (sum + more, first));
        let Some((unwritten, first)) = found else { return };
        let allocation = device.allocation_of(first);
        let (Some(check), Some(call)) = (&mut self.check, begin.call.as_deref()) else { return };
        check.unwritten(call, (unwritten, extent.elements()), (first, allocation));
    }

    /// Fills a box.
    fn fill(&mut self, fill: &BoxFill) -> Outcome {
        let Extent { width, height, depth } = fill.extent;
        if height.saturating_mul(depth) > 1 && fill.element.len().saturating_mul(width) > fill.to.pitch {
            return Err(INVALID_VALUE);
        }
        for z in 0..depth {
            for y in 0..height {
                self.fill_bytes(fill.to.row(y, z)?, &fill.element, width)?;
            }
        }
        Ok(())
    }

    /// Fills `count` elements of the pattern's size.
    fn fill_bytes(&mut self, to: u64, pattern: &[u8], count: usize) -> Outcome {
        let size = pattern.len().checked_mul(count).ok_or(INVALID_VALUE)?;
        if size == 0 {
            return Ok(());
        }
        let on_device = self.is_device_memory(to);
        if on_device {
            self.check_range(to, size)?;
        } else if to == 0 || self.host.range_of(to).is_none_or(|range| size as u64 > range.size - (to - range.address))
        {
            // Filling is an operation of the device, which sees no other host memory.
            return Err(INVALID_VALUE);
        }
        let whole = CHUNK - CHUNK % pattern.len();
        let chunk: Vec<u8> = pattern.iter().copied().cycle().take(size.min(whole)).collect();
        for start in (0..size).step_by(whole) {
            let part = &chunk[..whole.min(size - start)];
            if on_device {
                self.device()?.write(to + start as u64, part).map_err(|_| INVALID_VALUE)?;
            } else {
                raw::write(to as usize + start, part)?;
            }
        }
        Ok(())
    }
}
