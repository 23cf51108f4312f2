//! Tables of what probes say of a kernel, one file for each probe. The data is that of [`wavetap_explain::sections`].

mod blocks;
mod branches;
pub(crate) mod latency;
pub(crate) mod sites;
mod time;

use super::style::Style;
use wavetap_amdgpu::Target;
use wavetap_explain::Sections;

/// What the tables of a kernel have to know of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfKernel {
    /// Its processor, if that is known.
    pub target: Option<Target>,
    /// Lanes of its waves, if that is known.
    pub wave_size: Option<u32>,
    /// How often it was dispatched.
    pub dispatches: u64,
}

/// What a probe says of a kernel, as text.
trait Tables {
    /// Adds its tables.
    fn tables(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>);
}

/// The tables of a kernel.
pub(crate) fn tables(sections: &Sections, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
    // Each by its name: a section without tables is an error of the compiler.
    let Sections { branches, blocks, measured_time, measured_latency, site_tables } = sections;
    let known: [&dyn Tables; 4] = [branches, blocks, measured_time, measured_latency];
    known.iter().for_each(|section| section.tables(kernel, style, lines));
    site_tables.iter().for_each(|table| sites::lines(table, style, lines));
}
