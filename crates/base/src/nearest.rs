//! Names that were probably meant by one that is not known.

use std::collections::BTreeSet;

/// Names that are suggested.
const SUGGESTED: usize = 4;
/// More of a name is not compared: the names of templates have thousands of characters.
const COMPARED: usize = 200;
/// More of a name is not shown.
const SHOWN: usize = 100;

/// How many characters have to be inserted, left out or replaced to make one name of the other.
///
/// ```
/// assert_eq!(wavetap_base::nearest::distance("gfx942", "gfx943"), 1);
/// ```
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// How far the characters of two names of one length lie apart in the alphabet: `gfx90b` is nearer to `gfx90a` than to
/// `gfx900`.
fn apart(a: &str, b: &str) -> u32 {
    let pairs = a.chars().zip(b.chars());
    if a.len() == b.len() { pairs.map(|(a, b)| u32::from(a).abs_diff(u32::from(b))).sum() } else { u32::MAX }
}

/// The names nearest to `wanted`, at most four: first those that contain it, without regard to case.
#[must_use]
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let short = |text: &str| text.chars().take(COMPARED).collect::<String>().to_lowercase();
    let wanted = short(wanted);
    let names: BTreeSet<&str> = names.into_iter().collect();
    let key = |name: &str| {
        let name = short(name);
        (!name.contains(&wanted), distance(&name, &wanted), apart(&name, &wanted))
    };
    let mut near: Vec<((bool, usize, u32), &str)> = names.into_iter().map(|name| (key(name), name)).collect();
    near.sort_unstable();
    near.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// What to say of a name that is not among `names`: all of them if they are few, otherwise the nearest and `list`, how
/// to list all.
///
/// ```
/// use wavetap_base::nearest::hint;
///
/// assert_eq!(hint("redcue", &["scan", "reduce"], "`list` lists all"), "there are reduce, scan");
/// assert_eq!(hint("reduce", &[], "`list` lists all"), "there are none");
/// ```
#[must_use]
pub fn hint(wanted: &str, names: &[&str], list: &str) -> String {
    let near = nearest(wanted, names.iter().copied());
    let distinct = names.iter().collect::<BTreeSet<_>>().len();
    let shown: Vec<String> = near.iter().map(|name| shortened(name)).collect();
    match distinct {
        0 => "there are none".to_owned(),
        1 => format!("there is only {}", shown.join(", ")),
        few if few <= SUGGESTED => format!("there are {}", shown.join(", ")),
        all => format!("nearest of {all}: {}; {list}", shown.join(", ")),
    }
}

fn shortened(name: &str) -> String {
    let end = name.char_indices().nth(SHOWN).map(|(end, _)| end);
    end.map_or_else(|| name.to_owned(), |end| format!("{}…", &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("gfx90a", "gfx90"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn names_that_contain_the_wanted_one_come_first() {
        let names = ["scan", "cores", "ns::reduce_all<float>", "produce", "seduce", "educate", "seduce"];
        assert_eq!(nearest("Reduce", names), ["ns::reduce_all<float>", "seduce", "produce", "educate"]);
    }

    #[test]
    fn of_equally_near_names_those_with_near_characters_come_first() {
        let names = ["gfx900", "gfx902", "gfx906", "gfx90a", "gfx90c", "gfx9-generic"];
        assert_eq!(nearest("gfx90b", names), ["gfx90a", "gfx90c", "gfx906", "gfx902"]);
    }

    #[test]
    fn what_is_said_depends_on_how_many_there_are() {
        let list = "`wavetap inspect` lists them";
        assert_eq!(hint("x", &["only"], list), "there is only only");
        assert_eq!(hint("a", &["b", "a", "b"], list), "there are a, b");
        let many = ["aa", "bb", "cc", "dd", "ee"];
        assert_eq!(hint("ee", &many, list), format!("nearest of 5: ee, dd, cc, bb; {list}"));
        let long = "k".repeat(5000);
        assert_eq!(hint("x", &[&long], list), format!("there is only {}…", "k".repeat(SHOWN)));
    }
}
