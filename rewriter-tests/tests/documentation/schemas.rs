//! The JSON schemas are those of the types that the product writes, and their pages list every field.

use std::fmt::Write;
use std::fs;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use wavetap::{capture, profile, report};

use crate::validator::Validator;
use crate::{keep, page};

/// The lines of a page between which its fields are.
const BEGIN: &str = "<!-- fields: written by the test `documentation` -->";
const END: &str = "<!-- fields: end -->";

/// Columns of a line of prose.
const COLUMNS: usize = 120;

/// A schema's name and what the type after it says.
struct Format {
    /// `wavetap.report/1`.
    name: &'static str,
    schema: Value,
}

impl Format {
    fn of<T: JsonSchema>(name: &'static str) -> Format {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema: Value = Schema::into(generator.into_root_schema_for::<T>());
        schema["title"] = json!(name);
        // The type says that it is text; the document says which.
        if let Some(text) = schema["properties"].get_mut("schema") {
            text["const"] = json!(name);
            text["description"] = json!("Name and version of this format.");
        }
        plain(&mut schema);
        Format { name, schema }
    }

    /// `report` of `wavetap.report/1`.
    fn file(&self) -> &str {
        self.name.trim_start_matches("wavetap.").split('/').next().unwrap_or_default()
    }
}

/// Every format that the product writes.
fn formats() -> Vec<Format> {
    vec![
        Format::of::<capture::Header>(capture::file::SCHEMA),
        Format::of::<profile::check::CheckReport>(profile::check::SCHEMA),
        Format::of::<report::compare::Compare>(report::compare::COMPARE_SCHEMA),
        Format::of::<report::diff::Diff>(report::diff::SCHEMA),
        Format::of::<report::disassembly::Disassembly>(report::disassembly::SCHEMA),
        Format::of::<report::inspect::Inspection>(report::inspect::SCHEMA),
        Format::of::<profile::map::ObjectMap>(profile::map::SCHEMA),
        Format::of::<report::memory::MemoryReport>(report::memory::SCHEMA),
        Format::of::<report::mix::MixReport>(report::mix::SCHEMA),
        Format::of::<report::replay::ReplayReport>(report::replay::SCHEMA),
        Format::of::<report::rewrite::Maps>(report::rewrite::MAPS_SCHEMA),
        Format::of::<profile::origins::OriginsFile>(profile::origins::SCHEMA),
        Format::of::<profile::file::Profile>(profile::file::SCHEMA),
        Format::of::<report::Report>(report::REPORT_SCHEMA),
        Format::of::<report::roofline::RooflineReport>(report::roofline::SCHEMA),
        Format::of::<report::rewrite::Summary>(report::rewrite::SCHEMA),
        Format::of::<profile::samples::Samples>(profile::samples::SCHEMA),
        Format::of::<report::slice::Slice>(report::slice::SCHEMA),
        Format::of::<report::slice::SliceComparison>(report::slice::COMPARISON_SCHEMA),
        Format::of::<report::vendor_code::VendorCode>(report::vendor_code::SCHEMA),
        Format::of::<profile::time::TimeProfile>(profile::time::SCHEMA),
        Format::of::<profile::fidelity::FidelityProfile>(profile::fidelity::SCHEMA),
        Format::of::<report::verify::Verification>(report::verify::SCHEMA),
        Format::of::<report::doctor::Diagnosis>(report::doctor::SCHEMA),
    ]
}

/// Descriptions are doc comments: links to items become the items' names.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match value {
                    Value::String(text) if key == "description" => *text = unwrapped(&unlinked(text)),
                    other => plain(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

/// Paragraphs as one line each, items of lists apart: where the lines of a comment end is no part of what it says.
fn unwrapped(text: &str) -> String {
    let mut out = String::new();
    for (index, line) in text.lines().enumerate() {
        let begins = line.is_empty() || line.trim_start().starts_with(['-', '*']) || out.ends_with('\n');
        out.push_str(if index == 0 {
            ""
        } else if begins {
            "\n"
        } else {
            " "
        });
        out.push_str(line.trim_start());
    }
    out
}

#[test]
fn wrapped_comments_are_unwrapped() {
    assert_eq!(unwrapped("a b\nc\n\nd\n- e\n  f\n- g"), "a b c\n\nd\n- e f\n- g");
}

/// `` [`A::b`] `` and `` [`b`](A::b) `` as `` `b` ``.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[`") {
        let Some(end) = rest[at..].find("`]") else { break };
        let name = rest[at + 2..at + end].rsplit("::").next().unwrap_or_default();
        write!(out, "{}`{name}`", &rest[..at]).expect("text");
        rest = &rest[at + end + 2..];
        if let Some(close) = rest.strip_prefix('(').and_then(|link| link.find(')')) {
            rest = &rest[close + 2..];
        }
    }
    out + rest
}

/// The tables of a page.
fn fields(format: &Format) -> String {
    let mut text = format!("The schema is [{0}.schema.json]({0}.schema.json).\n", format.file());
    text += &table(&format.schema);
    let definitions: Map<String, Value> = format.schema["$defs"].as_object().cloned().unwrap_or_default();
    for (name, schema) in &definitions {
        write!(text, "\n## {name}\n\n{}", wrapped(&described(schema))).expect("text");
        text += &table(schema);
    }
    text
}

