//! Heat maps: how many waves access what of an array. The page has each map as compact data, which its script draws,
//! and for readers without scripts an overview as SVG and the commonest sorts of lines as a table.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::parts::{data_table, share_text};
use super::{NONCE, Page, Shown};
use crate::memory::{HeatMap, HeatPattern, RecordedArray, RecordedMemory};
use crate::style::{counted, place};
use crate::table::grouped;
use wavetap_base::leb128;

/// Steps of the colour scale.
const STEPS: u32 = 8;
/// Parts of an array in the overview.
const BUCKETS: usize = 128;
/// Sorts of lines in the table.
const PATTERNS: usize = 12;
/// Sizes in the overview, in units of its drawing.
const BUCKET: usize = 6;
const HEIGHT: usize = 48;
const AXIS: usize = 40;
/// So that the text has room.
const NARROWEST: usize = 380;

/// The heat maps of all arrays that have one.
pub(super) fn section(page: &Page<'_>, shown: &Shown<'_>, recorded: &RecordedMemory) -> Markup {
    if recorded.arrays.is_empty() {
        return Markup::default();
    }
    html! {
        details.part {
            summary { h3 { "Arrays and heat maps" } }
            p.facts {
                "How many waves of the first recorded workgroup access each word of four bytes, and each line. Many \
                    waves on a line of which each needs a word or two are many requests for one line; words that no \
                    wave accesses are fetched for nothing."
            }
            @for (number, array) in recorded.arrays.iter().enumerate() {
                (array_part(page, shown, (number, array), page.room.for_maps() / 2))
            }
        }
    }
}

/// `most` is what its map may have in bytes.
fn array_part(page: &Page<'_>, shown: &Shown<'_>, (number, array): (usize, &RecordedArray), most: usize) -> Markup {
    html! {
        section.array id=(format!("{}-heat-{number}", shown.id)) {
            h4 { (array.name) }
            p.facts {
                "from " code { (format!("{:#x}", array.begin)) }
                @if let Some(bytes) = array.bytes { " · " (counted(bytes, "byte", "bytes")) }
                " · " (counted(array.words, "word", "words")) " accessed"
                @if let Some(touched) = array.touched { " (" (share_text(touched)) ")" }
                " · " (grouped(array.shared_words)) " by several workgroups · "
                (format!("{:.1}", array.reuse)) " executions a word"
            }
            @if let Some(heat) = array.heat.as_ref().filter(|heat| !heat.runs.is_empty()) {
                (overview(array, heat))
                (patterns(heat))
                (data(page, shown, array, most))
            } @else {
                p { "No line of it was accessed by the first workgroup." }
            }
        }
    }
}

/// The most waves on a line.
fn most_waves(heat: &HeatMap) -> u32 {
    heat.patterns.iter().map(|pattern| u32::from(pattern.sector)).max().unwrap_or(0)
}

/// The step of the colour scale: 0 where no wave is, then 1 to [`STEPS`] up to the most.
fn step(waves: u8, most: u32) -> u32 {
    (u32::from(waves) * STEPS).div_ceil(most.max(1)).min(STEPS)
}

fn used(pattern: &HeatPattern) -> usize {
    pattern.words.iter().filter(|waves| **waves > 0).count()
}

/// A part of an array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bucket {
    waves: u8,
    sectors: u64,
    used: u64,
}

/// The array from its first accessed line to its last in equal parts.
fn buckets(heat: &HeatMap) -> Vec<Bucket> {
    let bytes = u64::from(heat.sector_bytes.max(1));
    let begin = heat.runs.first().map_or(0, |run| run.address / bytes);
    let end = heat.runs.iter().map(|run| run.address / bytes + run.sectors).max().unwrap_or(begin);
    let span = (end - begin).max(1);
    let count = span.min(BUCKETS as u64);
    let mut all = vec![Bucket::default(); count as usize];
    let bucket_of = |sector: u64| u128::from(sector) * u128::from(count) / u128::from(span);
    for run in &heat.runs {
        let Some(pattern) = heat.patterns.get(run.pattern as usize) else { continue };
        let mut sector = run.address / bytes - begin;
        let last = sector + run.sectors;
        while sector < last {
            let number = bucket_of(sector);
            // The first sector of the next bucket.
            let next = ((number + 1) * u128::from(span)).div_ceil(u128::from(count)) as u64;
            let sectors = next.min(last) - sector;
            let bucket = &mut all[(number as usize).min(count as usize - 1)];
            bucket.waves = bucket.waves.max(pattern.sector);
            bucket.sectors += sectors;
            bucket.used += sectors * used(pattern) as u64;
            sector += sectors;
        }
    }
    all
}

