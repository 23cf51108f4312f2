//! A disassembly as one JSON document that is written piece by piece: a library's is much bigger than the library.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::{CodeText, ObjectFacts, SCHEMA};
use wavetap_base::error::{Error, Result};

/// The text of a [`super::Disassembly`] as `serde_json` prints it, in pieces that follow each other.
#[derive(Debug, Default)]
pub struct JsonStream {
    formatter: PrettyFormatter<'static>,
    objects: usize,
    /// Pieces of code of the object that is open.
    pieces: usize,
}

impl JsonStream {
    /// The text up to the code of the next object, whose pieces come next.
    ///
    /// # Errors
    /// Internal if a value cannot be written.
    pub fn object(&mut self, facts: &ObjectFacts) -> Result<String> {
        let ObjectFacts { id, bare, target, code_object_version, digest, line_table } = facts;
        self.written(|json, out| {
            if json.objects == 0 {
                json.begin(out)?;
            } else {
                json.end_object(out)?;
            }
            json.formatter.begin_array_value(out, json.objects == 0)?;
            json.formatter.begin_object(out)?;
            json.field(out, true, "id", id)?;
            json.field(out, false, "bare", bare)?;
            json.field(out, false, "target", target)?;
            json.field(out, false, "code_object_version", code_object_version)?;
            json.field(out, false, "digest", digest)?;
            json.field(out, false, "line_table", line_table)?;
            json.key(out, false, "code")?;
            json.formatter.begin_array(out)?;
            (json.objects, json.pieces) = (json.objects + 1, 0);
            Ok(())
        })
    }

    /// The text of the next piece of code of the object that is open.
    ///
    /// # Errors
    /// Internal if a value cannot be written.
    pub fn code(&mut self, code: &CodeText) -> Result<String> {
        self.written(|json, out| {
            json.formatter.begin_array_value(out, json.pieces == 0)?;
            json.value(out, code)?;
            json.formatter.end_array_value(out)?;
            json.pieces += 1;
            Ok(())
        })
    }

    /// The end of the text.
    ///
    /// # Errors
    /// Internal if a value cannot be written.
    pub fn finish(mut self) -> Result<String> {
        self.written(|json, out| {
            if json.objects == 0 {
                json.begin(out)?;
            } else {
                json.end_object(out)?;
            }
            json.formatter.end_array(out)?;
            json.formatter.end_object_value(out)?;
            json.formatter.end_object(out)?;
            out.push(b'\n');
            Ok(())
        })
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        self.formatter.begin_object(out)?;
        self.field(out, true, "schema", SCHEMA)?;
        self.key(out, false, "objects")?;
        self.formatter.begin_array(out)
    }

    fn end_object(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        self.formatter.end_array(out)?;
        self.formatter.end_object_value(out)?;
        self.formatter.end_object(out)?;
        self.formatter.end_array_value(out)
    }

    fn key(&mut self, out: &mut Vec<u8>, first: bool, key: &str) -> std::io::Result<()> {
        self.formatter.begin_object_key(out, first)?;
        self.value(out, key)?;
        self.formatter.end_object_key(out)?;
        self.formatter.begin_object_value(out)
    }

    fn field<T: Serialize + ?Sized>(
        &mut self,
        out: &mut Vec<u8>,
        first: bool,
        key: &str,
        value: &T,
    ) -> std::io::Result<()> {
        self.key(out, first, key)?;
        self.value(out, value)?;
        self.formatter.end_object_value(out)
    }

    fn value<T: Serialize + ?Sized>(&self, out: &mut Vec<u8>, value: &T) -> std::io::Result<()> {
        value.serialize(&mut Serializer::with_formatter(out, self.formatter.clone()))?;
        Ok(())
    }

    fn written(&mut self, write: impl FnOnce(&mut Self, &mut Vec<u8>) -> std::io::Result<()>) -> Result<String> {
        let internal = |error: &dyn std::fmt::Display| Error::internal(format!("JSON: {error}"));
        let mut out = Vec::new();
        write(self, &mut out).map_err(|error| internal(&error))?;
        String::from_utf8(out).map_err(|error| internal(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disassembly::{CodeKind, Disassembly, InstText, ListedObject};

    fn object(id: &str, pieces: usize) -> ListedObject {
        let facts = ObjectFacts {
            id: id.to_owned(),
            bare: false,
            target: "gfx90a".to_owned(),
            code_object_version: 5,
            digest: "00".to_owned(),
            line_table: true,
        };
        let code = CodeText {
            kind: CodeKind::Other,
            name: None,
            demangled: Some("a \"name\"".to_owned()),
            target: "gfx90a".to_owned(),
            section: ".text".to_owned(),
            address: 0x1000,
            end: 0x1004,
            kernel: None,
            problem: None,
            pressure: None,
            counted: None,
            blocks: Vec::new(),
            loops: Vec::new(),
            instructions: vec![InstText::default()],
        };
        ListedObject { facts, code: vec![code; pieces] }
    }

    #[test]
    fn pieces_are_the_text_of_the_whole() {
        for objects in [vec![], vec![object("0.1", 2), object("0.2", 0), object("0.3", 1)], vec![object("0.0", 0)]] {
            let mut stream = JsonStream::default();
            let mut text = String::new();
            for object in &objects {
                text += &stream.object(&object.facts).expect("text");
                object.code.iter().for_each(|code| text += &stream.code(code).expect("text"));
            }
            text += &stream.finish().expect("text");
            let whole = Disassembly { schema: SCHEMA.to_owned(), objects };
            assert_eq!(text, serde_json::to_string_pretty(&whole).expect("JSON") + "\n");
        }
    }
}