/// The first paragraph of a description, as one paragraph.
fn described(schema: &Value) -> String {
    let text = schema["description"].as_str().map(one_line).unwrap_or_default();
    if text.is_empty() { text } else { format!("{text}\n") }
}

/// A paragraph in lines that fit a screen.
fn wrapped(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let last = lines.last_mut().expect("never empty");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(word.to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    if paragraph.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What an object or a choice consists of.
fn table(schema: &Value) -> String {
    let mut text = String::new();
    if let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) {
        let required =
            |name: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        text += "\n| field | type | meaning |\n|---|---|---|\n";
        for (name, field) in properties {
            let absent = if required(name) { "" } else { ", may be absent" };
            writeln!(text, "| `{name}` | {}{absent} | {} |", kind(field), described(field).trim_end()).expect("text");
        }
    }
    for choices in [&schema["oneOf"], &schema["anyOf"]].into_iter().filter_map(Value::as_array) {
        text += "\n| one of | meaning |\n|---|---|\n";
        for choice in choices {
            writeln!(text, "| {}{} | {} |", kind(choice), tag(choice), described(choice).trim_end()).expect("text");
        }
    }
    if text.is_empty() {
        writeln!(text, "\nType: {}.", kind(schema)).expect("text");
    }
    text
}

/// The fields that tell a choice from the others, if it is a type with such fields added.
fn tag(choice: &Value) -> String {
    let fixed = choice["properties"].as_object().filter(|_| choice.get("$ref").is_some()).into_iter().flatten();
    let fixed = fixed.filter_map(|(name, field)| {
        field.get("const").map(|value| format!(" with `{name}` `{value}`").replace('"', ""))
    });
    fixed.collect()
}

/// A type in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`").replace('"', "");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`").replace('"', "")).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec!["anything"],
    };
    names.iter().map(|name| one_kind(name, schema)).collect::<Vec<_>>().join(" or ")
}

fn one_kind(name: &str, schema: &Value) -> String {
    match name {
        "array" if schema["prefixItems"].is_array() => {
            let items = schema["prefixItems"].as_array().into_iter().flatten();
            format!("list of {}", items.map(kind).collect::<Vec<_>>().join(", "))
        }
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["properties"].is_object() => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            format!(
                "object with {}",
                properties.map(|(name, field)| format!("`{name}`: {}", kind(field))).collect::<Vec<_>>().join(", ")
            )
        }
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        "string" if schema["pattern"].is_string() => "hexadecimal text".into(),
        "string" => "text".into(),
        other => other.into(),
    }
}

#[test]
fn schema_files_are_those_of_the_types() {
    for format in formats() {
        let text = serde_json::to_string_pretty(&format.schema).expect("JSON") + "\n";
        keep(&format!("docs/reference/schemas/{}.schema.json", format.file()), &text);
    }
}

#[test]
fn schema_pages_list_every_field() {
    for format in formats() {
        let name = format!("docs/reference/schemas/{}.md", format.file());
        let old = fs::read_to_string(page(&name)).unwrap_or_else(|_| format!("# {}\n\n{BEGIN}\n{END}\n", format.name));
        let (before, rest) = old.split_once(BEGIN).unwrap_or_else(|| panic!("{name} has no place for the fields"));
        let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{name} has no place for the fields"));
        assert!(before.starts_with(&format!("# {}\n", format.name)), "{name} is not headed {}", format.name);
        keep(&name, &format!("{before}{BEGIN}\n\n{}\n{END}{after}", fields(&format)));
    }
}

#[test]
fn no_schema_file_is_left_over() {
    let known: Vec<String> = formats().iter().map(|format| format!("{}.schema.json", format.file())).collect();
    for entry in fs::read_dir(page("docs/reference/schemas")).expect("the folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(!name.ends_with(".json") || known.contains(&name), "no type is described by {name}");
    }
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let validator = Validator::new().expect("schemas");
    let mut verification = json!({ "schema": report::verify::SCHEMA });
    assert!(validator.check(&verification.to_string()).is_err(), "fields are missing");
    verification["schema"] = json!("wavetap.unheard-of/1");
    assert!(validator.check(&verification.to_string()).is_err());
    assert_eq!(validator.check("PASS"), Ok(None));
    assert_eq!(validator.check("{\"schema\": \"other/1\"}"), Ok(None));
    let profile = profile::file::Profile::new(profile::file::Origin::Counters, profile::file::Backend::Emulator);
    let text = String::from_utf8(profile.to_json().expect("JSON")).expect("text");
    assert_eq!(validator.check(&text), Ok(Some(profile::file::SCHEMA.to_owned())));
    let wrong = text.replace("\"processes\"", "\"x\"").replace("\"kernels\": []", "\"kernels\": [1]");
    assert!(validator.check(&wrong).is_err(), "{wrong}");
}

#[test]
fn links_become_names() {
    assert_eq!(unlinked("See [`A::b`], [`c`](d::c) and [e]."), "See `b`, `c` and [e].");
}
