//! Rust source with comments and literals blanked out, so that a search sees only code.

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
fn strips_comments_and_literals_only() {
    let lines = strip("a /* b /* c */ */ d // e\nlet s = \"f \\\" g\"; r#\"h\"# 'i' '\\'' &'j k b\"l\" m");
    let left: Vec<&str> = words(&lines).collect();
    assert_eq!(left, ["a", "d", "let", "s", "j", "k", "m"]);
}
