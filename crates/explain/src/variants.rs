//! Kernels of one name that were compiled more than once: for several constants by a just-in-time compiler, or in
//! several libraries. They are shown one after the other, each with what tells it apart: its code object and how it was
//! launched.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::launches::Launch;
use crate::words::{counted, grouped};
use wavetap_profile::launches::{LaunchShape, UncountedDispatches};

/// Digits of a code object's MD5 that text shows, if they tell it apart from the others.
const DIGITS: usize = 8;
/// Kinds of launches named in text; JSON has all.
const SHOWN: usize = 3;

/// What a just-in-time compiler says of a code object that it made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Build {
    /// The compiler.
    pub compiler: Compiler,
    /// What its cache calls the code, the first in the order of text where it made the same code more than once.
    pub hash: String,
    /// Options by name; those that differ where it made the same code more than once are left out.
    pub options: BTreeMap<String, u64>,
}

/// A just-in-time compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compiler {
    /// Triton.
    Triton,
}

/// Options that text has before others.
const FIRST_OPTIONS: [&str; 2] = ["num_warps", "num_stages"];

impl Build {
    /// `Triton: num_warps 4, num_stages 2, num_ctas 1; cached as e99266f0`.
    pub fn line(&self) -> String {
        let Compiler::Triton = self.compiler;
        let hash = self.hash.get(..DIGITS).unwrap_or(&self.hash);
        format!("Triton: {}; cached as {hash}", self.in_words(|_| true))
    }

    /// `num_warps 4, num_stages 2`: the options for which `is_shown` holds.
    fn in_words(&self, is_shown: impl Fn(&str) -> bool) -> String {
        let mut options: Vec<(&String, &u64)> = self.options.iter().filter(|(name, _)| is_shown(name)).collect();
        let place = |name: &str| FIRST_OPTIONS.iter().position(|first| *first == name).unwrap_or(FIRST_OPTIONS.len());
        options.sort_by_key(|(name, _)| place(name));
        let options: Vec<String> = options.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        options.join(", ")
    }
}

/// In few words what tells each kernel from others of its name and target: the options that differ, if these do, and
/// else its code object. None of a kernel that is the only one.
pub fn labels(kernels: &[(Key<'_>, Option<&Build>)]) -> Vec<Option<String>> {
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (place, (key, _)) in kernels.iter().enumerate() {
        groups.entry((key.name, key.target)).or_default().push(place);
    }
    let mut labels = vec![None; kernels.len()];
    for group in groups.values().filter(|group| group.len() > 1) {
        let value = |place: usize, name: &str| kernels[place].1.and_then(|build| build.options.get(name).copied());
        let differs = |name: &str| group.iter().any(|place| value(*place, name) != value(group[0], name));
        let words = |place: &usize| kernels[*place].1.map_or_else(String::new, |build| build.in_words(differs));
        let words: Vec<String> = group.iter().map(words).collect();
        let objects: BTreeSet<&str> = group.iter().map(|place| kernels[*place].0.object).collect();
        for (place, own) in group.iter().zip(&words) {
            let object = short(kernels[*place].0.object, &objects);
            let is_alone = words.iter().filter(|other| *other == own).count() == 1;
            labels[*place] = Some(match (own.is_empty(), is_alone) {
                (true, _) => object.to_owned(),
                (false, true) => own.clone(),
                (false, false) => format!("{own}, {object}"),
            });
        }
    }
    labels
}

/// A kernel's name with what tells it from others of that name.
pub fn labelled(name: &str, variant: Option<&str>) -> String {
    variant.map_or_else(|| name.to_owned(), |variant| format!("{name} [{variant}]"))
}

/// What a kernel is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'k> {
    /// Mangled name.
    pub name: &'k str,
    /// Target id.
    pub target: &'k str,
    /// MD5 of the original code object.
    pub object: &'k str,
}

/// Which of several kernels of one name and target this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant<'k> {
    number: usize,
    of: usize,
    object: &'k str,
}

