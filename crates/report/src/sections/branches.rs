//! The counts of branches as tables.

use super::{OfKernel, Tables};
use crate::branches::verdict;
use crate::style::{Style, place};
use crate::table::{Align, Table, grouped, push_table};
use wavetap_explain::Branch;
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts, ScalarCounts};

impl Tables for Vec<Branch> {
    fn tables(&self, kernel: OfKernel, style: Style, lines: &mut Vec<String>) {
        exec_lines(self, kernel.wave_size, style, lines);
        scalar_lines(self, style, lines);
    }
}

fn exec_lines(branches: &[Branch], wave_size: Option<u32>, style: Style, lines: &mut Vec<String>) {
    let lanes = wave_size.map_or_else(|| "active lanes".to_owned(), |lanes| format!("lanes of {lanes}"));
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Code),
        ("source", Align::Place),
        ("executions", Align::Right),
        ("agreements", Align::Right),
        ("divergences", Align::Right),
        ("empty", Align::Right),
        (&lanes, Align::Left),
        ("verdict", Align::Words),
    ]);
    for branch in branches {
        let BranchCounts::Exec(exec) = branch.counts else { continue };
        let ExecCounts { executions, agreements, empty, .. } = exec;
        table.row([
            format!("{:#x}", branch.address),
            branch.instruction.clone(),
            place(branch.source.as_ref()),
            grouped(executions),
            grouped(agreements),
            grouped(exec.divergences()),
            if empty == 0 { String::new() } else { grouped(empty) },
            exec.average_lanes().map(|(before, after)| format!("{before:>4.1} → {after:>4.1}")).unwrap_or_default(),
            verdict(&branch.counts),
        ]);
    }
    push_table("divergent branches", &table, style, lines);
}

fn scalar_lines(branches: &[Branch], style: Style, lines: &mut Vec<String>) {
    let mut table = Table::new(&[
        ("address", Align::Right),
        ("instruction", Align::Code),
        ("source", Align::Place),
        ("executions", Align::Right),
        ("taken", Align::Right),
        ("verdict", Align::Words),
    ]);
    for branch in branches {
        let BranchCounts::Scalar(ScalarCounts { executions, taken }) = branch.counts else { continue };
        table.row([
            format!("{:#x}", branch.address),
            branch.instruction.clone(),
            place(branch.source.as_ref()),
            grouped(executions),
            grouped(taken),
            verdict(&branch.counts),
        ]);
    }
    push_table("uniform branches", &table, style, lines);
}
