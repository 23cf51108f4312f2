//! Compiles `tables/*.txt` into constants: the rows of instructions, sorted by opcode, with the sources of each form in
//! place. The heads of the tables say what they mean.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

type Failure = Box<dyn std::error::Error>;

/// Lines of a table without comments, in words.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| words.first().is_some_and(|word| !word.starts_with('#'))).collect()
}

fn read(name: &str) -> Result<String, Failure> {
    let path = format!("tables/{name}.txt");
    println!("cargo::rerun-if-changed={path}");
    Ok(std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?)
}

/// `74,75` as an array of numbers.
fn bits(text: &str) -> Result<String, Failure> {
    let numbers: Vec<u8> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
    Ok(format!("&{numbers:?}"))
}

/// Where a template puts the sources of a form.
type Templates<'t> = HashMap<(&'t str, u16), Vec<&'t str>>;

fn templates(text: &str) -> Result<Templates<'_>, Failure> {
    let mut all = Templates::new();
    for words in rows(text) {
        for form in &words[1..] {
            let (number, places) = form.split_once('=').ok_or("a form without =")?;
            all.insert((words[0], number.parse()?), places.split(',').collect());
        }
    }
    Ok(all)
}

/// An operand as source text.
fn operand(word: &str, sources: &[&str], widths: &[&str]) -> Result<String, Failure> {
    let (use_, rest) = match word.split_at(1) {
        ("=", rest) => ("Result", rest),
        ("@", rest) => ("Address", rest),
        _ => ("Source", word),
    };
    let mut parts = rest.split('?');
    let rest = parts.next().unwrap_or_default();
    let when: Vec<(u8, bool)> = parts
        .map(|bit| Ok((bit.trim_start_matches('!').parse()?, !bit.starts_with('!'))))
        .collect::<Result<_, std::num::ParseIntError>>()?;
    let (place, width) = match rest.split_once('*') {
        Some((place, width)) => match width.strip_prefix('@') {
            Some(name) => {
                let index = widths.iter().position(|known| *known == name).ok_or(format!("no width {name}"))?;
                (place, format!("Width::Table({index})"))
            }
            None => (place, format!("Width::Fixed({width})")),
        },
        None => (rest, "Width::Fixed(1)".to_owned()),
    };
    let place = match place {
        "A" | "B" | "C" => *sources
            .get(usize::from(place.as_bytes()[0] - b'A'))
            .ok_or(format!("{word}: the template has no such source"))?,
        place => place,
    };
    let place = match place.split_at(1) {
        ("X", _) => "Place::Refused".to_owned(),
        ("i", _) => "Place::Immediate".to_owned(),
        ("c", _) => "Place::Constant".to_owned(),
        ("R", bit) => format!("Place::Field(File::General, {bit})"),
        ("U", bit) => format!("Place::Field(File::Uniform, {bit})"),
        ("P", bit) => format!("Place::Field(File::Predicate, {bit})"),
        ("V", bit) => format!("Place::Field(File::UniformPredicate, {bit})"),
        ("M", bit) => format!("Place::Mask({bit})"),
        _ => return Err(format!("{word} is no operand").into()),
    };
    Ok(format!("Operand {{ usage: Use::{use_}, place: {place}, width: {width}, when: &{when:?} }}"))
}

