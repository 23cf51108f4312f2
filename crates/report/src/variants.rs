//! Kernels of one name that were compiled more than once: for several constants by a just-in-time compiler, or in
//! several libraries. They are shown one after the other, each with what tells it apart: its code object and how it was
//! launched.

use std::collections::{BTreeMap, BTreeSet};

use super::launches::Launch;
use super::style::counted;
use super::table::grouped;
use wavetap_profile::launches::{LaunchShape, UncountedDispatches};

/// Digits of a code object's MD5 that text shows, if they tell it apart from the others.
const DIGITS: usize = 8;
/// Kinds of launches named in text; JSON has all.
const SHOWN: usize = 3;

/// What a kernel is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'k> {
    /// Mangled name.
    pub name: &'k str,
    /// Target id.
    pub target: &'k str,
    /// MD5 of the original code object.
    pub object: &'k str,
}

/// Which of several kernels of one name and target this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variant<'k> {
    number: usize,
    of: usize,
    object: &'k str,
}

impl Variant<'_> {
    /// `variant 2 of 3: code object 3f2a91bc`.
    pub(super) fn text(self) -> String {
        let Variant { number, of, object } = self;
        format!("variant {number} of {of}: code object {object}")
    }

    /// The same with its launches.
    pub(super) fn launched(self, launches: &[Launch]) -> String {
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
    let workgroups = shape.grid.map(|grid| [0, 1, 2].map(|axis| grid[axis].div_ceil(shape.workgroup[axis].max(1))));
    let workgroups = workgroups.map_or_else(String::new, |count| format!("{} ", axes(count)));
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
pub(super) fn in_order<'k, K>(kernels: &'k [K], key: impl Fn(&'k K) -> Key<'k>) -> Vec<(&'k K, Option<Variant<'k>>)> {
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
pub(super) fn object_of<'k>(
    uncounted: &'k UncountedDispatches,
    others: impl Iterator<Item = Key<'k>>,
) -> Option<&'k str> {
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
