//! Rules of the documentation: links and anchors resolve, every page is in the book, words that readers do not know
//! stay out, and what the code reads or writes under a fixed name (environment variables, JSON schemas) has a line in
//! the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use rewriter_tests::words;

use crate::{COLUMNS, no_complaints, project_files, source, texts};

/// The README is the front door: it fits a few screens.
const README_LINES: usize = 220;
/// Pages that tests write; their lines are as long as their numbers.
const GENERATED: &[&str] = &[
    "docs/results/blame.md",
    "docs/results/corpora.md",
    "docs/results/corpus-kernels.md",
    "docs/results/leo.md",
    "docs/results/timing.md",
];
/// Lists that tests write: a line for each group of instruction sets, a table of reasons.
const LISTS: &[&str] = &["docs/results/emulator-missing.md", "docs/reference/refusals.md"];

fn is_generated(page: &Path) -> bool {
    GENERATED.iter().chain(LISTS).any(|generated| page == Path::new(generated))
}

/// A page as markdown has it.
#[derive(Default)]
struct Page {
    /// Where links and images lead, with the line.
    links: Vec<(usize, String)>,
    /// Names of headings, as GitHub and mdBook make them.
    anchors: BTreeSet<String>,
    /// Words in the letters of code, with the line.
    code: Vec<(usize, String)>,
    /// Text outside of code, with the line it begins in.
    prose: Vec<(usize, String)>,
}

impl Page {
    fn read(text: &str) -> Page {
        let mut page = Page::default();
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let mut repeated: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading: Option<String> = None;
        let mut block = false;
        let mut paragraph: Option<(usize, String)> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            // A phrase does not go on over the end of a block.
            let ends =
                matches!(event, Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::TableCell | TagEnd::Item));
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line(range.start), dest_url.into_string()))
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    let times = repeated.entry(slug.clone()).or_default();
                    page.anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
                    *times += 1;
                }
                Event::Start(Tag::CodeBlock(_)) => block = true,
                Event::End(TagEnd::CodeBlock) => block = false,
                Event::Text(words) if !block => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                    paragraph.get_or_insert_with(|| (line(range.start), String::new())).1.push_str(&words);
                }
                Event::Code(words) => {
                    page.code.push((line(range.start), words.to_string()));
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                    paragraph.get_or_insert_with(|| (line(range.start), String::new())).1.push('`');
                }
                Event::SoftBreak | Event::HardBreak => {
                    if let Some((_, words)) = &mut paragraph {
                        words.push(' ');
                    }
                }
                _ => {}
            }
            if ends {
                page.prose.extend(paragraph.take());
            }
        }
        page.prose.extend(paragraph.take());
        page
    }
}

/// A heading's name in a link.
fn slug(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    letters
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// `../a` seen from the folder of `page`, without `..`; nothing if it leaves the project.
fn resolve(page: &Path, link: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            _ => return None,
        }
    }
    Some(path)
}

fn pages() -> BTreeMap<PathBuf, (String, Page)> {
    texts(&["md"]).into_iter().map(|(file, text)| (file, (text.clone(), Page::read(&text)))).collect()
}

