//! Validates JSON against the committed schemas (`docs/reference/schemas`), with a validator that knows nothing of the
//! types.

use std::collections::BTreeMap;
use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use rewriter_tests::{Failure, place};
use serde_json::Value;

/// What a schema's name begins with.
const PREFIX: &str = "wavetap.";

/// The committed schemas by name, `wavetap.report/1`.
pub struct Validator {
    schemas: Schemas,
    by_name: BTreeMap<String, SchemaIndex>,
}

impl Validator {
    /// Reads and compiles all of them.
    pub fn new() -> Result<Validator, Failure> {
        let folder = place::root().join("docs/reference/schemas");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let mut by_name = BTreeMap::new();
        for entry in fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))? {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let wrong = |what: String| format!("{}: {what}", path.display());
            let text = fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
            let schema: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
            let name = schema["title"]
                .as_str()
                .filter(|name| name.starts_with(PREFIX))
                .ok_or_else(|| wrong("no title".into()))?
                .to_owned();
            let file = path.display().to_string();
            compiler.add_resource(&file, schema).map_err(|e| wrong(e.to_string()))?;
            by_name.insert(name, compiler.compile(&file, &mut schemas).map_err(|e| wrong(format!("{e:#}")))?);
        }
        if by_name.is_empty() { Err("there are no schemas".into()) } else { Ok(Validator { schemas, by_name }) }
    }

    /// Checks a text that is JSON of ours; any other is none of this test's business. Says which schema it has.
    pub fn check(&self, text: &str) -> Result<Option<String>, Failure> {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(None) };
        // Stall samples are in the form of another tool, which has a place for what they are.
        let samples = &value["rocprofiler-sdk-tool"][0];
        let (name, value) = match (value["schema"].as_str(), samples["metadata"]["schema"].as_str()) {
            (Some(name), _) => (name, &value),
            (None, Some(name)) => (name, samples),
            (None, None) => return Ok(None),
        };
        if !name.starts_with(PREFIX) {
            return Ok(None);
        }
        let index = self.by_name.get(name).ok_or_else(|| format!("no schema of {name}"))?;
        match self.schemas.validate(value, *index) {
            Ok(()) => Ok(Some(name.to_owned())),
            Err(error) => Err(format!("not as its schema says: {error:#}")),
        }
    }
}