/// The rows of instructions: of each form its own, sorted.
fn instructions(text: &str, templates: &Templates<'_>, widths: &[&str], kinds: &[&str]) -> Result<String, Failure> {
    let mut all = Vec::new();
    for words in rows(text) {
        let fault = |what: &str| format!("instructions.txt: {}: {what}", words.join(" "));
        let [code, name, kind, template, rest @ ..] = &words[..] else { return Err(fault("too short").into()) };
        let (base, forms) = code.split_once(':').ok_or_else(|| fault("no forms"))?;
        let base = u16::from_str_radix(base, 16)?;
        let kind = kinds.iter().position(|known| known == kind).ok_or_else(|| fault("unknown kind"))?;
        let (models, operands) = match rest.split_first() {
            Some((first, rest)) if first.starts_with("sm=") => (&first[3..], rest),
            _ => ("75-121", rest),
        };
        let (least, most) = models.split_once('-').ok_or_else(|| fault("no range"))?;
        let (least, most): (u16, u16) = (least.parse()?, most.parse()?);
        for form in forms.bytes().map(|form| u16::from(form - b'0')) {
            let empty = Vec::new();
            let sources = match *template {
                "-" => &empty,
                template => templates.get(&(template, form)).ok_or_else(|| fault("the template has no such form"))?,
            };
            let operands: Vec<_> =
                operands.iter().map(|word| operand(word, sources, widths)).collect::<Result<_, _>>()?;
            let operands = operands.join(", ");
            let opcode = form << 9 | base;
            all.push((
                (opcode, least),
                most,
                format!(
                    "Row {{ opcode: {opcode:#05x}, least: {least}, most: {most}, name: {name:?}, kind: {kind}, \
                     operands: &[{operands}] }}"
                ),
            ));
        }
    }
    all.sort();
    for pair in all.windows(2) {
        if pair[0].0.0 == pair[1].0.0 && pair[0].1 >= pair[1].0.1 {
            return Err(format!("two rows of one opcode and model: {} and {}", pair[0].2, pair[1].2).into());
        }
    }
    let mut out = format!("pub(crate) static ROWS: [Row; {}] = [\n", all.len());
    all.iter().for_each(|(_, _, row)| out.extend([row, ",\n"]));
    out += "];\n";
    Ok(out)
}

fn values<T: std::str::FromStr>(words: &[&str]) -> Result<Vec<(u8, T)>, Failure>
where
    T::Err: std::error::Error + 'static,
{
    let mut all = Vec::new();
    for word in words {
        let (values, meaning) = word.split_once('=').ok_or("a value without =")?;
        for value in values.split(',') {
            all.push((value.parse()?, meaning.parse()?));
        }
    }
    Ok(all)
}

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut out = String::new();
    let text = read("widths")?;
    let widths = rows(&text);
    writeln!(out, "pub(crate) const WIDTHS: [WidthTable; {}] = [", widths.len())?;
    for words in &widths {
        let counts: Vec<(u8, u8)> = values(&words[2..])?;
        writeln!(out, "WidthTable {{ bits: {}, counts: &{counts:?} }},", bits(words[1])?)?;
    }
    writeln!(out, "];")?;
    let widths: Vec<&str> = widths.iter().map(|words| words[0]).collect();
    let text = read("kinds")?;
    let kinds = rows(&text);
    writeln!(out, "pub(crate) const KINDS: [Kind; {}] = [", kinds.len())?;
    for words in &kinds {
        let [name, class, unit, guard, lanes, min, typical, max] = words[..] else { return Err("kinds.txt".into()) };
        let unit = match unit {
            "-" => "None".to_owned(),
            unit => format!("Some({})", ["lds", "sfu", "cp"].iter().position(|u| *u == unit).ok_or("no unit")?),
        };
        let guard = if guard == "V" { "UniformPredicate" } else { "Predicate" };
        let flow = match name {
            "branch" => "Branch",
            "indirect" => "Indirect",
            "call" => "Call",
            "return" => "Return",
            "exit" => "Exit",
            "wait" => "Wait",
            "refused" => "Refused",
            _ => "Plain",
        };
        writeln!(
            out,
            "Kind {{ class: Class::{class}, unit: {unit}, guard: File::{guard}, action: Action::{flow}, \
             crosses_lanes: {}, \
             latency: Cycles {{ min: {min}, typical: {typical}, max: {max} }} }},",
            lanes == "X"
        )?;
    }
    writeln!(out, "];")?;
    let kinds: Vec<&str> = kinds.iter().map(|words| words[0]).collect();
    let text = read("modifiers")?;
    let modifiers = rows(&text);
    writeln!(out, "pub(crate) const MODIFIERS: [Modifier; {}] = [", modifiers.len())?;
    for words in &modifiers {
        let names: Vec<&str> = words[0].split(',').collect();
        let texts: Vec<(u8, String)> = values(&words[2..])?;
        writeln!(out, "Modifier {{ names: &{names:?}, bits: {}, texts: &{texts:?} }},", bits(words[1])?)?;
    }
    writeln!(out, "];")?;
    let (text, places) = (read("instructions")?, read("templates")?);
    out += &instructions(&text, &templates(&places)?, &widths, &kinds)?;
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("tables.rs"), out)?;
    Ok(())
}
