//! Words that have no place in documentation, help, messages and comments: readers know those of LLVM and ROCm.

/// Words that only insiders know, and words that make a person of a program, in lower case.
const BANNED: &[&str] = &[
    "nobody",
    "somebody",
    "unkind",
    "harsh",
    " lent ",
    "lender",
    "borrow",
    "given back",
    "gives back",
    "looks after",
    "look after",
    "sees to",
    "finds fault",
    "found fault",
    "left as it was",
    "as it was left",
    "waves of 32",
    "waves of 64",
    "accumulation register",
    "under way",
    "branch on lanes",
    "branches on lanes",
    "scalar branch",
    "what it comes to",
    "short way",
    "general way",
    "what nothing has set",
    "that nothing has set",
    " behind ",
    "in front of",
    " asks for ",
    " ask for ",
];

/// Banned words that comments may have: Rust's own term, and words that are everyday language among engineers.
const ALLOWED_IN_COMMENTS: &[&str] = &["borrow", " behind ", "in front of", " asks for ", " ask for "];

/// The banned words in a comment.
pub fn banned_in_comment(text: &str) -> impl Iterator<Item = &'static str> {
    banned(text).filter(|word| !ALLOWED_IN_COMMENTS.contains(word))
}

/// The banned words in a text, which is that of a person's language, not code.
pub fn banned(text: &str) -> impl Iterator<Item = &'static str> {
    let text = format!(" {} ", text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" "));
    BANNED.iter().copied().filter(move |word| text.contains(word))
}
