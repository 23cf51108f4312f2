//! Rust source, divided into code, comments and literals: [`strip`] returns the code, [`passages`] the rest.

/// A comment, or the contents of a string literal.
#[derive(Debug, PartialEq, Eq)]
pub struct Passage {
    /// The line in which it begins, from 1 on.
    pub line: usize,
    pub is_comment: bool,
    /// Without the marks of a comment, and without the quotes, continuations and escapes of a literal. Line comments
    /// with nothing but blanks between them are one passage, because phrases go on over line ends.
    pub text: String,
}

/// All comments and string literals of Rust source, in order.
pub fn passages(text: &str) -> Vec<Passage> {
    let bytes = text.as_bytes();
    let mut passages: Vec<Passage> = Vec::new();
    // Whether only blanks are between here and the comment before.
    let mut after_comment = false;
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            let token = &text[at..end];
            if token.starts_with('/') {
                let words = comment_words(token);
                match passages.last_mut() {
                    Some(last) if after_comment => {
                        last.text.push('\n');
                        last.text.push_str(&words);
                    }
                    _ => passages.push(Passage { line, is_comment: true, text: words }),
                }
                after_comment = true;
            } else {
                after_comment = false;
                // Not a character literal.
                if !token.starts_with('\'') {
                    passages.push(Passage { line, is_comment: false, text: literal_words(token) });
                }
            }
            line += token.matches('\n').count();
            at = end;
        } else {
            let c = text[at..].chars().next().expect("inside the text");
            after_comment &= c.is_whitespace();
            line += usize::from(c == '\n');
            at += c.len_utf8();
        }
    }
    passages
}

/// A comment without its marks.
fn comment_words(comment: &str) -> String {
    let inside = comment.strip_prefix("/*").map_or(comment, |block| block.strip_suffix("*/").unwrap_or(block));
    inside.trim_start_matches('/').trim_start_matches(['!', '*']).trim().to_owned()
}

/// The contents of a string literal as they are printed, with a blank for each escape.
fn literal_words(literal: &str) -> String {
    let body = literal.trim_start_matches(['b', 'r', '#']);
    let body = body.trim_end_matches('#');
    let body = body.strip_prefix('"').unwrap_or(body);
    let body = body.strip_suffix('"').unwrap_or(body);
    if literal.trim_start_matches('b').starts_with('r') {
        return body.to_owned();
    }
    let mut words = String::new();
    let mut rest = body.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('\n') => while rest.next_if(|c| c.is_whitespace()).is_some() {},
                Some(quote @ ('"' | '\'' | '\\')) => words.push(quote),
                _ => words.push(' '),
            },
            c => words.push(c),
        }
    }
    words
}

/// Replaces comments, string and character literals by spaces; line breaks stay where they were.
pub fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        if end > at {
            out.extend(text[at..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            let c = text[at..].chars().next().expect("inside the text");
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` itself where none begins.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let within_word = at > 0 && is_word(bytes[at - 1]);
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    if rest[0] == b'"' {
        return at + quoted(rest, b'"');
    }
    // r"…", r#"…"#, br"…", b"…": the prefix is a word of its own.
    if !within_word && matches!(rest[0], b'r' | b'b') {
        let prefix = rest.iter().take_while(|b| matches!(b, b'r' | b'b')).count();
        let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
        if prefix <= 2 && rest.get(prefix + hashes) == Some(&b'"') {
            if rest[..prefix].contains(&b'r') {
                let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
                let body = prefix + hashes + 1;
                let end = rest[body..]
                    .windows(close.len())
                    .position(|w| w == close)
                    .map_or(rest.len(), |p| body + p + close.len());
                return at + end;
            }
            return at + prefix + quoted(&rest[prefix..], b'"');
        }
    }
    // A character literal, not a lifetime: 'x' or an escape.
    if rest[0] == b'\''
        && (rest.get(1) == Some(&b'\\')
            || rest.iter().skip(2).take(4).position(|b| *b == b'\'').is_some_and(|p| p == 0 || rest[1] >= 0x80))
    {
        return at + quoted(rest, b'\'');
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Whether the byte can be part of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The identifiers and keywords of a line of code.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}

#[test]
fn passages_are_what_people_read() {
    let found = passages(
        "/// One\n    /// two.\nfn a() {} // three\n\nb(\"four \\\n    five\\n{x}\", r#\"six \"seven\" \\n\"#, 'x', \
         b'\"', '\\'');\n/* eight /* nine */ */\n\n// ten\n",
    );
    let texts: Vec<(usize, bool, &str)> = found.iter().map(|p| (p.line, p.is_comment, p.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            (1, true, "One\ntwo."),
            (3, true, "three"),
            (5, false, "four five {x}"),
            (6, false, "six \"seven\" \\n"),
            (7, true, "eight /* nine */\nten"),
        ]
    );
}

#[test]
fn strips_comments_and_literals_only() {
    let lines = strip("a /* b /* c */ */ d // e\nlet s = \"f \\\" g\"; r#\"h\"# 'i' '\\'' &'j k b\"l\" m");
    let left: Vec<&str> = words(&lines).collect();
    assert_eq!(left, ["a", "d", "let", "s", "j", "k", "m"]);
}