fn overview(array: &RecordedArray, heat: &HeatMap) -> Markup {
    let all = buckets(heat);
    let most = most_waves(heat).max(1);
    let words = (heat.sector_bytes / 4).max(1);
    let width = (AXIS + all.len() * BUCKET).max(NARROWEST);
    // Buckets that look the same are one bar.
    let mut bars: Vec<(usize, usize, Bucket)> = Vec::new();
    for (at, bucket) in all.iter().enumerate() {
        match bars.last_mut() {
            Some((_, end, last)) if last == bucket => *end = at + 1,
            _ => bars.push((at, at + 1, *bucket)),
        }
    }
    let bar = |(begin, end): (usize, usize), share: f64, top: usize, step: u32, title: String| {
        let height = (share * HEIGHT as f64).max(1.0);
        let y = (top + HEIGHT) as f64 - height;
        html! {
            rect class=(format!("h{step}")) x=(AXIS + begin * BUCKET) y=(format!("{y:.1}"))
                width=((end - begin) * BUCKET - 1) height=(format!("{height:.1}")) { title { (title) } }
        }
    };
    let second = HEIGHT + 22;
    html! {
        svg.heat viewBox=(format!("0 0 {width} {}", second + HEIGHT + 4))
            style=(format!("max-width:{}px", width * 5 / 4)) role="img"
            aria-label=(format!("{}: waves on a line and used words, by address", array.name)) {
            text x="0" y="10" { (most) } text x="0" y=(HEIGHT) { "0" }
            text x=(AXIS) y=(HEIGHT + 12) { "most waves on a line ↑   used words, of those of accessed lines ↓" }
            text x="0" y=(second + 10) { "100 %" } text x="0" y=(second + HEIGHT) { "0 %" }
            @for (begin, end, bucket) in bars {
                @if bucket.sectors > 0 {
                    @let share = bucket.used as f64 / (bucket.sectors * u64::from(words)) as f64;
                    @let lines = counted(bucket.sectors * (end - begin) as u64, "line", "lines");
                    @let waves = counted(bucket.waves.into(), "wave", "waves");
                    @let height = f64::from(bucket.waves) / f64::from(most);
                    (bar((begin, end), height, 0, step(bucket.waves, most),
                        format!("{lines}, up to {waves}")))
                    @let used = format!("{lines}, {} of the words", share_text(share));
                    (bar((begin, end), share, second, STEPS / 2, used))
                }
            }
        }
    }
}

