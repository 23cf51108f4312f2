//! Sites of all probes as CSV, from their schemas alone: a row for each field of each site.

use super::csv;
use wavetap_base::error::{Error, Result};
use wavetap_explain::sections::{SiteTable, measured, unit_name};
use wavetap_profile::file::KernelTotals;
use wavetap_profile::schema::{FieldSchema, Merge};

/// The table: `kernel,target,object,probe,kind,address,instruction,file,line,field,unit,merge,value`. A minimum of
/// which nothing was measured has no value.
///
/// # Errors
/// Internal if it cannot be written.
pub fn sites<'p>(kernels: impl IntoIterator<Item = &'p KernelTotals>) -> Result<String> {
    let heading = [
        "kernel",
        "target",
        "object",
        "probe",
        "kind",
        "address",
        "instruction",
        "file",
        "line",
        "field",
        "unit",
        "merge",
        "value",
    ];
    let rows = kernels.into_iter().flat_map(|kernel| {
        let sites = kernel.sites.iter();
        sites.flat_map(move |site| {
            let kind = site.counts.kind();
            kind.fields.iter().zip(site.counts.values()).map(move |(field, value)| {
                let source = site.source.as_ref();
                vec![
                    kernel.demangled.clone(),
                    kernel.target.clone(),
                    kernel.object.clone(),
                    kind.probe.to_string(),
                    kind.name.to_string(),
                    format!("{:#x}", site.address),
                    site.instruction.clone(),
                    source.map(|source| source.file.clone()).unwrap_or_default(),
                    source.map(|source| source.line.to_string()).unwrap_or_default(),
                    field.name.to_string(),
                    unit_name(field.unit).to_owned(),
                    merge_name(field).to_owned(),
                    measured(field, *value).map(|value| value.to_string()).unwrap_or_default(),
                ]
            })
        })
    });
    csv(std::iter::once(heading.map(str::to_owned).to_vec()).chain(rows))
}

/// How values of a field combine, in a word.
fn merge_name(field: &FieldSchema) -> &'static str {
    match field.merge {
        Merge::Sum => "sum",
        Merge::Max => "max",
        Merge::Min => "min",
    }
}

/// What the sites of a kernel come to whose probe has no metrics of its own: the metric's name, its value and its unit.
///
/// # Errors
/// Limit if a sum does not fit 64 bits.
pub(super) fn metrics(kernel: &KernelTotals) -> Result<Vec<(String, String, &'static str)>> {
    let tables = SiteTable::all(&kernel.sites);
    let rows = tables.iter().flat_map(|table| {
        table.fields.iter().map(move |field| {
            let total = table.totals.get(field.name.as_ref()).copied().flatten();
            let name = format!("{}/{}/{}", table.probe, table.kind, field.name);
            let value = match (total, field.merge) {
                (None, Merge::Sum) => {
                    let sum = format!("the sum of {name} over its sites exceeds 64 bits");
                    return Err(Error::limit(format!("kernel {}: {sum}", kernel.name)));
                }
                (total, _) => total.map(|total| total.to_string()).unwrap_or_default(),
            };
            Ok((name, value, unit_name(field.unit)))
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wavetap_profile::file::SiteTotals;
    use wavetap_profile::map::Source;
    use wavetap_profile::probes::blocks::BlockCounts;
    use wavetap_profile::schema::{Counts, KindSchema, Unit};

    const FIELDS: &[FieldSchema] = &[
        FieldSchema::new("visits", Unit::Executions, Merge::Sum),
        FieldSchema::new("shortest", Unit::Cycles, Merge::Min),
    ];

    /// A kernel with a counted block and three sites of a probe that this program does not have.
    fn kernel() -> KernelTotals {
        let kind = Arc::new(KindSchema::new("tiles", "load", FIELDS));
        let site = |address, values: [u64; 2]| SiteTotals {
            address,
            instruction: "tile_load v1, v2".to_owned(),
            source: (address == 0x10).then(|| Source { file: "/src/k.hip".to_owned(), line: 7 }),
            counts: Counts::new(&kind, values.to_vec()).expect("two values"),
        };
        let block = SiteTotals {
            address: 0,
            instruction: "s_nop 0".to_owned(),
            source: None,
            counts: BlockCounts { executions: 2, lanes: 100 }.into(),
        };
        KernelTotals {
            name: "k".to_owned(),
            demangled: "k(int, int)".to_owned(),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            sites: vec![block, site(0x10, [3, 9]), site(0x20, [4, 5]), site(0x30, [0, u64::MAX])],
            ..KernelTotals::default()
        }
    }

    #[test]
    fn every_field_of_every_site_has_a_row() {
        let table = sites(&[kernel()]).expect("a table");
        let expected = r#"kernel,target,object,probe,kind,address,instruction,file,line,field,unit,merge,value
"k(int, int)",gfx90a,00,blocks,block,0x0,s_nop 0,,,executions,executions,sum,2
"k(int, int)",gfx90a,00,blocks,block,0x0,s_nop 0,,,lanes,lanes,sum,100
"k(int, int)",gfx90a,00,tiles,load,0x10,"tile_load v1, v2",/src/k.hip,7,visits,executions,sum,3
"k(int, int)",gfx90a,00,tiles,load,0x10,"tile_load v1, v2",/src/k.hip,7,shortest,cycles,min,9
"k(int, int)",gfx90a,00,tiles,load,0x20,"tile_load v1, v2",,,visits,executions,sum,4
"k(int, int)",gfx90a,00,tiles,load,0x20,"tile_load v1, v2",,,shortest,cycles,min,5
"k(int, int)",gfx90a,00,tiles,load,0x30,"tile_load v1, v2",,,visits,executions,sum,0
"k(int, int)",gfx90a,00,tiles,load,0x30,"tile_load v1, v2",,,shortest,cycles,min,
"#;
        assert_eq!(table, expected);
    }

    #[test]
    fn metrics_are_of_probes_that_have_no_other() {
        let expected = [("tiles/load/visits", "7", "executions"), ("tiles/load/shortest", "5", "cycles")];
        let expected = expected.map(|(name, value, unit)| (name.to_owned(), value.to_owned(), unit));
        assert_eq!(metrics(&kernel()).expect("metrics"), expected);
        let mut kernel = kernel();
        kernel.sites[1].counts.add(&[u64::MAX - 3, 1]).expect("it fits");
        let error = metrics(&kernel).expect_err("a sum of more than 64 bits").to_string();
        assert!(error.contains("kernel k: the sum of tiles/load/visits over its sites exceeds 64 bits"), "{error}");
    }
}
