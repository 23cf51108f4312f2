//! The roofline of the kernels of a file: what they executed, on a board.

use super::mix::mix;
use wavetap_amdgpu::{Board, Target};
use wavetap_base::error::Result;
use wavetap_explain::roofline::{BoardRoofs, KernelRoofline, MeasuredRoofs, RooflineReport, SCHEMA};
use wavetap_object::selection::Selection;
use wavetap_profile::file::Profile;
use wavetap_profile::time::TimeProfile;

/// What a roofline is made from besides the file.
#[derive(Debug, Clone)]
pub struct RooflineInputs<'a> {
    /// Counts of blocks.
    pub profile: &'a Profile,
    /// Modelled time of a run of the same program.
    pub time: Option<&'a TimeProfile>,
    /// The board that was named: it is that of its target.
    pub board: Option<&'static Board>,
    /// Roofs that were measured.
    pub measured: Option<MeasuredRoofs>,
}

/// The roofline of the selected kernels of an input.
///
/// # Errors
/// As [`mix()`](super::mix()).
pub fn roofline(data: &[u8], selection: &Selection, inputs: &RooflineInputs<'_>) -> Result<RooflineReport> {
    let mix = mix(data, selection, inputs.profile)?;
    let mut report = RooflineReport {
        schema: SCHEMA.to_owned(),
        complete: mix.complete,
        boards: Vec::new(),
        measured: inputs.measured.clone(),
        kernels: Vec::new(),
        left_out: mix.not_counted,
        unread: mix.unread,
    };
    for kernel in &mix.kernels {
        let target = Target::by_name(kernel.target.split(':').next().unwrap_or_default())
            .and_then(|target| target.with_wave_size(kernel.wave_size));
        let named = inputs.board.filter(|board| target.is_some_and(|target| target.name() == board.target));
        let board = named.or_else(|| Board::of_target(target?));
        let (Some(target), Some(board)) = (target, board) else {
            report.left_out.push(kernel.demangled.clone());
            continue;
        };
        let of_kernel =
            |time: &&wavetap_profile::time::KernelTime| time.object == kernel.object && time.name == kernel.name;
        let time = inputs.time.and_then(|time| time.kernels.iter().find(of_kernel));
        let known = report.boards.iter().position(|known| known.target == kernel.target);
        let place = known.unwrap_or_else(|| {
            let measured = inputs.measured.as_ref();
            report.boards.push(BoardRoofs::new(&kernel.target, target, board, named.is_some(), measured));
            report.boards.len() - 1
        });
        report.kernels.push(KernelRoofline::new(kernel, target, &report.boards[place], time));
    }
    // Of a kernel that was counted the file may have code for other targets, too.
    let counted = &report.kernels;
    report.left_out.retain(|name| !counted.iter().any(|kernel| kernel.demangled == *name));
    Ok(report)
}
