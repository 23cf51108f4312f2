//! Text that fits a width: lines that wrap at words, and cells of tables that are shortened.
//!
//! Escape sequences of colours take no columns. A colour ends at the end of a line and begins again in the next one, so
//! that each line can be shown by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// Begins an escape sequence.
const ESCAPE: char = '\x1b';
/// Ends all colours.
const RESET: &str = "\x1b[0m";
/// Stands for what is left out.
const ELLIPSIS: &str = "…";
/// Columns after the indentation within which a gap ends a label, below whose end a line goes on.
const LABEL: usize = 12;
/// How much further a line goes on where it has no label.
const HANG: usize = 2;

/// A character, and the colours that are on: an index into [`Parsed::looks`].
#[derive(Debug, Clone, Copy)]
struct Glyph {
    character: char,
    look: usize,
}

/// A line without its escape sequences, which are kept beside it.
struct Parsed {
    glyphs: Vec<Glyph>,
    looks: Vec<String>,
}

impl Parsed {
    fn of(text: &str) -> Parsed {
        let mut parsed = Parsed { glyphs: Vec::with_capacity(text.len()), looks: vec![String::new()] };
        let mut look = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != ESCAPE {
                parsed.glyphs.push(Glyph { character, look: parsed.looks.len() - 1 });
                continue;
            }
            let mut sequence = String::from(ESCAPE);
            for character in characters.by_ref() {
                sequence.push(character);
                if character.is_ascii_alphabetic() {
                    break;
                }
            }
            if sequence == RESET {
                look.clear();
            } else {
                look.push_str(&sequence);
            }
            parsed.looks.push(look.clone());
        }
        parsed
    }

    /// A part with its colours.
    fn text(&self, part: Range<usize>) -> String {
        let mut out = String::new();
        let mut on = 0;
        for glyph in &self.glyphs[part] {
            if self.looks[glyph.look] != self.looks[on] {
                if !self.looks[on].is_empty() {
                    out.push_str(RESET);
                }
                out.push_str(&self.looks[glyph.look]);
                on = glyph.look;
            }
            out.push(glyph.character);
        }
        if !self.looks[on].is_empty() {
            out.push_str(RESET);
        }
        out
    }

    fn width(&self, part: Range<usize>) -> usize {
        self.glyphs[part].iter().map(|glyph| columns(glyph.character)).sum()
    }

    fn is_space(&self, at: usize) -> bool {
        self.glyphs.get(at).is_some_and(|glyph| glyph.character == ' ')
    }

    /// Whether a line may end before this space.
    fn may_break(&self, at: usize) -> bool {
        // A number and its sign stay together.
        self.is_space(at) && self.glyphs.get(at + 1).is_none_or(|next| next.character != '%')
    }

    /// Columns of the word that begins at or after this place.
    fn word(&self, from: usize) -> usize {
        let start = (from..self.glyphs.len()).find(|at| !self.is_space(*at)).unwrap_or(self.glyphs.len());
        let end = (start..self.glyphs.len()).find(|at| self.may_break(*at)).unwrap_or(self.glyphs.len());
        self.width(start..end)
    }

    /// The lines that it becomes: one of at most `first` columns, the others of at most `rest`, which are at least 1.
    fn lines(&self, first: usize, rest: usize) -> Vec<Range<usize>> {
        let all = self.glyphs.len();
        let mut lines = Vec::new();
        let mut start = 0;
        loop {
            let room = if lines.is_empty() { first } else { rest };
            let begin = (start..all).find(|at| !self.is_space(*at)).unwrap_or(all);
            if !lines.is_empty() {
                start = begin;
            }
            let (mut end, mut used) = (start, 0);
            while let Some(glyph) = self.glyphs.get(end).filter(|glyph| used + columns(glyph.character) <= room) {
                used += columns(glyph.character);
                end += 1;
            }
            if end == all {
                lines.push(start..all);
                return lines;
            }
            // Never without progress.
            let end = end.max(begin.max(start) + 1).min(all);
            let space = (begin + 1..=end).rev().find(|at| self.may_break(*at));
            // A word that has no room in a line of its own begins here.
            let space = space.filter(|at| self.word(*at) <= rest);
            let sign = || (begin + 1..=end).rev().find(|at| ",/:;<(|=".contains(self.glyphs[at - 1].character));
            let at = space.unwrap_or_else(|| sign().filter(|at| 2 * (at - start) > end - start).unwrap_or(end));
            let last = (start..at).rev().find(|at| !self.is_space(*at)).map_or(start, |last| last + 1);
            lines.push(start..last);
            start = at;
        }
    }
}

