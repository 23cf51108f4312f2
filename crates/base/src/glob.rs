//! Patterns of names, as users write them.

/// Whether `text` matches `pattern`, in which `*` stands for any characters, none among them, and `?` for any one.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: after the last `*`, which then takes one character more.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut retry {
                Some((after_star, taken)) => {
                    *taken += 1;
                    (p, t) = (*after_star, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("*merge*", "void merge_kernel<int>(int*)", true),
            ("void*merge*int*", "void merge_kernel<int>(int*)", true),
            ("merge", "merge2", false),
            ("a*b*a", "aba", true),
            ("a*b*a", "ab", false),
            ("", "", true),
            ("", "a", false),
            ("a*c", "abbbc", true),
            ("a*c", "abbbcd", false),
            ("*b*b", "abab", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("**x", "xx", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