impl Variant<'_> {
    /// `variant 2 of 3: code object 3f2a91bc`.
    pub fn text(self) -> String {
        let Variant { number, of, object } = self;
        format!("variant {number} of {of}: code object {object}")
    }

    /// The same with its launches.
    pub fn launched(self, launches: &[Launch]) -> String {
        let shapes: Vec<String> = launches.iter().take(SHOWN).map(|launch| shape(&launch.shape)).collect();
        let more = launches.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(", and {more} more: --format json has all") } else { String::new() };
        if shapes.is_empty() {
            self.text()
        } else {
            format!("{}, launched as {}{more}", self.text(), shapes.join(", "))
        }
    }
}

/// `4×2×1 workgroups of 128×1×1 with 20,480 bytes of dynamic LDS`.
fn shape(shape: &LaunchShape) -> String {
    let axes = |of: [u32; 3]| of.map(|n| n.to_string()).join("×");
    let workgroups = shape.workgroups().map_or_else(String::new, |count| format!("{} ", axes(count)));
    let lds = if shape.dynamic_lds > 0 {
        format!(" with {} bytes of dynamic LDS", grouped(shape.dynamic_lds.into()))
    } else {
        String::new()
    };
    let times = if shape.dispatches == 1 {
        String::new()
    } else {
        format!(" ({})", counted(shape.dispatches, "time", "times"))
    };
    format!("{workgroups}workgroups of {}{lds}{times}", axes(shape.workgroup))
}

