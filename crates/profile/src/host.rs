//! What a host had the device do: launches, copies and fills, in their order, as the emulator's HIP runtime sees them.

use serde::{Deserialize, Serialize};

use super::launches::LaunchShape;

/// So many entries of the order are kept; those that repeat the last one are one entry with it.
const MOST_STEPS: usize = 64;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostOperation {
    /// A kernel was launched.
    Launch,
    /// Bytes were copied from the host's memory to the device's. Memory that both see is the host's.
    HostToDevice,
    /// Bytes were copied from the device's memory to the host's.
    DeviceToHost,
    /// Bytes were copied within the device's memory.
    DeviceToDevice,
    /// Bytes were copied within the host's memory.
    HostToHost,
    /// Memory was filled with a value.
    Fill,
}

impl HostOperation {
    /// A copy to and from memory of the device, or else of the host.
    #[must_use]
    pub fn copy(to_device: bool, from_device: bool) -> HostOperation {
        match (from_device, to_device) {
            (false, true) => HostOperation::HostToDevice,
            (true, false) => HostOperation::DeviceToHost,
            (true, true) => HostOperation::DeviceToDevice,
            (false, false) => HostOperation::HostToHost,
        }
    }

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HostOperation::Launch => "launch",
            HostOperation::HostToDevice => "host to device",
            HostOperation::DeviceToHost => "device to host",
            HostOperation::DeviceToDevice => "device to device",
            HostOperation::HostToHost => "host to host",
            HostOperation::Fill => "fill",
        }
    }
}

/// The size of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchSize {
    /// Work-items of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of LDS that the launch added to the static LDS.
    pub dynamic_lds: u32,
}

impl LaunchSize {
    /// Of launches that are alike; none of those with several grids.
    #[must_use]
    pub fn of(shape: &LaunchShape) -> Option<LaunchSize> {
        let LaunchShape { grid, workgroup, dynamic_lds, .. } = *shape;
        grid.map(|grid| LaunchSize { grid, workgroup, dynamic_lds })
    }
}

/// Operations that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostStep {
    /// What was done.
    pub operation: HostOperation,
    /// Mangled name of the kernel of a launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// How it was launched: launches with another size are not alike. None of copies, and in older profiles, where
    /// launches of a kernel in a row are one entry whatever their sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<LaunchSize>,
    /// How often.
    pub count: u64,
    /// Bytes that were copied or filled.
    pub bytes: u64,
}

/// What a host had the device do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostActivity {
    /// All operations, by what was done.
    pub totals: Vec<HostStep>,
    /// The first ones in the order in which they began, those that repeat the last one as one; empty where profiles of
    /// several processes were added up.
    pub order: Vec<HostStep>,
    /// How many operations came after those.
    #[serde(default)]
    pub later: u64,
}

impl HostActivity {
    /// Whether nothing was done, or nothing is known of it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    /// What was done of a sort.
    #[must_use]
    pub fn total(&self, operation: HostOperation) -> Option<&HostStep> {
        self.totals.iter().find(|step| step.operation == operation)
    }

    /// Adds a copy or a fill that has begun after all other operations.
    pub fn add(&mut self, operation: HostOperation, bytes: u64) {
        self.add_step(operation, None, None, bytes);
    }

    /// Adds a launch of a kernel after all other operations.
    pub fn add_launch(&mut self, kernel: &str, size: LaunchSize) {
        self.add_step(HostOperation::Launch, Some(kernel), Some(size), 0);
    }

    fn add_step(&mut self, operation: HostOperation, kernel: Option<&str>, size: Option<LaunchSize>, bytes: u64) {
        self.add_total(operation, 1, bytes);
        let has_room = self.later == 0 && self.order.len() < MOST_STEPS;
        let is_alike =
            |last: &HostStep| last.operation == operation && last.kernel.as_deref() == kernel && last.size == size;
        match self.order.last_mut() {
            Some(last) if self.later == 0 && is_alike(last) => {
                last.count += 1;
                last.bytes = last.bytes.saturating_add(bytes);
            }
            _ if has_room => {
                self.order.push(HostStep { operation, kernel: kernel.map(str::to_owned), size, count: 1, bytes });
            }
            _ => self.later += 1,
        }
    }

    /// Adds what another process did.
    pub fn merge(&mut self, other: &HostActivity) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        other.totals.iter().for_each(|step| self.add_total(step.operation, step.count, step.bytes));
        (self.order, self.later) = (Vec::new(), 0);
    }

    fn add_total(&mut self, operation: HostOperation, count: u64, bytes: u64) {
        match self.totals.binary_search_by_key(&operation, |step| step.operation) {
            Ok(at) => {
                let step = &mut self.totals[at];
                (step.count, step.bytes) = (step.count.saturating_add(count), step.bytes.saturating_add(bytes));
            }
            Err(at) => self.totals.insert(at, HostStep { operation, kernel: None, size: None, count, bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_operations_in_a_row_are_one_entry_and_the_order_has_an_end() {
        let mut host = HostActivity::default();
        let size = LaunchSize { grid: [64, 1, 1], workgroup: [64, 1, 1], dynamic_lds: 0 };
        host.add(HostOperation::copy(true, false), 100);
        host.add(HostOperation::copy(true, false), 20);
        (0..1000).for_each(|_| host.add_launch("k", size));
        host.add(HostOperation::copy(false, true), 7);
        let entry = |operation, kernel: Option<&str>, count, bytes| HostStep {
            operation,
            kernel: kernel.map(str::to_owned),
            size: kernel.map(|_| size),
            count,
            bytes,
        };
        let order = [
            entry(HostOperation::HostToDevice, None, 2, 120),
            entry(HostOperation::Launch, Some("k"), 1000, 0),
            entry(HostOperation::DeviceToHost, None, 1, 7),
        ];
        assert_eq!((host.order.as_slice(), host.later), (&order[..], 0));
        for _ in 0..MOST_STEPS {
            host.add_launch("a", size);
            host.add_launch("b", size);
        }
        assert_eq!((host.order.len(), host.later), (MOST_STEPS, 2 * MOST_STEPS as u64 + 3 - MOST_STEPS as u64));
        let launches = host.total(HostOperation::Launch).unwrap();
        assert_eq!((launches.count, launches.kernel.as_deref()), (1000 + 2 * MOST_STEPS as u64, None));
        let mut sum = host.clone();
        sum.merge(&host);
        assert_eq!(sum.total(HostOperation::HostToDevice).map(|step| step.bytes), Some(240));
        assert!(sum.order.is_empty() && sum.later == 0, "{sum:?}");
    }

    #[test]
    fn launches_of_other_sizes_are_entries_of_their_own() {
        let mut host = HostActivity::default();
        let size = |grid| LaunchSize { grid: [grid, 1, 1], workgroup: [64, 1, 1], dynamic_lds: 0 };
        for grid in [64, 128, 128] {
            host.add_launch("k", size(grid));
        }
        let order: Vec<(Option<LaunchSize>, u64)> = host.order.iter().map(|step| (step.size, step.count)).collect();
        assert_eq!(order, [(Some(size(64)), 1), (Some(size(128)), 2)]);
    }
}