/// Columns of a character.
fn columns(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Columns that a line takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    let mut characters = text.chars();
    let mut width = 0;
    while let Some(character) = characters.next() {
        if character == ESCAPE {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            width += columns(character);
        }
    }
    width
}

/// The lines that one line becomes where there are so many columns: the later ones are indented further, below what
/// follows a short label.
pub(crate) fn wrapped(line: &str, room: usize) -> Vec<String> {
    if width(line) <= room {
        return vec![line.to_owned()];
    }
    let parsed = Parsed::of(line);
    let hang = hanging(&parsed).min(room / 2);
    let indent = " ".repeat(hang);
    let ranges = parsed.lines(room, (room - hang).max(1)).into_iter().enumerate();
    let text =
        |(number, range)| if number == 0 { parsed.text(range) } else { format!("{indent}{}", parsed.text(range)) };
    ranges.map(text).collect()
}

/// Where the later lines of a line begin.
fn hanging(line: &Parsed) -> usize {
    let begin = (0..line.glyphs.len()).find(|at| !line.is_space(*at)).unwrap_or(0);
    let gap = (begin..line.glyphs.len()).take(LABEL).find(|at| line.is_space(*at) && line.is_space(at + 1));
    let after = gap.and_then(|gap| (gap..line.glyphs.len()).find(|at| !line.is_space(*at)));
    after.map_or(line.width(0..begin) + HANG, |after| line.width(0..after))
}

/// All lines of a text, none of them wider.
pub(crate) fn text(text: &str, room: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let lines = wrapped(line, room);
        out.push_str(&lines.join("\n"));
        out.push_str(end);
    }
    out
}

/// A cell as lines of so many columns.
pub(crate) fn cell(text: &str, room: usize) -> Vec<String> {
    let parsed = Parsed::of(text);
    let room = room.max(1);
    parsed.lines(room, room).into_iter().map(|range| parsed.text(range)).collect()
}

/// The beginning of a text that is longer.
pub(crate) fn beginning(text: &str, room: usize) -> String {
    let parsed = Parsed::of(text);
    if parsed.width(0..parsed.glyphs.len()) <= room {
        return text.to_owned();
    }
    parsed.text(0..prefix(&parsed, room.saturating_sub(1))) + ELLIPSIS
}

/// The end of a text that is longer: of a place the line is at its end.
pub(crate) fn end(text: &str, room: usize) -> String {
    let parsed = Parsed::of(text);
    let all = parsed.glyphs.len();
    if parsed.width(0..all) <= room {
        return text.to_owned();
    }
    ELLIPSIS.to_owned() + &parsed.text(suffix(&parsed, room.saturating_sub(1))..all)
}

/// The beginning and the end of a text that is longer.
fn both_ends(text: &str, room: usize) -> String {
    let parsed = Parsed::of(text);
    let all = parsed.glyphs.len();
    if parsed.width(0..all) <= room {
        return text.to_owned();
    }
    let room = room.saturating_sub(1);
    let tail = room * 2 / 5;
    parsed.text(0..prefix(&parsed, room - tail)) + ELLIPSIS + &parsed.text(suffix(&parsed, tail)..all)
}

/// The end of the longest beginning of so many columns.
fn prefix(parsed: &Parsed, room: usize) -> usize {
    let all = parsed.glyphs.len();
    (0..=all).rev().find(|end| parsed.width(0..*end) <= room).unwrap_or(0)
}

/// The start of the longest end of so many columns.
fn suffix(parsed: &Parsed, room: usize) -> usize {
    let all = parsed.glyphs.len();
    (0..=all).find(|start| parsed.width(*start..all) <= room).unwrap_or(all)
}