#[test]
fn links_and_anchors_resolve() {
    let files: BTreeSet<PathBuf> = project_files().into_iter().collect();
    let pages = pages();
    assert!(pages.contains_key(Path::new("README.md")) && pages.len() > 20, "the pages were not found");
    let mut complaints = Vec::new();
    for (file, (_, page)) in &pages {
        for (line, link) in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(path, anchor)| (path, Some(anchor)));
            let mut complain = |what: &str| complaints.push(format!("{}:{line}: {link}: {what}", file.display()));
            let Some(target) = (if path.is_empty() { Some(file.clone()) } else { resolve(file, path) }) else {
                complain("leads out of the project");
                continue;
            };
            if !files.contains(&target) {
                complain("no such file");
            } else if file.starts_with("docs") && !target.starts_with("docs") {
                complain("leads out of the book: name the file instead");
            } else if file.starts_with("docs") && target.ends_with("README.md") && !file.ends_with("SUMMARY.md") {
                // mdBook makes index.html of it, and leaves links to it alone.
                complain("a link to README.md does not work in the book");
            } else if let Some(anchor) = anchor
                && !pages.get(&target).is_some_and(|(_, page)| page.anchors.contains(anchor))
            {
                complain("no such heading");
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn files_that_pages_name_exist() {
    let files = project_files();
    let exists = |path: &Path| files.iter().any(|file| file.starts_with(path));
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|file| file.to_str()?.split_once('/').map(|(folder, _)| folder)).collect();
    let mut complaints = Vec::new();
    for (file, page) in &pages() {
        for (line, word) in &page.1.code {
            let path = word.trim_end_matches('/');
            let is_path = path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_'));
            let inside = path.split_once('/').is_some_and(|(folder, _)| folders.contains(folder));
            let near = || resolve(file, path).is_some_and(|path| exists(&path));
            if is_path && inside && !exists(Path::new(path)) && !near() {
                complaints.push(format!("{}:{line}: {word} does not exist", file.display()));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn tests_that_pages_name_exist() {
    // A test is `tests/NAME.rs`, or `tests/NAME/main.rs`.
    let program = |file: PathBuf| {
        let names: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
        match names.as_slice() {
            [.., "tests", name] => name.strip_suffix(".rs").map(str::to_owned),
            [.., "tests", name, "main.rs"] => Some((*name).to_owned()),
            _ => None,
        }
    };
    let programs: BTreeSet<String> = project_files().into_iter().filter_map(program).collect();
    let mut complaints = Vec::new();
    for (file, (text, _)) in &pages() {
        let named = names(text, "--test ", |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let named = named.iter().map(|option| option.trim_start_matches("--test ")).filter(|name| !name.is_empty());
        let missing = named.filter(|name| !programs.contains(*name));
        complaints.extend(missing.map(|name| format!("{}: no test program {name}", file.display())));
    }
    no_complaints(complaints);
}

#[test]
fn every_page_is_in_the_book() {
    let pages = pages();
    let summary = Path::new("docs/SUMMARY.md");
    let (_, book) = &pages[summary];
    let mut listed = BTreeMap::new();
    for (_, link) in &book.links {
        *listed.entry(resolve(summary, link).expect("inside the project")).or_insert(0) += 1;
    }
    let mut complaints: Vec<String> = listed
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(page, _)| format!("{}: twice in SUMMARY.md", page.display()))
        .collect();
    let missing =
        pages.keys().filter(|page| page.starts_with("docs") && *page != summary && !listed.contains_key(*page));
    complaints.extend(missing.map(|page| format!("{}: not in SUMMARY.md", page.display())));
    no_complaints(complaints);
}

#[test]
fn pages_fit_a_screen() {
    let mut complaints = Vec::new();
    for (file, (text, _)) in &pages() {
        let name = file.to_string_lossy();
        let readme = name == "README.md";
        if readme && text.lines().count() > README_LINES {
            complaints.push(format!("{name}: {} lines, at most {README_LINES}", text.lines().count()));
        }
        let front_or_book = name.starts_with("docs/") || !name.contains('/');
        if is_generated(file) || !front_or_book {
            continue;
        }
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            // Rows of tables and the output of programs cannot be broken; commands can, but are copied more easily when
            // they are not.
            let broken = readme
                || !(fenced
                    || line.starts_with('|')
                    || line.trim_start().starts_with("`WAVETAP_")
                    || line.starts_with("    "));
            if broken && line.chars().count() > COLUMNS {
                complaints.push(format!("{name}:{}: {} columns, at most {COLUMNS}", number + 1, line.chars().count()));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn no_page_has_words_of_our_own() {
    let mut complaints = Vec::new();
    for (file, (_, page)) in &pages() {
        for (line, prose) in &page.prose {
            complaints.extend(words::banned(prose).map(|word| format!("{}:{line}: {word:?}", file.display())));
        }
    }
    no_complaints(complaints);
}

#[test]
fn no_message_or_comment_has_words_of_our_own() {
    let mut complaints = Vec::new();
    for (file, text) in product().into_iter().filter(|(file, _)| !file.ends_with("tests.rs")) {
        for passage in source::passages(&text) {
            let words: Vec<_> = if passage.is_comment {
                words::banned_in_comment(&passage.text).collect()
            } else {
                words::banned(&passage.text).collect()
            };
            complaints.extend(words.iter().map(|word| format!("{}:{}: {word:?}", file.display(), passage.line)));
        }
    }
    no_complaints(complaints);
}

/// Rust files of the product, without its tests.
fn product() -> Vec<(PathBuf, String)> {
    let tested = |file: &Path| {
        file.iter()
            .any(|part| matches!(part.to_str(), Some("tests" | "rewriter-tests" | "benches" | "fuzz" | "build.rs")))
    };
    let code = |text: String| text.split_once("#[cfg(test)]\nmod ").map_or(text.clone(), |(code, _)| code.to_owned());
    let files: Vec<_> =
        texts(&["rs"]).into_iter().filter(|(file, _)| !tested(file)).map(|(file, text)| (file, code(text))).collect();
    assert!(files.len() > 100, "the product was not found");
    files
}

/// Names in `text` that begin with `prefix` and go on as `more` says.
fn names(text: &str, prefix: &str, more: impl Fn(char) -> bool) -> BTreeSet<String> {
    let found = text.match_indices(prefix).map(|(at, _)| text[at..].chars().enumerate());
    let whole = |letters: std::iter::Enumerate<std::str::Chars<'_>>| -> String {
        letters.take_while(|(at, c)| *at < prefix.len() || more(*c)).map(|(_, c)| c).collect()
    };
    found.map(whole).collect()
}

fn variables(text: &str) -> BTreeSet<String> {
    names(text, "WAVETAP_", |c| c.is_ascii_uppercase() || c == '_')
}

#[test]
fn every_environment_variable_is_documented() {
    let pages = pages();
    let documented = |page: &str| variables(&pages[Path::new(page)].0);
    let (reference, tests) = (documented("docs/reference/environment.md"), documented("docs/contributing/tests.md"));
    let mut complaints = Vec::new();
    let mut read = BTreeSet::new();
    for (file, text) in product() {
        for name in variables(&text) {
            if !reference.contains(&name) {
                complaints.push(format!("{}: {name} is not in docs/reference/environment.md", file.display()));
            }
            read.insert(name);
        }
    }
    complaints
        .extend(reference.difference(&read).map(|name| format!("docs/reference/environment.md: nothing reads {name}")));
    let mut of_tests = BTreeSet::new();
    for (file, text) in texts(&["rs", "sh", "py"]) {
        let known = |name: &String| reference.contains(name) || name == "WAVETAP_";
        for name in variables(&text).into_iter().filter(|name| !known(name)) {
            if !tests.contains(&name) {
                complaints.push(format!("{}: {name} is not in docs/contributing/tests.md", file.display()));
            }
            of_tests.insert(name);
        }
    }
    complaints
        .extend(tests.difference(&of_tests).map(|name| format!("docs/contributing/tests.md: nothing reads {name}")));
    no_complaints(complaints);
}

#[test]
fn every_schema_is_documented() {
    let pages = pages();
    let index = names(&pages[Path::new("docs/reference/schemas.md")].0, "wavetap.", schema_letter);
    let mut complaints = Vec::new();
    for (file, text) in product() {
        for name in names(&text, "wavetap.", schema_letter).into_iter().filter(|name| is_schema(name)) {
            if !index.contains(&name) {
                complaints.push(format!("{}: {name} is not in docs/reference/schemas.md", file.display()));
            }
        }
    }
    no_complaints(complaints);
}

fn schema_letter(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '/')
}

/// `wavetap.NAME/VERSION`.
fn is_schema(name: &str) -> bool {
    name.split_once('/').is_some_and(|(name, version)| {
        name.len() > "wavetap.".len() && !version.is_empty() && version.chars().all(|c| c.is_ascii_digit())
    })
}

#[test]
fn sees_links_anchors_and_words() {
    let page = Page::read(
        "# A `b` c!\n\n## A `b` c!\n\nwaves\nof 32, [x](y.md#z)\n\n    nobody\n\n```\nnobody\n```\n`nobody`\n\nof\n\n| \
            a |\n|---|\n| Nobody |\n",
    );
    assert_eq!(page.links, [(6, "y.md#z".to_owned())]);
    assert_eq!(page.anchors.iter().collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
    let words: Vec<&str> = page.prose.iter().flat_map(|(_, text)| words::banned(text)).collect();
    assert_eq!(words, ["waves of 32", "nobody"]);
    assert_eq!(resolve(Path::new("docs/a/b.md"), "../c.md"), Some("docs/c.md".into()));
    assert_eq!(resolve(Path::new("docs/b.md"), "../../c.md"), None);
    assert!(
        is_schema("wavetap.report/1") && !is_schema("wavetap.profile") && !is_schema("wavetap.sample-expectations/")
    );
    assert_eq!(variables("WAVETAP_SEED, WAVETAP_TARGET2").len(), 2);
}
