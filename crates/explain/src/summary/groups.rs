//! Which kernels a summary takes for one, and what it calls them.

use std::collections::BTreeMap;

use crate::names::outline;

/// Kernels that are shown as one: a kernel, or the instances of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Their places in the report, the one with the largest size first.
    pub(super) places: Vec<usize>,
    /// Their sizes, summed.
    pub(super) size: u64,
}

impl Group {
    /// The place of the kernel with the largest size.
    pub(super) fn largest(&self) -> usize {
        self.places[0]
    }
}

/// Arguments of a template, as an outline has them.
const ARGUMENTS: &str = "<…>";
/// Characters of the longest name whose template arguments are shown.
const LONGEST: usize = 60;

/// What instances of a template have in common: their name without arguments, and how many parameters they have.
fn template(demangled: &str) -> Option<(String, usize)> {
    let outline = outline(demangled);
    outline.ends_with(ARGUMENTS).then(|| (outline, parameters(demangled)))
}

/// How many parameters a function has, by its demangled name: by the commas of the last parentheses.
fn parameters(demangled: &str) -> usize {
    let (mut depth, mut in_parentheses, mut count) = (0_usize, false, 0);
    for character in demangled.chars() {
        match character {
            '(' | '<' | '[' | '{' => {
                if depth == 0 {
                    in_parentheses = character == '(';
                    count = if in_parentheses { 0 } else { count };
                }
                depth += 1;
                continue;
            }
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 1 && in_parentheses => count += 1,
            _ => {}
        }
        if depth > 0 && in_parentheses {
            count = count.max(1);
        }
    }
    count
}

/// A demangled name without its last parentheses, and without what comes before a space outside of brackets: the
/// return type.
fn without_parameters(demangled: &str) -> &str {
    let (mut depth, mut begin, mut end) = (0_usize, 0, demangled.len());
    for (at, character) in demangled.char_indices() {
        match character {
            '(' | '<' | '[' | '{' => {
                if depth == 0 && character == '(' && at > begin {
                    end = at;
                }
                depth += 1;
            }
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && end == demangled.len() => begin = at + 1,
            _ => {}
        }
    }
    &demangled[begin..end.max(begin)]
}

/// The groups of kernels with these targets and demangled names, and of these sizes; the largest group first.
pub(super) fn groups(names: &[(&str, &str)], sizes: &[u64]) -> Vec<Group> {
    let mut by_template: BTreeMap<(&str, (String, usize)), usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (place, ((target, demangled), size)) in names.iter().zip(sizes).enumerate() {
        let known = template(demangled).map(|template| *by_template.entry((*target, template)).or_insert(groups.len()));
        match known.and_then(|index| groups.get_mut(index)) {
            Some(group) => {
                group.places.push(place);
                group.size = group.size.saturating_add(*size);
            }
            None => groups.push(Group { places: vec![place], size: *size }),
        }
    }
    for group in &mut groups {
        group.places.sort_by_key(|place| std::cmp::Reverse(sizes[*place]));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.size));
    groups
}

/// What the groups are called.
pub(super) fn titles(names: &[(&str, &str)], groups: &[Group]) -> Vec<String> {
    let outlines: Vec<String> = names.iter().map(|(_, demangled)| outline(demangled)).collect();
    let title = |group: &Group| {
        let outline = &outlines[group.largest()];
        let others =
            outlines.iter().enumerate().filter(|(place, other)| *other == outline && !group.places.contains(place));
        let is_unique = others.count() == 0 && !outline.is_empty();
        match group.places.len() {
            1 if is_unique && outline.contains(ARGUMENTS) => {
                let whole = without_parameters(names[group.largest()].1);
                if whole.chars().count() <= LONGEST { whole.to_owned() } else { outline.clone() }
            }
            1 if is_unique => outline.clone(),
            1 => names[group.largest()].1.to_owned(),
            count => format!("{outline} ({count} instances)"),
        }
    };
    groups.iter().map(title).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_a_template_are_one() {
        let names = [
            "void sort<float>(float*, work<float>*)",
            "other(int)",
            "void sort<double>(double*, work<double>*)",
            "void sort<int>(int*)",
            "void a::scan<long, 2048>(long)",
            "other(float)",
            "alone(int, float*)",
        ];
        let sizes = [30, 50, 31, 5, 4, 3, 2];
        let names = names.map(|name| ("gfx90a", name));
        let groups = groups(&names, &sizes);
        let places: Vec<&[usize]> = groups.iter().map(|group| &*group.places).collect();
        // Another number of parameters is another template.
        assert_eq!(places, [&[2, 0][..], &[1], &[3], &[4], &[5], &[6]]);
        assert_eq!(groups[0].size, 61);
        assert_eq!(
            titles(&names, &groups),
            [
                "sort<…> (2 instances)",
                "other(int)",
                "void sort<int>(int*)",
                "a::scan<long, 2048>",
                "other(float)",
                "alone"
            ]
        );
        let two = [("gfx90a", "void f<int>()"), ("gfx942", "void f<float>()")];
        assert_eq!(super::groups(&two, &[1, 2]).len(), 2, "of two targets");
    }

    #[test]
    fn parameters_are_counted() {
        for (name, count) in [
            ("f()", 0),
            ("f(int)", 1),
            ("void f<a, b>(a, std::pair<a, b>, int (*)(int, int))", 3),
            ("k", 0),
            ("void (anonymous namespace)::f<int, 2>(int, int) [clone .x]", 2),
        ] {
            assert_eq!(parameters(name), count, "{name}");
        }
    }
}
