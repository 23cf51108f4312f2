//! Names of kernels and functions as lines of text have room for them.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

/// Characters of the longest name that is shown whole.
pub const LONGEST: usize = 100;
/// Stands for what is left out.
const ELLIPSIS: &str = "…";

/// A demangled name that is no longer than [`LONGEST`]: of a longer one the return type, the inner namespaces, the
/// template arguments and the parameters are left out, and four hexadecimal digits that depend on the whole name are
/// added, by which instances of a template are told apart.
///
/// ```
/// use wavetap_explain::names::short;
///
/// assert_eq!(short("add(float*, int)"), "add(float*, int)");
/// let long = format!("void rocprim::detail::kernel<{}>(int)", "int, ".repeat(50));
/// assert!(short(&long).starts_with("rocprim::…::kernel<…> ["));
/// ```
#[must_use]
pub fn short(name: &str) -> Cow<'_, str> {
    if name.chars().nth(LONGEST).is_none() {
        return Cow::Borrowed(name);
    }
    let outline = outline(name);
    let parts: Vec<&str> = outline.split("::").collect();
    let mut text = match parts.as_slice() {
        [first, _, .., last] => format!("{first}::{ELLIPSIS}::{last}"),
        _ => outline,
    };
    let room = LONGEST - TAG;
    if text.chars().count() > room {
        text = text.chars().take(room - 1).collect::<String>() + ELLIPSIS;
    }
    let mut hasher = FxHasher::default();
    name.hash(&mut hasher);
    Cow::Owned(format!("{text} [{:04x}]", hasher.finish() >> 48))
}

/// Characters of a space and four digits in brackets.
const TAG: usize = 7;

/// Operators of more than one character, the longest first.
const OPERATORS: [&str; 25] = [
    "<=>", "<<=", ">>=", "->*", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=",
    "-=", "*=", "/=", "%=", "^=", "&=", "|=",
];

/// Whether a name ends with an operator that is no word.
fn ends_with_symbol(name: &str) -> bool {
    let symbol = name.rsplit_once("operator").map_or("", |(_, symbol)| symbol);
    !symbol.is_empty() && symbol.chars().all(|c| c.is_ascii_punctuation() && c != '_')
}

/// The qualified name alone: template arguments as `<…>`, without return type and parameters.
#[must_use]
pub fn outline(name: &str) -> String {
    let mut out = String::new();
    // What is open: `<`, `(`, `[` or `{`.
    let mut open: Vec<char> = Vec::new();
    let mut characters = name.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_operator = out.ends_with("operator");
        match character {
            // The symbol of an operator is part of its name: `operator<<`, `operator()`, `operator->`.
            _ if open.is_empty()
                && is_operator
                && !character.is_alphanumeric()
                && character != '_'
                && character != ' ' =>
            {
                let symbol = OPERATORS.iter().copied().find(|symbol| name[at..].starts_with(symbol));
                match symbol {
                    Some(symbol) => {
                        out.push_str(symbol);
                        for _ in 1..symbol.len() {
                            characters.next();
                        }
                    }
                    None => out.push(character),
                }
            }
            // A function's parameters end its name, unless something of it follows: `f(int)::local`, `(anonymous
            // namespace)::f`.
            '<' | '(' | '[' | '{' => {
                if open.is_empty() {
                    out.push(character);
                    out.push_str(ELLIPSIS);
                }
                open.push(character);
            }
            '>' | ')' | ']' | '}' if !open.is_empty() => {
                open.pop();
                if open.is_empty() {
                    out.push(character);
                }
            }
            // `operator<< <int>`.
            ' ' if open.is_empty() && ends_with_symbol(&out) => {}
            // What comes before a space is the return type.
            ' ' if open.is_empty() && !is_operator => match characters.peek() {
                // `f() const`.
                Some((_, next)) if name[at..].trim_start().starts_with("const") || *next == '[' => break,
                _ => out.clear(),
            },
            _ if open.is_empty() => out.push(character),
            _ => {}
        }
    }
    for parameters in ["(…)", "[…]"] {
        while let Some(rest) = out.strip_suffix(parameters).filter(|rest| !rest.is_empty()) {
            out = rest.to_owned();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(name: &str) -> String {
        name.replace('@', &"very_long_type<int, 3>, ".repeat(20))
    }

    #[test]
    fn names_that_fit_are_whole() {
        let just = "x".repeat(LONGEST);
        assert_eq!(short(&just), just);
        assert!(short(&format!("{just}x")).ends_with(']'));
    }

    #[test]
    fn long_names_keep_what_a_person_knows_them_by() {
        for (name, expected) in [
            ("void rocprim::detail::kernel<@>(unsigned int*, @)", "rocprim::…::kernel<…>"),
            ("kernel<@>(int)", "kernel<…>"),
            ("void a::kernel<@>(int)", "a::kernel<…>"),
            ("std::enable_if<@>::type a::b<@>::c::d<@>(int) const", "a::…::d<…>"),
            ("void (anonymous namespace)::kernel<@>(int)", "(…)::kernel<…>"),
            ("a::b(@)::{lambda(int)#1}::operator()(@) const", "a::…::operator()"),
            ("void a::operator<< <@>(int)", "a::operator<<<…>"),
            ("void a::operator-><@>(int)", "a::operator-><…>"),
        ] {
            let name = padded(name);
            let short = short(&name);
            let (text, tag) = short.rsplit_once(" [").expect("a tag");
            assert_eq!((text, tag.len()), (expected, 5), "{name}");
        }
        let endless = "n".repeat(20_000);
        assert_eq!(short(&endless).chars().count(), LONGEST);
    }

    #[test]
    fn instances_are_told_apart() {
        let (one, other) = (padded("void f<int, @>()"), padded("void f<float, @>()"));
        assert_ne!(short(&one), short(&other));
        assert_eq!(short(&one), short(&one.clone()));
    }
}
