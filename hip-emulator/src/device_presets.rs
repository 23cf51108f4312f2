//! Numbers of real boards, so that a program which sizes its work by what the device says behaves as it does on one.

use std::ffi::c_int;

use wavetap::emulator::Residency;
use wavetap::isa::{Board, Target};

/// What a board has beside its processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DevicePreset {
    pub(crate) processor: &'static str,
    /// Compute units or, where a workgroup runs on two of them together, such pairs: HIP's multiprocessors.
    pub(crate) multiprocessors: c_int,
    /// Peak clock in kHz.
    pub(crate) clock: c_int,
    /// Peak memory clock in kHz.
    pub(crate) memory_clock: c_int,
    /// Memory bus in bits.
    pub(crate) bus_width: c_int,
    /// Second-level cache in bytes.
    pub(crate) l2: c_int,
    pub(crate) integrated: bool,
}

const fn preset(
    processor: &'static str,
    multiprocessors: c_int,
    [clock, memory_clock]: [c_int; 2],
    bus_width: c_int,
    l2_mib: c_int,
    integrated: bool,
) -> DevicePreset {
    DevicePreset {
        processor,
        multiprocessors,
        clock: clock * 1000,
        memory_clock: memory_clock * 1000,
        bus_width,
        l2: l2_mib << 20,
        integrated,
    }
}

/// One board for each kind of processor, with the compute units and the second-level cache of one chiplet where there
/// are several. Those of gfx950, gfx1200 and gfx1201 were compared with ROCm's page "AMD GPU specifications"; the
/// others are what the boards' data sheets are known to say, and were not looked up one by one: a program sizes its
/// work by them, no result depends on them. Memory clocks are a half of the data rate of DDR and HBM2, a quarter of
/// that of HBM3 and LPDDR5X and a sixteenth of that of GDDR6, in which ROCm's tools count.
const PRESETS: &[DevicePreset] = &[
    // Radeon R9 Fury X.
    preset("gfx803", 64, [1050, 500], 4096, 2, false),
    // Radeon Vega 64.
    preset("gfx900", 64, [1630, 945], 2048, 4, false),
    // Radeon Vega 11 of a Ryzen 5 2400G.
    preset("gfx902", 11, [1250, 1467], 128, 1, true),
    // Instinct MI50.
    preset("gfx906", 60, [1725, 1000], 4096, 4, false),
    // Instinct MI100.
    preset("gfx908", 120, [1502, 1200], 4096, 8, false),
    // Instinct MI210.
    preset("gfx90a", 104, [1700, 1600], 4096, 8, false),
    // Radeon Vega 8 of a Ryzen 7 4800U.
    preset("gfx90c", 8, [1750, 1600], 128, 1, true),
    // Instinct MI300X.
    preset("gfx942", 304, [2100, 1300], 8192, 4, false),
    // Instinct MI355X.
    preset("gfx950", 256, [2400, 2000], 8192, 4, false),
    // Radeon RX 5700 XT.
    preset("gfx1010", 20, [1905, 875], 256, 4, false),
    // Radeon RX 6900 XT.
    preset("gfx1030", 40, [2250, 1000], 256, 4, false),
    // Radeon RX 7900 XTX.
    preset("gfx1100", 48, [2500, 1250], 384, 6, false),
    // Radeon 890M of a Ryzen AI 9 HX 370.
    preset("gfx1150", 8, [2900, 2000], 128, 2, true),
    // Radeon RX 9060 XT.
    preset("gfx1200", 16, [3130, 1250], 128, 4, false),
    // Radeon RX 9070 XT.
    preset("gfx1201", 32, [2970, 1250], 256, 8, false),
];

/// The board for a processor: the one that is named if it has this processor, with what is known of it; its usual one;
/// or the first of those whose processors have the most alike names.
pub(crate) fn preset_of(processor: &str, board: Option<&Board>) -> DevicePreset {
    let usual = usual_of(processor);
    let named = board.filter(|board| board.target == processor);
    let Some((board, target)) = named.and_then(|board| Some((board, Target::by_name(processor)?))) else {
        return usual;
    };
    let pairs = if target.has_wgp_mode() { 2 } else { 1 };
    DevicePreset {
        multiprocessors: (board.compute_units / pairs) as c_int,
        clock: board.clock_mhz as c_int * 1000,
        ..usual
    }
}

/// What the board has room for, by its own compute units.
pub(crate) fn residency_of(target: Target, board: Option<&Board>) -> Residency {
    let pairs = if target.has_wgp_mode() { 2 } else { 1 };
    let compute_units = preset_of(target.name(), board).multiprocessors.unsigned_abs() * pairs;
    let of_target = |board: &&Board| board.target == target.name();
    let name = match board.filter(of_target) {
        Some(board) => board.title.to_owned(),
        None => {
            let usual = Board::all().iter().find(of_target).filter(|board| board.compute_units == compute_units);
            let name = usual.map_or("a GPU", |board| board.title);
            format!("{name} with {compute_units} compute units (assumed for {}; see --board)", target.name())
        }
    };
    Residency { compute_units, board: name.into() }
}

fn usual_of(processor: &str) -> DevicePreset {
    let alike =
        |board: &&DevicePreset| board.processor.bytes().zip(processor.bytes()).take_while(|(a, b)| a == b).count();
    let mut best = PRESETS[0];
    for board in PRESETS {
        if alike(&board) > alike(&&best) {
            best = *board;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_without_a_board_get_a_relative() {
        for (processor, board) in [
            ("gfx90a", "gfx90a"),
            ("gfx1036", "gfx1030"),
            ("gfx1103", "gfx1100"),
            ("gfx1201", "gfx1201"),
            ("gfx801", "gfx803"),
            ("gfx941", "gfx942"),
        ] {
            assert_eq!(preset_of(processor, None).processor, board, "{processor}");
        }
    }

    #[test]
    fn a_board_has_its_compute_units_and_its_clock() {
        for (processor, board, expected) in [
            ("gfx942", "mi300a", (228, 2_100_000)),
            ("gfx90a", "mi250x", (110, 1_700_000)),
            ("gfx1201", "rx9070", (28, 2_520_000)),
            // Another processor's.
            ("gfx90a", "mi300a", (104, 1_700_000)),
        ] {
            let preset = preset_of(processor, Board::by_name(board));
            assert_eq!((preset.multiprocessors, preset.clock), expected, "{board}");
        }
    }

    /// A program that asks how many compute units there are gets those that its time is modelled with.
    #[test]
    fn the_timing_model_has_the_same_machines() {
        use wavetap::isa::MachineFact;
        for board in PRESETS {
            let target = Target::by_name(board.processor).unwrap();
            let pairs = if target.has_wgp_mode() { 2 } else { 1 };
            assert_eq!(
                target.machine(MachineFact::ComputeUnits).typical as c_int,
                pairs * board.multiprocessors,
                "{}",
                board.processor
            );
            assert_eq!(target.machine(MachineFact::L2Bytes).typical as c_int, board.l2, "{}", board.processor);
        }
    }
}
