//! Which code the kernels of a name are of. Code objects of one file are of one program: a kernel of a header is in
//! several. Kernels whose code objects are in no file together, nor linked by others that are, are of different builds.

use std::collections::BTreeMap;

use crate::file::KernelTotals;
use wavetap_base::error::{Error, Result};

/// The code objects of each kernel, by its name and target.
#[derive(Debug, Default)]
pub(super) struct Builds(BTreeMap<(String, String), Vec<CodeObject>>);

#[derive(Debug)]
struct CodeObject {
    digest: String,
    /// The first file that has it.
    file: String,
    /// Code objects of one program have one number, that of the first of them.
    program: usize,
}

impl Builds {
    /// Adds the kernels of a file.
    pub(super) fn add(&mut self, kernels: &[KernelTotals], file: &str) {
        let mut programs: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for kernel in kernels {
            let objects = self.0.entry((kernel.name.clone(), kernel.target.clone())).or_default();
            let known = objects.iter().position(|object| object.digest == kernel.object);
            let at = known.unwrap_or_else(|| {
                let program = objects.len();
                objects.push(CodeObject { digest: kernel.object.clone(), file: file.to_owned(), program });
                program
            });
            let own = objects[at].program;
            let of_file = *programs.entry((&kernel.name, &kernel.target)).or_insert(own);
            let (first, other) = (own.min(of_file), own.max(of_file));
            objects.iter_mut().filter(|object| object.program == other).for_each(|object| object.program = first);
            programs.insert((&kernel.name, &kernel.target), first);
        }
    }

    /// Fails if a kernel is of different builds.
    ///
    /// # Errors
    /// Unsupported: the file, the kernel and both code objects.
    pub(super) fn check(&self) -> Result<()> {
        for ((name, target), objects) in &self.0 {
            let [first, rest @ ..] = objects.as_slice() else { continue };
            if let Some(other) = rest.iter().find(|object| object.program != first.program) {
                return Err(Error::unsupported(format!(
                    "{}: kernel {name} ({target}) is of another build than in {}: code digest {}, not {}; \
                        --different-builds keeps both apart",
                    other.file, first.file, other.digest, first.digest
                )));
            }
        }
        Ok(())
    }
}
