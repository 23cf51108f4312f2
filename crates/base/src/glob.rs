//! Patterns of names, as users write them: `reduce*`, or a regular expression between slashes, `/^reduce_[0-9]+$/`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex_lite::Regex;

use crate::error::{Error, Result};

/// Expressions that were compiled: the same few are compared with many names.
static COMPILED: Mutex<Option<HashMap<String, Arc<Regex>>>> = Mutex::new(None);

/// The regular expression of a pattern, if it is one between slashes.
fn expression(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/')?.strip_suffix('/').filter(|expression| !expression.is_empty())
}

fn compiled(expression: &str) -> Result<Arc<Regex>> {
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(regex) = known.get(expression) {
        return Ok(Arc::clone(regex));
    }
    let regex = Regex::new(expression)
        .map_err(|error| Error::malformed(format!("/{expression}/: no regular expression: {error}")))?;
    let regex = Arc::new(regex);
    known.insert(expression.to_owned(), Arc::clone(&regex));
    Ok(regex)
}

/// Refuses what is between slashes and no regular expression.
///
/// # Errors
/// Malformed if it is none.
pub fn check(pattern: &str) -> Result<()> {
    expression(pattern).map_or(Ok(()), |expression| compiled(expression).map(drop))
}

/// Whether `text` matches `pattern`, in which `*` stands for any characters, none among them, and `?` for any one. A
/// pattern between slashes is a regular expression that is found anywhere in the text; one that is none ([`check`])
/// matches nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    if let Some(expression) = expression(pattern) {
        return compiled(expression).is_ok_and(|regex| regex.is_match(text));
    }
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
            ("/mat/", "mul_mat_f16", true),
            ("/^mat/", "mul_mat_f16", false),
            ("/^mul_mat_(f16|q4)$/", "mul_mat_q4", true),
            ("/^mul_mat_(f16|q4)$/", "mul_mat_q8", false),
            ("/(/", "(", false),
            ("/", "/", true),
            ("//", "//", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        assert!(check("a(*").is_ok() && check("/a(b)*/").is_ok());
        assert!(check("/a(*/").unwrap_err().to_string().starts_with("/a(*/: no regular expression: "));
    }
}