/// Kernels in the order in which they are shown: as they were first dispatched, and variants of one right after its
/// first.
pub fn in_order<'k, K>(kernels: &'k [K], key: impl Fn(&'k K) -> Key<'k>) -> Vec<(&'k K, Option<Variant<'k>>)> {
    let mut groups: Vec<Vec<&K>> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for kernel in kernels {
        let Key { name, target, .. } = key(kernel);
        let place = *places.entry((name, target)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(kernel);
    }
    let of_group = |group: Vec<&'k K>| {
        let of = group.len();
        let objects: BTreeSet<&str> = group.iter().map(|kernel| key(kernel).object).collect();
        let name = |object: &'k str| short(object, &objects);
        let variant =
            |number: usize, kernel: &'k K| (of > 1).then(|| Variant { number, of, object: name(key(kernel).object) });
        group.into_iter().enumerate().map(|(index, kernel)| (kernel, variant(index + 1, kernel))).collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// The code object of what was not counted, where others with a kernel of this name and target make it necessary to say
/// which.
pub fn object_of<'k>(uncounted: &'k UncountedDispatches, others: impl Iterator<Item = Key<'k>>) -> Option<&'k str> {
    let same = others.filter(|other| (other.name, other.target) == (&*uncounted.name, &*uncounted.target));
    let objects: BTreeSet<&str> = same.map(|other| other.object).chain([&*uncounted.object]).collect();
    (objects.len() > 1 && !uncounted.object.is_empty()).then(|| short(&uncounted.object, &objects))
}

/// The first digits of an MD5, or all if these are others' as well.
fn short<'k>(object: &'k str, all: &BTreeSet<&str>) -> &'k str {
    let first = object.get(..DIGITS).unwrap_or(object);
    let alone = all.iter().filter(|other| other.starts_with(first)).count() <= 1;
    if alone { first } else { object }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaa00000000";
    const B: &str = "bbbbbbbb00000000";
    const LIKE_A: &str = "aaaaaaaa11111111";

    /// A kernel's name, and of a variant its number, of how many, and its object.
    type Shown<'k> = (&'k str, Option<(usize, usize, &'k str)>);

    fn shown<'k>(kernels: &'k [(&'k str, &'k str, &'k str)]) -> Vec<Shown<'k>> {
        let key = |&(name, target, object): &'k (&'k str, &'k str, &'k str)| Key { name, target, object };
        let each = in_order(kernels, key).into_iter();
        each.map(|(kernel, variant)| (kernel.0, variant.map(|v| (v.number, v.of, v.object)))).collect()
    }

    #[test]
    fn variants_follow_the_first_and_others_keep_their_order() {
        let kernels =
            [("matmul", "gfx942", A), ("add", "gfx942", B), ("matmul", "gfx942", B), ("matmul", "gfx90a", LIKE_A)];
        let expected = [
            ("matmul", Some((1, 2, "aaaaaaaa"))),
            ("matmul", Some((2, 2, "bbbbbbbb"))),
            ("add", None),
            ("matmul", None),
        ];
        assert_eq!(shown(&kernels), expected);
    }

    #[test]
    fn as_many_digits_as_tell_objects_apart() {
        let kernels = [("k", "gfx942", A), ("k", "gfx942", LIKE_A), ("k", "gfx942", B)];
        assert_eq!(
            shown(&kernels).into_iter().filter_map(|(_, variant)| Some(variant?.2)).collect::<Vec<_>>(),
            [A, LIKE_A, "bbbbbbbb"]
        );
    }

    #[test]
    fn options_that_differ_tell_kernels_apart() {
        let build = |options: &[(&str, u64)]| Build {
            compiler: Compiler::Triton,
            hash: "0123456789".to_owned(),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        };
        let key = |name, object| Key { name, target: "gfx942", object };
        let (two, four) = (build(&[("kpack", 1), ("num_stages", 3), ("num_warps", 2)]), build(&[("num_warps", 4)]));
        let of = |kernels: &[(Key<'_>, Option<&Build>)]| labels(kernels);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(&[(key("k", A), Some(&two)), (key("k", B), Some(&four)), (key("other", A), Some(&two))]),
            [some("num_warps 2, num_stages 3, kpack 1"), some("num_warps 4"), None]
        );
        // Nothing differs; nothing is known; it is known of one.
        assert_eq!(of(&[(key("k", A), Some(&two)), (key("k", B), Some(&two))]), [some("aaaaaaaa"), some("bbbbbbbb")]);
        assert_eq!(of(&[(key("k", A), None), (key("k", B), None)]), [some("aaaaaaaa"), some("bbbbbbbb")]);
        assert_eq!(of(&[(key("k", A), Some(&four)), (key("k", B), None)]), [some("num_warps 4"), some("bbbbbbbb")]);
        // Two of three are alike.
        assert_eq!(
            of(&[(key("k", A), Some(&four)), (key("k", B), Some(&four)), (key("k", LIKE_A), Some(&build(&[])))]),
            [some("num_warps 4, aaaaaaaa00000000"), some("num_warps 4, bbbbbbbb"), some("aaaaaaaa11111111")]
        );
        assert_eq!(two.line(), "Triton: num_warps 2, num_stages 3, kpack 1; cached as 01234567");
        assert_eq!(labelled("k", Some("num_warps 4")), "k [num_warps 4]");
    }

    #[test]
    fn launches_in_words() {
        let launch = |grid, workgroup, dynamic_lds, dispatches| Launch {
            shape: LaunchShape { grid, workgroup, dynamic_lds, dispatches },
            occupancy: None,
        };
        let variant = Variant { number: 2, of: 3, object: "3f2a91bc" };
        let launches = [launch(Some([512, 2, 1]), [128, 1, 1], 20480, 1), launch(None, [64, 2, 1], 0, 7)];
        let expected = "variant 2 of 3: code object 3f2a91bc, launched as 4×2×1 workgroups of 128×1×1 with 20,480 \
            bytes of dynamic LDS, workgroups of 64×2×1 (7 times)";
        assert_eq!(variant.launched(&launches), expected);
        assert_eq!(variant.launched(&[]), "variant 2 of 3: code object 3f2a91bc");
    }
}
