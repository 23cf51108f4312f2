//! A disassembly in each of its forms, written piece by piece: a library's is much bigger than the library.

use serde::Serialize;
use wavetap::error::{Error, Result};
use wavetap::report::disassembly::{CodeText, ObjectFacts, SCHEMA, Sink};
use wavetap::report::listing::Listing;
use wavetap::report::plain::Plain;

use crate::output::Stream;

/// The forms.
pub enum Form {
    /// For people.
    Listing(Listing),
    /// As `llvm-objdump -d` prints it; with the name of the input.
    Plain(Plain, String),
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Form {
    /// The plain form of the input with this name.
    pub fn plain(name: String) -> Form {
        Form::Plain(Plain::default(), name)
    }
}

/// Writes what it gets.
pub struct Writer {
    out: Stream,
    form: Form,
    objects: usize,
    /// Pieces of code of the object that is open.
    pieces: usize,
    /// Why writing failed, without the places that are added on the way up.
    pub failure: Option<Error>,
}

impl Writer {
    /// Nothing is written yet.
    pub fn new(out: Stream, form: Form) -> Writer {
        Writer { out, form, objects: 0, pieces: 0, failure: None }
    }

    /// Writes the end.
    pub fn finish(mut self) -> Result<()> {
        let end = match self.form {
            Form::Json if self.objects > 0 => format!("{}\n  ]\n}}\n", self.close_json()),
            Form::Json => format!("{{\n  \"schema\": \"{SCHEMA}\",\n  \"objects\": []\n}}\n"),
            Form::Yaml if self.objects > 0 => self.close_yaml(),
            Form::Yaml => format!("schema: {SCHEMA}\nobjects: []\n"),
            Form::Listing(_) | Form::Plain(..) => String::new(),
        };
        self.write(&end)?;
        self.out.finish()
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.out.write(text).inspect_err(|error| self.failure = Some(error.clone()))
    }

    fn close_json(&self) -> &'static str {
        if self.pieces > 0 { "\n      ]\n    }" } else { "]\n    }" }
    }

    fn close_yaml(&self) -> String {
        if self.pieces > 0 { String::new() } else { "  code: []\n".to_owned() }
    }
}

impl Sink for Writer {
    fn object(&mut self, facts: ObjectFacts) -> Result<()> {
        let text = match &mut self.form {
            Form::Listing(listing) => listing.object(&facts),
            Form::Plain(plain, name) => {
                plain.object(&if facts.bare { name.clone() } else { format!("{name} ({} {})", facts.id, facts.target) })
            }
            Form::Json => {
                let start = match self.objects {
                    0 => format!("{{\n  \"schema\": \"{SCHEMA}\",\n  \"objects\": [\n"),
                    _ => format!("{},\n", self.close_json()),
                };
                // The object stays open for its code.
                let facts = json(&facts, 4)?;
                format!("{start}{},\n      \"code\": [", facts.trim_end().trim_end_matches('}').trim_end())
            }
            Form::Yaml => {
                let start = match self.objects {
                    0 => format!("schema: {SCHEMA}\nobjects:\n"),
                    _ => self.close_yaml(),
                };
                format!("{start}{}", yaml_item(&facts, 0)?)
            }
        };
        self.objects += 1;
        self.pieces = 0;
        self.write(&text)
    }

    fn code(&mut self, code: CodeText) -> Result<()> {
        let text = match &mut self.form {
            Form::Listing(listing) => listing.code(&code),
            Form::Plain(plain, _) => plain.code(&code),
            Form::Json => format!("{}\n{}", if self.pieces > 0 { "," } else { "" }, json(&code, 8)?),
            Form::Yaml => format!("{}{}", if self.pieces > 0 { "" } else { "  code:\n" }, yaml_item(&code, 2)?),
        };
        self.pieces += 1;
        self.write(&text)
    }
}

/// Indented by so many spaces, without a line end.
fn json(value: &impl Serialize, indent: usize) -> Result<String> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::internal(format!("JSON: {error}")))?;
    Ok(indented(&text, &" ".repeat(indent), &" ".repeat(indent)))
}

/// An item of a list that is indented by so many spaces.
fn yaml_item(value: &impl Serialize, indent: usize) -> Result<String> {
    let text = serde_yaml::to_string(value).map_err(|error| Error::internal(format!("YAML: {error}")))?;
    let indent = " ".repeat(indent);
    Ok(indented(text.trim_end(), &format!("{indent}- "), &format!("{indent}  ")) + "\n")
}

fn indented(text: &str, first: &str, other: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out.push_str(if index == 0 { first } else { other });
        out.push_str(line);
    }
    out
}
