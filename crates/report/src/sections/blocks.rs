//! The counts of basic blocks as a table.

use super::{OfKernel, Tables};
use crate::style::{Style, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_explain::Block;

/// Blocks listed for each kernel: those with the most executions by lanes. JSON has all of them.
const BLOCKS_SHOWN: usize = 12;

impl Tables for Vec<Block> {
    fn tables(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
        block_lines(self, kernel.wave_size, style, lines);
    }
}

/// The blocks of a kernel, those with the most executions first.
fn block_lines(blocks: &[Block], wave_size: Option<u32>, style: Style, lines: &mut Vec<String>) {
    let lanes = wave_size.map_or_else(|| "active lanes".to_owned(), |lanes| format!("lanes of {lanes}"));
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("first instruction", Align::Code),
        ("source", Align::Place),
        ("executions", Align::Right),
        (&lanes, Align::Right),
    ]);
    let mut blocks: Vec<&Block> = blocks.iter().collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.counts.executions));
    for block in blocks.iter().take(BLOCKS_SHOWN) {
        table.row([
            format!("{:#x}", block.address),
            block.instruction.clone(),
            place(block.source.as_ref()),
            grouped(block.counts.executions),
            block.counts.average_lanes().map(|lanes| format!("{lanes:.1}")).unwrap_or_default(),
        ]);
    }
    push_table("basic blocks", &table, style, lines);
    if blocks.len() > BLOCKS_SHOWN {
        lines.push(format!("  and {} more: --format json has all", blocks.len() - BLOCKS_SHOWN));
    }
}
