//! The page that shows what was compared.

use std::fmt::Write;

use super::{Compared, NEAR, Number, Published};

/// A number as it is shown: three digits or more.
fn shown(number: f64) -> String {
    match number.abs() {
        size if size >= 100.0 || (number - number.round()).abs() < 0.05 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

fn published(number: Number) -> String {
    match number {
        Number::Exact(number) => shown(number),
        Number::Range([low, high]) => format!("{} to {}", shown(low), shown(high)),
    }
}

pub fn page(from: &Published, compared: &[Compared]) -> String {
    let near = compared.iter().filter(|each| each.near()).count();
    let mut page = format!(
        "# The timing model beside published measurements\n\nWritten by `BLESS=1 cargo test -p wavetap --test all \
            timing_published`: what others measured on hardware, from `tests/all/timing_published/published.yaml`, \
            beside what [the timing model](../reference/timing-model.md) says of a small kernel that depends on the \
            same thing. Nothing was measured for this page.\n\n\
         - *ratio*: modelled by published; 1 in the range where that is one. The test fails where it is outside {:.2} \
            to {NEAR}, unless the entry says why.\n\
         - Of {} numbers {near} are within that. Many numbers of the model's tables were taken from the same \
            publications: that they meet shows that the parts of the model do what they are meant to, and not that it \
            predicts what it was not told. No whole kernel is compared.\n",
        1.0 / NEAR,
        compared.len(),
    );
    for topic in &from.topics {
        write!(page, "\n## {}\n\n", topic.title).expect("text");
        if let Some(about) = &topic.about {
            write!(page, "{}\n\n", about.trim()).expect("text");
        }
        writeln!(
            page,
            "| | board | published, {} | modelled | ratio | source |\n|---|---|---|---|---|---|",
            topic.unit
        )
        .expect("text");
        let mut notes: Vec<&str> = Vec::new();
        let mut last = "";
        for each in compared.iter().filter(|each| std::ptr::eq(each.topic, topic)) {
            let what = if each.row.what == last { "" } else { &each.row.what };
            last = &each.row.what;
            let note = each.entry.explained.as_deref().map_or(String::new(), |text| {
                let at = notes.iter().position(|note| *note == text).unwrap_or(notes.len());
                if at == notes.len() {
                    notes.push(text);
                }
                format!(" ({})", at + 1)
            });
            writeln!(
                page,
                "| {what} | {} ({}) | {} | {} | {:.2}{note} | {} |",
                each.entry.board,
                each.entry.target,
                published(each.entry.published),
                shown(each.modelled),
                each.ratio(),
                each.entry.source
            )
            .expect("text");
        }
        if !notes.is_empty() {
            page.push('\n');
        }
        for (n, note) in notes.iter().enumerate() {
            writeln!(page, "{}. {}", n + 1, note.trim()).expect("text");
        }
    }
    page.push_str("\n## Not compared\n\n");
    for text in &from.not_compared {
        writeln!(page, "- {}", text.trim()).expect("text");
    }
    page.push_str("\n## Sources\n\n");
    for (letter, source) in &from.sources {
        writeln!(page, "- **{letter}**: {source}").expect("text");
    }
    page
}
