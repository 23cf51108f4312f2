//! What targets say of their first-level caches.

use super::Target;

impl Target {
    /// Whether a kernel chooses that the waves of a workgroup run on different compute units (AMDGPUUsage, `TG_SPLIT`).
    #[must_use]
    pub fn has_threadgroup_split(self) -> bool {
        self.data.unified_accum
    }

    /// Whether the first-level cache has several ports that keep no order among each other, which the waves of a
    /// workgroup are divided among (gfx125x).
    #[must_use]
    pub fn has_split_cache_ports(self) -> bool {
        self.data.clusters
    }
}
