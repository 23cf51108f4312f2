//! The words of the tables: from `vocabulary.yaml` to Rust types, and to the numbers that stand for them in the binary
//! table.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use super::{Failure, read};

/// A list of words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// What it becomes, by its name: one of these, or an enum and the sets of it.
    r#enum: Option<String>,
    flags: Option<String>,
    values: Option<String>,
    /// Of flags: the integer that holds them.
    bits: Option<String>,
    /// Of flags that are an enum as well: what is said of the set.
    flags_doc: Option<String>,
    /// Of an enum: what `name` adds to a word.
    #[serde(default)]
    suffix: String,
    /// Of values: their type.
    of: Option<String>,
    doc: Option<String>,
    words: Vec<Word>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    word: String,
    name: Option<String>,
    doc: Option<String>,
}

impl Word {
    /// Its name as a variant of an enum.
    fn variant(&self) -> String {
        self.name.clone().unwrap_or_else(|| camel_case(&self.word))
    }

    /// Its name as a member of a set.
    fn constant(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.word.to_uppercase())
    }
}

impl List {
    fn names(&self) -> impl Iterator<Item = &String> {
        [&self.r#enum, &self.flags, &self.values].into_iter().flatten()
    }

    fn source(&self, out: &mut String) -> Result<(), Failure> {
        let doc = self.doc.as_deref();
        match (&self.r#enum, &self.flags, &self.values) {
            (Some(name), None, None) => self.enum_source(out, name, doc.ok_or("an enum without doc")?),
            (None, Some(name), None) => self.flags_source(out, name, doc.ok_or("flags without doc")?),
            (Some(name), Some(flags), None) => {
                self.enum_source(out, name, doc.ok_or("an enum without doc")?)?;
                self.flags_source(out, flags, self.flags_doc.as_deref().ok_or("no doc of the set ('flags_doc')")?)
            }
            (None, None, Some(name)) => {
                let of = self.of.as_deref().ok_or("values without their type ('of')")?;
                writeln!(out, "pub(super) const {name}: [{of}; {}] = [", self.words.len())?;
                self.words.iter().try_for_each(|word| writeln!(out, "    {of}::{},", word.variant()))?;
                out.push_str("];\n");
                Ok(())
            }
            _ => Err("a list is an enum, flags, both, or values".into()),
        }
    }

    fn enum_source(&self, out: &mut String, name: &str, doc: &str) -> Result<(), Failure> {
        writeln!(
            out,
            "/// {doc}\n#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\npub enum {name} {{"
        )?;
        for word in &self.words {
            self.doc_of(out, word)?;
            writeln!(out, "    {},", word.variant())?;
        }
        let count = self.words.len();
        writeln!(
            out,
            "}}\nimpl {name} {{\n    /// All, in the order of their numbers in the tables.\n    pub const ALL: \
                [{name}; {count}] = ["
        )?;
        self.words.iter().try_for_each(|word| writeln!(out, "        {name}::{},", word.variant()))?;
        writeln!(out, "    ];\n    const NAMES: [&'static str; {count}] = [")?;
        self.words
            .iter()
            .try_for_each(|word| writeln!(out, "        {:?},", format!("{}{}", word.word, self.suffix)))?;
        out.push_str(
            "    ];\n    /// What the tables call it.\n    #[must_use]\n    pub const fn name(self) -> \
            &'static str {\n",
        );
        out.push_str("        Self::NAMES[self as usize]\n    }\n}\n");
        Ok(())
    }

    fn flags_source(&self, out: &mut String, name: &str, doc: &str) -> Result<(), Failure> {
        let bits = self.bits.as_deref().ok_or("flags without the integer that holds them ('bits')")?;
        writeln!(
            out,
            "bitflags::bitflags! {{\n/// {doc}\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\npub struct {name}: \
                {bits} {{"
        )?;
        for (bit, word) in self.words.iter().enumerate() {
            self.doc_of(out, word)?;
            writeln!(out, "    const {} = 1 << {bit};", word.constant())?;
        }
        out.push_str("}\n}\n");
        Ok(())
    }

    fn doc_of(&self, out: &mut String, word: &Word) -> Result<(), Failure> {
        match &word.doc {
            Some(doc) => writeln!(out, "    /// {doc}")?,
            None => writeln!(out, "    /// `{}`.", word.word)?,
        }
        Ok(())
    }
}

/// `vop1_dpp8` as `Vop1Dpp8`.
fn camel_case(word: &str) -> String {
    let mut out = String::new();
    for part in word.split('_') {
        let mut letters = part.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

/// All lists.
pub(super) struct Vocabulary(Vec<List>);

impl Vocabulary {
    /// Reads `vocabulary.yaml`.
    pub(super) fn read(tables: &Path) -> Result<Vocabulary, Failure> {
        let lists: Vec<List> = read(&tables.join("vocabulary.yaml"))?;
        for list in &lists {
            for (at, word) in list.words.iter().enumerate() {
                if list.words[..at].iter().any(|other| other.word == word.word || other.variant() == word.variant()) {
                    return Err(format!(
                        "vocabulary.yaml: {:?} has '{}' twice",
                        list.names().collect::<Vec<_>>(),
                        word.word
                    )
                    .into());
                }
            }
        }
        Ok(Vocabulary(lists))
    }

    fn list(&self, name: &str) -> Result<&List, Failure> {
        let list = self.0.iter().find(|list| list.names().any(|known| known == name));
        Ok(list.ok_or_else(|| format!("vocabulary.yaml has no {name}"))?)
    }

    /// The words of the list that becomes this type.
    pub(super) fn words(&self, list: &str) -> Result<impl ExactSizeIterator<Item = &str>, Failure> {
        Ok(self.list(list)?.words.iter().map(|word| word.word.as_str()))
    }

    /// The name in Rust of a word of an enum.
    pub(super) fn variant(&self, list: &str, word: &str) -> Result<String, Failure> {
        let found = self.list(list)?.words.iter().find(|known| known.word == word);
        Ok(found.ok_or_else(|| format!("'{word}' is none of {list} in vocabulary.yaml"))?.variant())
    }

    /// The number of a word in a list; none if it is not there.
    pub(super) fn find(&self, list: &str, word: &str) -> Result<Option<u8>, Failure> {
        Ok(self.words(list)?.position(|known| known == word).map(u8::try_from).transpose()?)
    }

    /// The number of a word in a list.
    pub(super) fn number(&self, list: &str, word: &str) -> Result<u8, Failure> {
        self.find(list, word)?.ok_or_else(|| format!("'{word}' is none of {list} in vocabulary.yaml").into())
    }

    /// A set of words, as bits.
    pub(super) fn set<'a>(&self, list: &str, members: impl IntoIterator<Item = &'a String>) -> Result<u16, Failure> {
        members.into_iter().try_fold(0, |bits, member| Ok(bits | 1u16 << self.number(list, member)?))
    }

    /// Rust source of the types.
    pub(super) fn source(&self) -> Result<String, Failure> {
        let mut out = String::new();
        for list in &self.0 {
            list.source(&mut out)
                .map_err(|error| format!("vocabulary.yaml: {:?}: {error}", list.names().collect::<Vec<_>>()))?;
        }
        Ok(out)
    }
}
