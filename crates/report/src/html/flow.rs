//! Arrows beside the rows of a listing, as SVG: branches to blocks, operations to the waits for them.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::arrows::{Arrow, lanes};
use crate::disassembly::CodeText;

/// Height of a row in pixels: what the style sheet makes rows.
pub(super) const ROW: usize = 20;
/// Height of the table's head.
const HEAD: usize = 26;
/// Width of a lane.
const LANE: usize = 9;
/// Room for heads of arrows.
const HEADS: usize = 8;

/// A row of the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// The label of a block, by its place.
    Block(usize),
    /// An instruction, by its place.
    Inst(usize),
}

/// The rows of a listing: the label of each block before its first instruction.
pub(super) fn rows(code: &CodeText) -> Vec<Row> {
    let mut blocks = code.blocks.iter().enumerate().peekable();
    let mut rows = Vec::with_capacity(code.instructions.len() + code.blocks.len());
    for (at, inst) in code.instructions.iter().enumerate() {
        while let Some((block, _)) = blocks.next_if(|(_, block)| block.address <= inst.address) {
            rows.push(Row::Block(block));
        }
        rows.push(Row::Inst(at));
    }
    rows
}

/// Arrows of one sort with the lanes that they have.
struct Group {
    class: &'static str,
    arrows: Vec<Arrow>,
    lanes: Vec<Option<usize>>,
    /// Lanes of other groups to the right of these.
    before: usize,
}

impl Group {
    fn new(class: &'static str, arrows: Vec<Arrow>, before: usize) -> Group {
        let lanes = lanes(&arrows);
        Group { class, arrows, lanes, before }
    }

    /// Lanes that it takes.
    fn width(&self) -> usize {
        self.lanes.iter().flatten().max().map_or(0, |lane| lane + 1)
    }
}

/// The drawing, and the pixels that the table has to leave free for it.
pub(super) fn drawing(code: &CodeText, rows: &[Row]) -> (Markup, usize) {
    let branches = Group::new("branch", branches(code, rows), 0);
    let waits = Group::new("wait", waits(code, rows), branches.width());
    let all = branches.width() + waits.width();
    if all == 0 {
        return (Markup::default(), 0);
    }
    let (width, height) = (all * LANE + HEADS, rows.len() * ROW);
    let svg = html! {
        svg.flow width=(width) height=(height) style=(format!("top:{HEAD}px")) role="img"
            aria-label="Branches to blocks, and operations to the waits for them; the listing names them in words" {
            @for group in [&branches, &waits] {
                g class=(group.class) {
                    @for (arrow, lane) in group.arrows.iter().zip(&group.lanes) {
                        @if let Some(lane) = lane { path d=(path(arrow, width, group.before + lane)) {} }
                    }
                }
            }
        }
    };
    (svg, width)
}

/// A line along the lane, a branch to each row that it comes from, a head where it goes.
fn path(arrow: &Arrow, width: usize, lane: usize) -> String {
    let right = width;
    let x = width - HEADS - lane * LANE - LANE / 2;
    let y = |row: usize| row * ROW + ROW / 2;
    let mut path = format!("M{x} {}V{}", y(arrow.first()), y(arrow.last()));
    for from in arrow.from.iter().filter(|from| **from != arrow.to) {
        path += &format!("M{x} {}H{right}", y(*from));
    }
    let to = y(arrow.to);
    path + &format!("M{x} {to}H{right}l-4 -3m4 3l-4 3")
}

/// The rows of addresses: of the labels of blocks, or of instructions.
fn by_address(rows: &[Row], address: impl Fn(Row) -> Option<u64>) -> BTreeMap<u64, usize> {
    rows.iter().enumerate().filter_map(|(at, row)| Some((address(*row)?, at))).collect()
}

/// From each branch to the label of the block where it goes.
fn branches(code: &CodeText, rows: &[Row]) -> Vec<Arrow> {
    let labels = by_address(rows, |row| match row {
        Row::Block(block) => Some(code.blocks[block].address),
        Row::Inst(_) => None,
    });
    let mut arrows: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, row) in rows.iter().enumerate() {
        let Row::Inst(inst) = row else { continue };
        let to = code.instructions[*inst].to.as_ref().filter(|to| to.block).and_then(|to| to.address);
        if let Some(to) = to.and_then(|address| labels.get(&address.0)) {
            arrows.entry(*to).or_default().push(from);
        }
    }
    arrows.into_iter().map(|(to, from)| Arrow { to, from }).collect()
}

/// From each operation to the wait for it.
fn waits(code: &CodeText, rows: &[Row]) -> Vec<Arrow> {
    let instructions = by_address(rows, |row| match row {
        Row::Inst(inst) => Some(code.instructions[inst].address),
        Row::Block(_) => None,
    });
    let of_row = |(to, row): (usize, &Row)| {
        let Row::Inst(inst) = row else { return None };
        let operations = code.instructions[*inst].waits.iter().flat_map(|wait| &wait.operations);
        let addresses = operations.filter_map(|operation| operation.address);
        let from: BTreeSet<usize> = addresses.filter_map(|address| instructions.get(&address.0).copied()).collect();
        (!from.is_empty()).then(|| Arrow { to, from: from.into_iter().collect() })
    };
    rows.iter().enumerate().filter_map(of_row).collect()
}