/// Names of at most so many columns, which tell apart what the whole names do: without parameters where that is enough,
/// else without the middle, else with four hexadecimal digits that depend on the whole name.
pub(crate) fn names(all: &[&str], room: usize) -> Vec<String> {
    let distinct: BTreeSet<&str> = all.iter().copied().collect();
    let forms: [fn(&str, usize) -> String; 3] = [without_parameters, both_ends, tagged];
    let mut short: BTreeMap<&str, String> = BTreeMap::new();
    for form in forms {
        // Those that have no name yet that only they have.
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        short.values().for_each(|text| *seen.entry(text.clone()).or_default() += 1);
        let open: Vec<&str> = distinct.iter().copied().filter(|name| !short.contains_key(name)).collect();
        let texts: Vec<String> =
            open.iter().map(|name| if width(name) <= room { (*name).to_owned() } else { form(name, room) }).collect();
        texts.iter().for_each(|text| *seen.entry(text.clone()).or_default() += 1);
        for (name, text) in open.into_iter().zip(texts) {
            if seen.get(&text) == Some(&1) && width(&text) <= room {
                short.insert(name, text);
            }
        }
    }
    all.iter().map(|name| short.get(name).cloned().unwrap_or_else(|| tagged(name, room))).collect()
}

/// `k<4>(…)` for `k<4>(float*, int)`.
fn without_parameters(name: &str, _: usize) -> String {
    let mut open = 0_usize;
    if !name.ends_with(')') {
        return name.to_owned();
    }
    let start = name.char_indices().rev().find(|(_, character)| {
        match character {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        open == 0
    });
    start.filter(|(at, _)| *at > 0).map_or_else(|| name.to_owned(), |(at, _)| format!("{}(…)", &name[..at]))
}

/// The beginning of a name with digits that depend on all of it.
fn tagged(name: &str, room: usize) -> String {
    let mut hasher = rustc_hash::FxHasher::default();
    name.hash(&mut hasher);
    let mut tag = String::new();
    // Writing to a String cannot fail.
    let _ = write!(tag, " [{:04x}]", hasher.finish() >> 48);
    beginning(name, room.saturating_sub(tag.len())) + &tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_at_words_below_their_text() {
        let line = "   51.2 %  one two three 40 % four";
        assert_eq!(wrapped(line, 24), ["   51.2 %  one two three", "           40 % four"]);
        // A number stays with its sign.
        assert_eq!(wrapped(line, 27), ["   51.2 %  one two three", "           40 % four"]);
        assert_eq!(wrapped("  alpha beta gamma", 12), ["  alpha beta", "    gamma"]);
        assert_eq!(wrapped("short", 12), ["short"]);
        assert_eq!(text("a b\n\nlonger words\n", 8), "a b\n\nlonger\n  words\n");
    }

    #[test]
    fn words_without_room_are_broken_at_signs() {
        assert_eq!(wrapped("at /usr/include/hip.h", 14), ["at /usr/", "  include/", "  hip.h"].map(str::to_owned));
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "  ef", "  gh", "  ij"]);
    }

    #[test]
    fn colours_take_no_columns_and_are_on_in_each_line() {
        let line = "\x1b[33m  alpha beta gamma\x1b[0m";
        assert_eq!(width(line), 18);
        assert_eq!(wrapped(line, 18), [line]);
        assert_eq!(wrapped(line, 12), ["\x1b[33m  alpha beta\x1b[0m", "    \x1b[33mgamma\x1b[0m"]);
        assert_eq!(beginning("\x1b[1mabcdef\x1b[0m", 4), "\x1b[1mabc\x1b[0m…");
    }

    #[test]
    fn every_line_fits_and_nothing_is_lost() {
        let line = format!("  {} x, {}", "words of several lengths ".repeat(9), "y".repeat(70));
        for room in 8..130 {
            let lines = wrapped(&line, room);
            assert!(lines.iter().all(|line| width(line) <= room), "{room}: {lines:?}");
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            assert_eq!(letters(&lines.concat()), letters(&line), "{room}");
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("→ 漢字"), 6);
        assert_eq!(cell("漢字漢字", 4), ["漢字", "漢字"]);
    }

    #[test]
    fn names_stay_apart() {
        assert_eq!(names(&["k(int*, int*)", "f()"], 8), ["k(…)", "f()"]);
        // Two that differ in their parameters alone keep both ends.
        assert_eq!(names(&["k(float const*)", "k(double const*)"], 11), ["k(floa…st*)", "k(doub…st*)"]);
        let alike = ["kernel_aaaaaaaaaaaaaa_1_zzzzzzzzzz", "kernel_aaaaaaaaaaaaaa_2_zzzzzzzzzz"];
        let short = names(&alike, 16);
        assert!(
            short[0] != short[1] && short.iter().all(|name| width(name) <= 16 && name.contains("… [")),
            "{short:?}"
        );
        assert_eq!(end("amd_hip_runtime.h:268", 12), "…ntime.h:268");
    }
}
