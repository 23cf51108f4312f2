//! Which code objects have the same code: compilers make the same of a program for processors that differ little.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::code_object::CodeObject;
use crate::offload_bundle::Found;
use wavetap_base::error::{Error, Result, ResultExt};

/// The code objects by number, in groups of those with the same code in the same place.
///
/// # Errors
/// Unsupported if there are none, or if one was rewritten before, in whatever part: two control blocks in one program
/// clash, and sites of inserted code mean nothing.
pub fn group_by_code(objects: &[Found<'_>]) -> Result<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_code: FxHashMap<u64, usize> = FxHashMap::default();
    for (index, found) in objects.iter().enumerate() {
        // One that cannot be read is told of when it is its turn.
        let Ok(code) = CodeObject::parse(found.bytes) else {
            groups.push(vec![index]);
            continue;
        };
        if code.is_rewritten() {
            return Err(Error::unsupported("this code was rewritten before: rewrite the original"))
                .within(|| found.location());
        }
        // Whether they are the same is looked at again: here it is enough that the same are never apart.
        let mut hasher = FxHasher::default();
        for segment in code.elf().loads().filter(|segment| segment.is_executable()) {
            segment.address.hash(&mut hasher);
            code.bytes_at(segment.address, segment.file_size).unwrap_or_default().hash(&mut hasher);
        }
        let group = *by_code.entry(hasher.finish()).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    if objects.is_empty() {
        Err(Error::unsupported("no entry of its bundles is a code object").at(0))
    } else {
        Ok(groups)
    }
}
