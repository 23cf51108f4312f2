//! Modelled over measured times, both logarithmic, as an SVG.

use std::fmt::Write;

use crate::Compared;
use crate::programs::PROGRAMS;

const SIZE: f64 = 640.0;
const MARGIN: f64 = 56.0;
/// The decades of both axes, in powers of ten of a microsecond.
const DECADES: (i32, i32) = (0, 5);

fn along(microseconds: f64) -> f64 {
    let (from, to) = (f64::from(DECADES.0), f64::from(DECADES.1));
    MARGIN + (microseconds.log10().clamp(from, to) - from) / (to - from) * (SIZE - 2.0 * MARGIN)
}

fn point(measured: f64, modelled: f64) -> (f64, f64) {
    (along(measured), SIZE - along(modelled))
}

/// A line at a constant ratio.
fn ratio(text: &mut String, ratio: f64, style: &str) {
    let (least, most) = (10_f64.powi(DECADES.0), 10_f64.powi(DECADES.1));
    let from = if ratio < 1.0 { least / ratio } else { least };
    let to = if ratio > 1.0 { most / ratio } else { most };
    let ((x1, y1), (x2, y2)) = (point(from, from * ratio), point(to, to * ratio));
    let _ = writeln!(text, r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" {style}/>"#);
}

pub fn plot(all: &[Compared]) -> String {
    let width = SIZE + 170.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {SIZE}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for decade in DECADES.0..=DECADES.1 {
        let at = along(10_f64.powi(decade));
        let (near, far, label) = (MARGIN, SIZE - MARGIN, format!("{} µs", 10_u64.pow(decade.unsigned_abs())));
        let up = SIZE - at;
        let style = r##"stroke="#ddd""##;
        let _ = writeln!(text, r#"<line x1="{at:.1}" y1="{near}" x2="{at:.1}" y2="{far}" {style}/>"#);
        let _ = writeln!(text, r#"<line x1="{near}" y1="{up:.1}" x2="{far}" y2="{up:.1}" {style}/>"#);
        let _ = writeln!(text, r#"<text x="{at:.1}" y="{}" text-anchor="middle">{label}</text>"#, far + 16.0);
        let _ = writeln!(text, r#"<text x="{}" y="{:.1}" text-anchor="end">{label}</text>"#, near - 4.0, up + 4.0);
    }
    ratio(&mut text, 1.0, r##"stroke="#444""##);
    for bound in [0.75, 1.25] {
        ratio(&mut text, bound, r##"stroke="#999" stroke-dasharray="4 3""##);
    }
    let middle = SIZE / 2.0;
    let _ = writeln!(text, r#"<text x="{middle}" y="{}" text-anchor="middle">measured</text>"#, SIZE - 20.0);
    let _ = writeln!(
        text,
        r#"<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">modelled</text>"#
    );
    let mut entry = MARGIN;
    for (n, program) in PROGRAMS.iter().enumerate() {
        // Neighbours are far apart in hue; those that were kept aside are open circles.
        let color = format!("hsl({} 70% 40%)", n * 137 % 360);
        let fill = if program.finding_out { color.as_str() } else { "none" };
        let style = format!(r#"r="3" fill="{fill}" stroke="{color}""#);
        let of = all.iter().filter(|row| row.measured.program == program.name);
        for (measured, modelled) in of.filter_map(|row| Some((row.measured.average, row.time()?))) {
            let (x, y) = point(measured, modelled);
            let _ = writeln!(text, r#"<circle cx="{x:.1}" cy="{y:.1}" {style}/>"#);
        }
        let _ = writeln!(text, r#"<circle cx="{}" cy="{entry}" {style}/>"#, SIZE - 20.0);
        let _ = writeln!(text, r#"<text x="{}" y="{}">{}</text>"#, SIZE - 10.0, entry + 4.0, program.name);
        entry += 18.0;
    }
    text + "</svg>\n"
}
