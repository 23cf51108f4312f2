//! Code of GPUs of other vendors than AMD: listed, sliced and joined with samples. It is never rewritten or run.
//!
//! [`Vendor::of`] says whose code a file has. Each vendor is a crate that reads its own files and builds
//! [`wavetap_code::Code`]; from there on everything is the same for all ([`FoundCode`]).

mod intel;
mod nvidia;

use std::collections::BTreeMap;

use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_code::{Code, Function};
use wavetap_explain::names::outline;
use wavetap_explain::slice::Slice;
use wavetap_object::code_object::demangle;
use wavetap_object::selection::{Selection, no_kernel};
use wavetap_profile::pc_samples::{PcSamples, Place, SampleKind, SampledObject};
use wavetap_report::vendor_code::{SCHEMA, VendorCode, VendorFunction, VendorObject};
use wavetap_slice::{Blame, CodeToSlice, SliceInputs};

/// Who makes the GPUs that code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// NVIDIA: cubins, fat binaries, host files with these.
    Nvidia,
    /// Intel: zebins, OpenCL device binaries, archives of these.
    Intel,
}

/// Code for a processor, decoded as far as it was selected.
struct FoundCode<'a> {
    target: String,
    functions: Vec<FoundFunction<'a>>,
}

struct FoundFunction<'a> {
    name: String,
    is_kernel: bool,
    code: Result<Code<'a>>,
}

/// What of a file was not read.
#[derive(Default)]
struct NotRead {
    /// What need not be.
    notes: Vec<String>,
    /// What could not be.
    unread: Vec<String>,
}

/// What `then` is given: the selected code, and what was not read.
type Then<'t> = &'t mut dyn FnMut(Vec<FoundCode<'_>>, NotRead);

/// The samples of a function, by its name as their file has it.
type SampledFunctions = Vec<(String, BTreeMap<u64, Place>)>;

impl Vendor {
    /// The vendor whose code a file has, as its beginning says; none if it may be AMD's, or is no such file.
    #[must_use]
    pub fn of(data: &[u8]) -> Option<Vendor> {
        if wavetap_nvidia::container::is_nvidia(data) {
            Some(Vendor::Nvidia)
        } else if wavetap_intel::container::is_intel(data) {
            Some(Vendor::Intel)
        } else {
            None
        }
    }

    /// The vendor's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Vendor::Nvidia => "NVIDIA",
            Vendor::Intel => "Intel",
        }
    }

    /// Reads what is selected of a file.
    fn read(self, (data, origin): (&[u8], &str), selection: &Selection, then: Then<'_>) -> Result<()> {
        match self {
            Vendor::Nvidia => nvidia::read((data, origin), selection, then),
            Vendor::Intel => intel::read((data, origin), selection, then),
        }
    }

    fn samples(self, text: &str) -> Result<SampledFunctions> {
        match self {
            Vendor::Nvidia => nvidia::samples(text),
            Vendor::Intel => intel::samples(text),
        }
    }

    /// Lists the selected code of a file of this name, with its instructions if they are `listed`.
    ///
    /// # Errors
    /// Malformed or unsupported if nothing of it can be read, or if nothing is selected.
    pub fn code(self, file: (&[u8], &str), selection: &Selection, listed: bool) -> Result<VendorCode> {
        let mut all = VendorCode {
            schema: SCHEMA.to_owned(),
            vendor: self.name().to_owned(),
            objects: Vec::new(),
            notes: Vec::new(),
            unread: Vec::new(),
        };
        self.read(file, selection, &mut |found, not_read| {
            let of_function = |function: &FoundFunction<'_>| {
                let demangled = demangle(&function.name);
                match &function.code {
                    Ok(code) => VendorFunction::of(code, &demangled, listed),
                    Err(error) => {
                        VendorFunction::refused(&function.name, &demangled, function.is_kernel, error.to_string())
                    }
                }
            };
            all.objects = found
                .iter()
                .map(|object| VendorObject {
                    target: object.target.clone(),
                    functions: object.functions.iter().map(of_function).collect(),
                })
                .collect();
            (all.notes, all.unread) = (not_read.notes, not_read.unread);
        })?;
        Ok(all)
    }

    /// Slices the selected kernels of a file of this name. `samples` are files of the vendor's own tools, each with
    /// its name.
    ///
    /// # Errors
    /// Malformed or unsupported if nothing of the file can be read, nothing is selected, or samples are of other code.
    pub fn slice(
        self,
        file: (&[u8], &str),
        selection: &Selection,
        samples: &[(String, String)],
        blame: Blame,
    ) -> Result<Slice> {
        let sampled = samples.iter().map(|(name, text)| self.samples(text).within(|| name.clone()));
        let sampled = sampled.collect::<Result<Vec<SampledFunctions>>>()?;
        let mut result = Err(Error::internal("a file was not read"));
        self.read(file, selection, &mut |found, not_read| result = slice(found, not_read.unread, &sampled, blame))?;
        result
    }
}