/// The commonest sorts of lines, a cell for each word.
fn patterns(heat: &HeatMap) -> Markup {
    let mut sectors: BTreeMap<u32, u64> = BTreeMap::new();
    heat.runs.iter().for_each(|run| *sectors.entry(run.pattern).or_default() += run.sectors);
    let all: u64 = sectors.values().sum();
    let mut order: Vec<(u32, u64)> = sectors.into_iter().collect();
    order.sort_by_key(|(pattern, sectors)| (Reverse(*sectors), *pattern));
    let most = most_waves(heat);
    let head = html! {
        th.n { "Lines" } th.n { "Share" } th.n title="waves that access the line" { "Waves" }
        th.n { "Words used" } th title="4 × 3: four waves on each of three words" { "Waves on the words, in order" }
    };
    let rows = html! {
        @for (number, sectors) in order.iter().take(PATTERNS) {
            @if let Some(pattern) = heat.patterns.get(*number as usize) {
                tr {
                    td.n { (grouped(*sectors)) } td.n { (share_text(*sectors as f64 / all.max(1) as f64)) }
                    td.n { (pattern.sector) } td.n { (used(pattern)) " of " (pattern.words.len()) }
                    td.words {
                        @for words in pattern.words.chunk_by(|one, other| one == other) {
                            span class=(format!("h{}", step(words[0], most))) {
                                (words[0]) @if words.len() > 1 { " × " (words.len()) }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        p.facts {
            "Workgroup " (heat.workgroup.map(|axis| axis.to_string()).join(", ")) ": "
            (counted(all, "line", "lines")) " of " (heat.sector_bytes) " bytes look like "
            (counted(heat.patterns.len() as u64, "sort", "sorts")) " of line"
            @if order.len() > PATTERNS { "; the " (PATTERNS) " commonest" }
            "."
        }
        (data_table("Sorts of lines", "patterns", &head, &rows))
    }
}

/// A heat map as the script reads it.
#[derive(Serialize)]
struct HeatData<'h> {
    /// Anchor of the kernel.
    kernel: &'h str,
    array: &'h str,
    /// Bytes of a line.
    bytes: u32,
    /// The most waves on a line.
    waves: u32,
    /// Base64: for each pattern its words and the line, a byte each.
    patterns: String,
    /// Base64 of LEB128 numbers: for each run the lines since the end of the one
    /// before (for the first since address 0), lines, pattern, set of instructions.
    runs: String,
    /// Instructions by set, as hexadecimal numbers.
    sites: Vec<Vec<String>>,
    /// Their source lines.
    places: BTreeMap<String, String>,
}

/// The map itself, as much of it as these bytes have room for.
fn data(page: &Page<'_>, shown: &Shown<'_>, array: &RecordedArray, most: usize) -> Markup {
    let Some(heat) = &array.heat else { return Markup::default() };
    let mut kept = heat.runs.len();
    let mut text = json(page, shown, array, heat, kept);
    while text.len() > most && kept > 0 {
        kept /= 2;
        text = json(page, shown, array, heat, kept);
    }
    if kept > 0 {
        page.room.take_map(text.len());
    }
    let all: u64 = heat.runs.iter().map(|run| run.sectors).sum::<u64>() + heat.left_out;
    let drawn: u64 = heat.runs.iter().take(kept).map(|run| run.sectors).sum();
    html! {
        @if drawn < all {
            p.note {
                "The map has the first " (grouped(drawn)) " of " (grouped(all)) " lines, because the page would be \
                    too large. " code { "wavetap memory FILE --counters ACCESSES --format json" } " has more."
            }
        }
        @if kept > 0 {
            div.map {
                script type="application/json" nonce=(NONCE) { (PreEscaped(text)) }
                noscript { p.facts { "With scripts this page shows every line, and which instructions access it." } }
            }
        }
    }
}

fn json(page: &Page<'_>, shown: &Shown<'_>, array: &RecordedArray, heat: &HeatMap, kept: usize) -> String {
    let (patterns, runs) = encoded(heat, kept);
    let hex = |set: &Vec<crate::disassembly::HexAddress>| set.iter().map(|at| format!("{:x}", at.0)).collect();
    let known = page.code_of(shown.kernel).and_then(|known| known.memory.as_ref());
    let accesses = known.map(|memory| memory.accesses.as_slice()).unwrap_or_default();
    let data = HeatData {
        kernel: &shown.id,
        array: &array.name,
        bytes: heat.sector_bytes,
        waves: most_waves(heat),
        patterns,
        runs,
        sites: heat.sites.iter().map(hex).collect(),
        places: accesses
            .iter()
            .filter(|access| heat.sites.iter().flatten().any(|site| site.0 == access.address))
            .map(|access| (format!("{:x}", access.address), place(access.source.as_ref())))
            .filter(|(_, place)| !place.is_empty())
            .collect(),
    };
    escaped(&serde_json::to_string(&data).unwrap_or_default())
}

/// The patterns and the runs of [`HeatData`].
fn encoded(heat: &HeatMap, kept: usize) -> (String, String) {
    let bytes = u64::from(heat.sector_bytes.max(1));
    let mut numbers: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut runs, mut patterns, mut end) = (Vec::new(), Vec::new(), 0_u64);
    for run in heat.runs.iter().take(kept) {
        let Some(pattern) = heat.patterns.get(run.pattern as usize) else { continue };
        let next = numbers.len() as u64;
        let number = *numbers.entry(run.pattern).or_insert_with(|| {
            patterns.extend(pattern.words.iter().chain([&pattern.sector]));
            next
        });
        let begin = run.address / bytes;
        for value in [begin.saturating_sub(end), run.sectors, number, run.sites.into()] {
            leb128::put(&mut runs, value);
        }
        end = begin + run.sectors;
    }
    (BASE64.encode(&patterns), BASE64.encode(&runs))
}

/// JSON that no browser takes for the end of a script, or for markup.
pub(super) fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HeatRun;

    #[test]
    fn patterns_and_runs_are_what_the_script_reads() {
        let pattern = |words: [u8; 2], sector| HeatPattern { words: words.to_vec(), sector };
        let run = |address, sectors, pattern, sites| HeatRun { address, sectors, pattern, sites };
        let heat = HeatMap {
            dispatch: 0,
            workgroup: [0; 3],
            sector_bytes: 8,
            patterns: vec![pattern([1, 2], 2), pattern([0, 255], 255)],
            runs: vec![run(8 * 300, 2, 1, 0), run(8 * 302, 128, 0, 1), run(8 * 431, 1, 1, 9)],
            sites: vec![],
            left_out: 0,
        };
        // Patterns in the order in which runs first have them: bytes 00 ff ff, 01 02 02. Runs: ac 02 (300), 2, 0, 0; 0,
        // 80 01 (128), 1, 1; 1, 1, 0, 9. In the alphabet of RFC 4648.
        assert_eq!(encoded(&heat, 3), ("AP//AQIC".to_owned(), "rAICAAAAgAEBAQEBAAk=".to_owned()));
        assert_eq!(encoded(&heat, 1), ("AP//".to_owned(), "rAICAAA=".to_owned()));
    }

    #[test]
    fn json_ends_no_script() {
        assert_eq!(escaped(r#"{"a":"</script><!--&"}"#), r#"{"a":"\u003c/script\u003e\u003c!--\u0026"}"#);
    }

    #[test]
    fn every_line_is_in_one_bucket() {
        let pattern =
            |used: usize, sector| HeatPattern { words: (0..8).map(|word| u8::from(word < used)).collect(), sector };
        let run = |sector: u64, sectors, pattern| HeatRun { address: sector * 32, sectors, pattern, sites: 0 };
        let heat = |runs| HeatMap {
            dispatch: 0,
            workgroup: [0; 3],
            sector_bytes: 32,
            patterns: vec![pattern(8, 1), pattern(2, 7)],
            runs,
            sites: vec![],
            left_out: 0,
        };
        // Fewer lines than buckets: one each.
        let few = buckets(&heat(vec![run(100, 2, 0), run(103, 1, 1)]));
        let expected = [(1, 1, 8), (1, 1, 8), (0, 0, 0), (7, 1, 2)];
        assert_eq!(few, expected.map(|(waves, sectors, used)| Bucket { waves, sectors, used }));
        let many = buckets(&heat(vec![run(5, 999, 0), run(2000, 1, 1)]));
        assert_eq!(many.len(), BUCKETS);
        assert_eq!(many.iter().map(|bucket| bucket.sectors).sum::<u64>(), 1000);
        assert_eq!((many[0].waves, many[BUCKETS - 1].waves, many[BUCKETS - 2].sectors), (1, 7, 0));
        assert_eq!(many.iter().map(|bucket| bucket.used).sum::<u64>(), 999 * 8 + 2);
    }

    #[test]
    fn steps_reach_from_one_wave_to_the_most() {
        assert_eq!([0, 1, 8, 16].map(|waves| step(waves, 16)), [0, 1, 4, 8]);
        assert_eq!([0, 1].map(|waves| step(waves, 1)), [0, 8]);
    }
}
