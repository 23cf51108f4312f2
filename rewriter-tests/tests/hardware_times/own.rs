//! Our own kernels beside what was measured of programs with the same algorithms and launch shapes.

use std::path::Path;

use rewriter_tests::{Failure, command, hip, place};

use crate::Compared;
use crate::rows::{self, BOARD, Modelled};

const SECONDS: u64 = 60;

/// A row of the measured ones, and what `own` is called with for it.
struct Shape {
    program: &'static str,
    arguments: &'static str,
    sizes: &'static [&'static str],
    /// How far the modelled time may be from the measured average.
    within: f64,
}

/// Errors were from 0 to 16 % when this was written.
const SHAPES: &[Shape] = &[
    Shape { program: "vectoradd", arguments: "--size 4096", sizes: &["4096"], within: 0.2 },
    Shape { program: "vectoradd", arguments: "--size 262144", sizes: &["262144"], within: 0.3 },
    Shape { program: "matrixtranspose", arguments: "--size 64", sizes: &["64"], within: 0.2 },
    Shape { program: "matrixtranspose", arguments: "--size 512", sizes: &["512"], within: 0.2 },
    Shape { program: "floydwarshall", arguments: "--nodes 16", sizes: &["16"], within: 0.2 },
    Shape { program: "fir", arguments: "--length 1024 --taps 16", sizes: &["1024", "16"], within: 0.2 },
    Shape { program: "fir", arguments: "--length 1024 --taps 64", sizes: &["1024", "64"], within: 0.2 },
    Shape { program: "kmeans", arguments: "--points 1024 --features 8", sizes: &["1024", "8"], within: 0.2 },
    Shape { program: "kmeans", arguments: "--points 1024 --features 32", sizes: &["1024", "32"], within: 0.25 },
    Shape { program: "atax", arguments: "--size 64", sizes: &["64"], within: 0.2 },
    Shape { program: "atax", arguments: "--size 192", sizes: &["192"], within: 0.25 },
    Shape { program: "spmv", arguments: "--rows 1024 --nnz 8", sizes: &["1024", "8"], within: 0.2 },
];

pub fn near() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let bitcode = folder.path().join("bitcode");
    hip::device_libraries(&bitcode)?;
    let executable = folder.path().join("own");
    let source = Path::new("rewriter-tests/tests/hardware_times/own.hip");
    hip::compile((&place::root().join(source), &executable), &bitcode, &["gfx942"], &[])?;
    let (wavetap, measured) = (command::wavetap()?, rows::measured()?);
    let mut wrong = Vec::new();
    for shape in SHAPES {
        let name = format!("{} {}", shape.program, shape.arguments);
        let row = measured.iter().find(|row| (&*row.program, &*row.arguments) == (shape.program, shape.arguments));
        let row = row.ok_or_else(|| format!("{name} was not measured"))?.clone();
        let words: Vec<&str> = [shape.program].iter().chain(shape.sizes).copied().collect();
        let modelled = rows::model(&wavetap, &executable, &words, shape.program, (["--board", BOARD], "all"), SECONDS)?;
        if let Modelled::Refused(why) = &modelled {
            return Err(format!("{name}: {why}"));
        }
        let compared = Compared { measured: row, modelled };
        let error = compared.error().ok_or_else(|| format!("{name} takes more than {SECONDS} s"))?;
        println!("{name}: modelled {:+.0} %", error * 100.0);
        if error.abs() > shape.within {
            wrong.push(format!("{name}: {:+.0} %, {:.0} % are allowed", error * 100.0, shape.within * 100.0));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Launches of many more workgroups than a device of eight compute units holds.
const LARGE: &[(&str, &[&str])] =
    &[("vectoradd", &["1048576"]), ("matrixtranspose", &["3072"]), ("fir", &["1048576", "8"])];
const SMALL_DEVICE: &str = "gfx90c";

/// Further ones, of the long tests, on the board that times were measured on.
const LARGER: &[(&str, &[&str])] = &[
    ("vectoradd", &["67108864"]),
    ("matrixtranspose", &["12288"]),
    ("fir", &["8388608", "16"]),
    ("kmeans", &["8388608", "4"]),
    ("spmv", &["4194304", "8"]),
    ("floydwarshall", &["2048"]),
];

/// How far the time from a part of the workgroups may be from that of all.
const NEAR: f64 = 0.05;

/// Compares the model of all workgroups with that of a part of them.
pub fn extrapolated() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let bitcode = folder.path().join("bitcode");
    hip::device_libraries(&bitcode)?;
    let executable = folder.path().join("own");
    let source = Path::new("rewriter-tests/tests/hardware_times/own.hip");
    hip::compile((&place::root().join(source), &executable), &bitcode, &["gfx942", SMALL_DEVICE], &[])?;
    let wavetap = command::wavetap()?;
    let (larger, seconds) = if rewriter_tests::full() { (LARGER, 3600) } else { (&[][..], 300) };
    let small = LARGE.iter().map(|each| (["--target", SMALL_DEVICE], each));
    let mut wrong = Vec::new();
    for (device, (program, sizes)) in small.chain(larger.iter().map(|each| (["--board", BOARD], each))) {
        let name = format!("{program} {} on {}", sizes.join(" "), device[1]);
        let words: Vec<&str> = [*program].iter().chain(*sizes).copied().collect();
        let cycles =
            |workgroups| match rows::model(&wavetap, &executable, &words, program, (device, workgroups), seconds) {
                Ok(Modelled::Run { cycles, extrapolated, .. }) => Ok((cycles as f64, extrapolated)),
                Ok(other) => Err(format!("{name}: {other:?}")),
                Err(failure) => Err(failure),
            };
        let ((all, none), (part, error)) = (cycles("all")?, cycles("auto")?);
        let Some(error) = error.filter(|_| none.is_none()) else {
            return Err(format!("{name}: all workgroups were modelled"));
        };
        println!("{name}: {:+.1} %, said to be within {:.1} %", (part / all - 1.0) * 100.0, f64::from(error) / 10.0);
        if (part / all - 1.0).abs() > NEAR {
            wrong.push(format!("{name}: {part} cycles, {all} of all workgroups"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