/// Slices what was found. A function that is not decoded is left out, with the reason.
fn slice(
    found: Vec<FoundCode<'_>>,
    mut unread: Vec<String>,
    sampled: &[SampledFunctions],
    blame: Blame,
) -> Result<Slice> {
    let mut codes: Vec<(String, Code<'_>)> = Vec::new();
    for FoundCode { target, functions } in found {
        // As of AMD's code: functions that kernels call are not waits of their own.
        let has_kernels = functions.iter().any(|function| function.is_kernel);
        for function in functions.into_iter().filter(|function| function.is_kernel || !has_kernels) {
            match function.code {
                Ok(code) => codes.push((target.clone(), code)),
                Err(error) => unread.push(error.to_string()),
            }
        }
    }
    let samples = sampled.iter().map(|functions| given(functions, &codes)).collect::<Result<Vec<PcSamples>>>()?;
    // Addresses begin anew in each function, so each is an object of its own.
    let objects: Vec<CodeToSlice<'_>> = codes
        .iter()
        .map(|(target, code)| CodeToSlice {
            target_id: target,
            digest: "",
            size: 0,
            loaded: code.span(),
            kernels: if code.is_kernel() { vec![code.name()] } else { Vec::new() },
            functions: vec![Box::new(code) as Box<dyn Function + '_>],
            lines: code.lines(),
            demangle,
        })
        .collect();
    let selected = |_: &CodeToSlice<'_>, _: &str| true;
    let inputs = SliceInputs { objects: &objects, selected: &selected, profile: None, samples: &samples, blame };
    Ok(Slice::new(wavetap_slice::slice(&inputs)?, unread))
}

/// Samples with the functions that they are of: by name, mangled or not, and by the instructions that they name.
fn given(functions: &SampledFunctions, codes: &[(String, Code<'_>)]) -> Result<PcSamples> {
    let mut samples = PcSamples {
        kind: SampleKind::Stochastic,
        modelled: false,
        objects: Vec::new(),
        dispatches: BTreeMap::new(),
        nowhere: 0,
    };
    for (number, (name, places)) in functions.iter().enumerate() {
        let named = |code: &Code<'_>| {
            let demangled = demangle(code.name());
            code.name() == name || demangled == *name || outline(&demangled) == outline(name)
        };
        let mut places = places.clone();
        let mut mangled = name.clone();
        let mut wrong = None;
        for (_, code) in codes.iter().filter(|(_, code)| named(code)) {
            wrong = mismatch(&places, code);
            if wrong.is_none() {
                code.name().clone_into(&mut mangled);
                break;
            }
        }
        if let Some(error) = wrong {
            return Err(error.within(name.clone()));
        }
        // Texts were compared here: what tools print differs in more than the slicer's comparison allows.
        places.values_mut().for_each(|place| place.instruction = None);
        samples.objects.push(SampledObject {
            id: number as u64 + 1,
            kernels: vec![mangled],
            places,
            ..SampledObject::default()
        });
    }
    Ok(samples)
}

/// What of the instructions that samples name is another one in the code.
fn mismatch(places: &BTreeMap<u64, Place>, code: &Code<'_>) -> Option<Error> {
    let operation = |text: &str| -> String {
        let words = text.split_whitespace().find(|word| !word.starts_with(['@', '(', '{'])).unwrap_or_default();
        words.split('.').next().unwrap_or_default().to_ascii_lowercase()
    };
    let wrong = |(&offset, place): (&u64, &Place)| {
        let Some(id) = code.at(offset) else {
            let text = "samples have an instruction where none begins: they are of other code";
            return Some(Error::malformed(text).at(offset));
        };
        let (sampled, here) = (place.instruction.as_ref()?, &code.inst(id).text);
        (operation(sampled) != operation(here)).then(|| {
            Error::malformed(format!("samples saw `{sampled}` where this code has `{here}`: they are of other code"))
                .at(offset)
        })
    };
    places.iter().find_map(wrong)
}

/// Whether code for a processor is selected.
fn has_target(selection: &Selection, target: &str) -> bool {
    selection.targets.is_empty() || selection.targets.iter().any(|wanted| wanted.eq_ignore_ascii_case(target))
}

/// Refuses a selection that nothing of a file fits; `targets` and `names` are what it has.
fn check(origin: &str, selection: &Selection, targets: &[String], names: &[&str]) -> Result<()> {
    if let Some(wanted) =
        selection.targets.iter().find(|wanted| !targets.iter().any(|has| has.eq_ignore_ascii_case(wanted)))
    {
        let text = format!("there is no code for {wanted}: it has code for {}", targets.join(", "));
        return Err(Error::malformed(text).within(origin));
    }
    let is_there = |pattern: &str| names.iter().any(|name| Selection::of_kernel(pattern).has_kernel(name));
    match selection.kernels.iter().find(|pattern| !is_there(pattern)) {
        Some(pattern) => Err(no_kernel(pattern, names).within(origin)),
        None => Ok(()),
    }
}

/// Refuses what is asked of another vendor's code and can be done for AMD's only.
///
/// # Errors
/// Unsupported.
pub fn refuse(vendor: Vendor, what: &str) -> Result<()> {
    Err(Error::new(Kind::Unsupported, format!("{what} is for AMD GPUs: this file has code of {}", vendor.name())))
}
