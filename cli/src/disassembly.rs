//! A disassembly in each of its forms, written piece by piece: a library's is much bigger than the library.

use serde::Serialize;
use wavetap::error::{Error, Result};
use wavetap::report::disassembly::{CodeText, JsonStream, ObjectFacts, SCHEMA, Sink};
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
    Json(JsonStream),
    /// One YAML document.
    Yaml(YamlStream),
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
    /// Why writing failed, without the places that are added on the way up.
    pub failure: Option<Error>,
}

impl Writer {
    /// Nothing is written yet.
    pub fn new(out: Stream, form: Form) -> Writer {
        Writer { out, form, failure: None }
    }

    /// Writes the end.
    pub fn finish(mut self) -> Result<()> {
        let end = match &mut self.form {
            Form::Json(json) => std::mem::take(json).finish()?,
            Form::Yaml(yaml) => yaml.finish(),
            Form::Listing(_) | Form::Plain(..) => String::new(),
        };
        self.write(&end)?;
        self.out.finish()
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.out.write(text).inspect_err(|error| self.failure = Some(error.clone()))
    }
}

impl Sink for Writer {
    fn object(&mut self, facts: ObjectFacts) -> Result<()> {
        let text = match &mut self.form {
            Form::Listing(listing) => listing.object(&facts),
            Form::Plain(plain, name) => {
                plain.object(&if facts.bare { name.clone() } else { format!("{name} ({} {})", facts.id, facts.target) })
            }
            Form::Json(json) => json.object(&facts)?,
            Form::Yaml(yaml) => yaml.object(&facts)?,
        };
        self.write(&text)
    }

    fn code(&mut self, code: CodeText) -> Result<()> {
        let text = match &mut self.form {
            Form::Listing(listing) => listing.code(&code),
            Form::Plain(plain, _) => plain.code(&code),
            Form::Json(json) => json.code(&code)?,
            Form::Yaml(yaml) => yaml.code(&code)?,
        };
        self.write(&text)
    }
}

/// A YAML document in pieces: its writer has no other way to leave a list open, so that each item is a document of its
/// own that is indented.
#[derive(Default)]
pub struct YamlStream {
    objects: usize,
    /// Pieces of code of the object that is open.
    pieces: usize,
}

impl YamlStream {
    fn object(&mut self, facts: &ObjectFacts) -> Result<String> {
        let start = match self.objects {
            0 => format!("schema: {SCHEMA}\nobjects:\n"),
            _ => self.close(),
        };
        (self.objects, self.pieces) = (self.objects + 1, 0);
        Ok(start + &item(facts, 0)?)
    }

    fn code(&mut self, code: &CodeText) -> Result<String> {
        let start = if self.pieces > 0 { "" } else { "  code:\n" };
        self.pieces += 1;
        Ok(format!("{start}{}", item(code, 2)?))
    }

    fn finish(&self) -> String {
        if self.objects > 0 { self.close() } else { format!("schema: {SCHEMA}\nobjects: []\n") }
    }

    fn close(&self) -> String {
        if self.pieces > 0 { String::new() } else { "  code: []\n".to_owned() }
    }
}

/// An item of a list that is indented by so many spaces.
fn item(value: &impl Serialize, indent: usize) -> Result<String> {
    let text = serde_yaml::to_string(value).map_err(|error| Error::internal(format!("YAML: {error}")))?;
    let indent = " ".repeat(indent);
    let lines = text.trim_end().lines().enumerate();
    Ok(lines.fold(String::with_capacity(text.len() + text.len() / 4), |out, (number, line)| {
        out + &indent + if number == 0 { "- " } else { "  " } + line + "\n"
    }))
}
