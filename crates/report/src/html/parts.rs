//! Pieces that several sections of the page are made of.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use maud::{Markup, html};

use super::Shown;
use crate::names::short;
use crate::table::grouped;

/// Bytes of tables, drawings and code of all kernels: the browser makes elements of them, which takes longest.
const MOST_IN_TABLES: usize = 4 << 20;
/// Bytes of the data of heat maps.
const MOST_IN_MAPS: usize = 4 << 20;

/// What the page has room for. What does not fit is left out, and the page says so.
pub(super) struct Room {
    tables: Cell<usize>,
    maps: Cell<usize>,
    /// Bytes of maps in the part that is being made.
    in_part: Cell<usize>,
    /// Parts of the kernel's section that is being made for which there was no room.
    left_out: RefCell<Vec<&'static str>>,
}

impl Default for Room {
    fn default() -> Self {
        let (tables, maps) = (Cell::new(MOST_IN_TABLES), Cell::new(MOST_IN_MAPS));
        Room { tables, maps, in_part: Cell::new(0), left_out: RefCell::default() }
    }
}

impl Room {
    /// A part of a kernel's section, as long as there is room for it.
    pub(super) fn part(&self, title: &'static str, part: Markup) -> Markup {
        let bytes = part.0.len() - self.in_part.take();
        match self.tables.get().checked_sub(bytes) {
            Some(left) => {
                self.tables.set(left);
                part
            }
            None => {
                self.left_out.borrow_mut().push(title);
                Markup::default()
            }
        }
    }

    /// Bytes that are left for heat maps.
    pub(super) fn for_maps(&self) -> usize {
        self.maps.get()
    }

    /// Takes so many of them, for a map in the next part.
    pub(super) fn take_map(&self, bytes: usize) {
        self.maps.set(self.maps.get().saturating_sub(bytes));
        self.in_part.set(self.in_part.get() + bytes);
    }

    /// What was left out since the last time.
    pub(super) fn take_left_out(&self) -> Vec<&'static str> {
        self.left_out.take()
    }
}

/// A table with a caption for those who do not see the heading above it, in a box of its own that scrolls sideways.
/// `name` says what a filter is for, and which table a test means.
pub(super) fn data_table(caption: &str, name: &str, head: &Markup, rows: &Markup) -> Markup {
    html! {
        div.scroll {
            table.data data-name=(name) {
                caption { (caption) }
                thead { tr { (head) } }
                tbody { (rows) }
            }
        }
    }
}

/// `waves/CU` as the head of a column.
pub(super) fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A number, or nothing.
pub(super) fn number(value: Option<u64>) -> String {
    value.map(grouped).unwrap_or_default()
}

/// A number with one digit, or nothing.
pub(super) fn decimal(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.1}")).unwrap_or_default()
}

/// `37.5 %`: never 0 or 100 unless it is.
pub(super) fn share_text(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 0.05 => "< 0.1 %".to_owned(),
        percent if (99.95..100.0).contains(&percent) => "> 99.9 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// A bar of this share beside its number.
pub(super) fn bar(share: f64) -> Markup {
    html! { span.bar style=(format!("--w:{:.3}", share.clamp(0.0, 1.0))) {} }
}

/// The name of a kernel where there is little room, with its variant.
pub(super) fn short_name<'s>(shown: &'s Shown<'_>) -> Cow<'s, str> {
    let name = short(&shown.kernel.demangled);
    match shown.variant {
        Some(variant) => Cow::Owned(format!("{name}, {}", variant.text())),
        None => name,
    }
}
