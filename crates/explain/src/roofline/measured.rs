//! Roofs that were measured: `roofline.csv` of rocprof-compute, as its benchmark writes it.
//!
//! A header, and a row for each device: `device,HBMBw,HBMBwLow,HBMBwHigh,…`. Bandwidths are in GB/s, rates in GFLOP/s
//! (of integers Gop/s). Versions have different columns; what is 0 was not measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use wavetap_base::error::{Error, Result};

/// The columns that are read, and the resources that they are of. Their case differs between versions.
const COLUMNS: &[(&str, &str)] = &[
    ("hbmbw", "memory"),
    ("mallbw", "mall"),
    ("l2bw", "l2"),
    ("l1bw", "l1"),
    ("ldsbw", "lds"),
    ("fp8flops", "vector_f8"),
    ("fp16flops", "vector_f16"),
    ("bf16flops", "vector_bf16"),
    ("fp32flops", "vector_f32"),
    ("fp64flops", "vector_f64"),
    ("mfmaf4flops", "matrix_f4"),
    ("mfmaf6flops", "matrix_f6"),
    ("mfmaf8flops", "matrix_f8"),
    ("mfmaf16flops", "matrix_f16"),
    ("mfmabf16flops", "matrix_bf16"),
    ("mfmaf32flops", "matrix_f32"),
    ("mfmaf64flops", "matrix_f64"),
    ("mfmai8ops", "matrix_i8"),
];

/// The least of what has to be there for a file to be one of roofs.
const NEEDED: [&str; 2] = ["hbmbw", "fp32flops"];

/// Roofs of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredRoofs {
    /// The device's number in the file.
    pub device: String,
    /// How many devices the file has; the first one counts.
    pub devices: u64,
    /// GB/s or GFLOP/s by resource.
    pub roofs: BTreeMap<String, f64>,
}

impl MeasuredRoofs {
    /// Reads the first device of a file.
    ///
    /// ```
    /// use wavetap_explain::roofline::MeasuredRoofs;
    /// let roofs = MeasuredRoofs::parse("device,HBMBw,FP32Flops\n0,1389.1,20960.5\n")?;
    /// assert_eq!(roofs.roofs["memory"], 1389.1);
    /// # Ok::<(), wavetap_base::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Malformed if there is no such header, no row, or a value that is no number or negative: the line and the column.
    pub fn parse(text: &str) -> Result<MeasuredRoofs> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, header) = lines.next().ok_or_else(|| Error::malformed("an empty file, expected roofline.csv"))?;
        let columns: Vec<String> = cells(header).map(str::to_ascii_lowercase).collect();
        if let Some(missing) = NEEDED.iter().find(|needed| !columns.iter().any(|column| column == *needed)) {
            return Err(Error::malformed(format!(
                "line 1 has no column {missing} (in any case): expected the header of rocprof-compute's roofline.csv, \
                    device,HBMBw,…,FP32Flops,…"
            )));
        }
        let (number, row) = lines.next().ok_or_else(|| Error::malformed("a header without rows: no device"))?;
        let values: Vec<&str> = cells(row).collect();
        if values.len() != columns.len() {
            return Err(Error::malformed(format!(
                "line {} has {} values, the header {}",
                number + 1,
                values.len(),
                columns.len()
            )));
        }
        let mut roofs = BTreeMap::new();
        let mut device = "0".to_owned();
        for (column, value) in columns.iter().zip(&values) {
            if column == "device" {
                device = (*value).to_owned();
            }
            let Some((_, resource)) = COLUMNS.iter().find(|(name, _)| name == column) else { continue };
            let roof: f64 =
                value.parse().ok().filter(|roof: &f64| roof.is_finite() && *roof >= 0.0).ok_or_else(|| {
                    Error::malformed(format!("line {}, column {column}: {value:?} is no rate", number + 1))
                })?;
            if roof > 0.0 {
                roofs.insert((*resource).to_owned(), roof);
            }
        }
        Ok(MeasuredRoofs { device, devices: 1 + lines.count() as u64, roofs })
    }
}

/// The values of a line; numbers and names are never quoted with a comma inside.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_device_counts_and_zero_is_not_measured() {
        let text = "device,HBMBw,HBMBwLow,hbmBwHigh,LDSBw,FP32Flops,MFMAF16Flops\n\
            2,1389.5,1380,1399,17700,20960,165000\n3,1,1,1,1,1,1\n";
        let roofs = MeasuredRoofs::parse(text).unwrap();
        assert_eq!((roofs.device.as_str(), roofs.devices), ("2", 2));
        let found: Vec<(&str, f64)> = roofs.roofs.iter().map(|(name, roof)| (name.as_str(), *roof)).collect();
        assert_eq!(found, [("lds", 17700.0), ("matrix_f16", 165_000.0), ("memory", 1389.5), ("vector_f32", 20960.0)]);
        let text = "device,HBMBw,FP32Flops,FP64Flops\n0,5,6,0\n";
        assert!(!MeasuredRoofs::parse(text).unwrap().roofs.contains_key("vector_f64"));
    }

    #[test]
    fn what_is_no_such_file_says_where() {
        let fault = |text: &str| MeasuredRoofs::parse(text).unwrap_err().to_string();
        assert!(fault("").contains("empty"));
        assert!(fault("Kernel,Time\nk,1\n").contains("no column hbmbw"));
        assert!(fault("device,HBMBw,FP32Flops\n").contains("no device"));
        assert!(fault("device,HBMBw,FP32Flops\n0,1\n").contains("line 2 has 2 values, the header 3"));
        assert!(fault("device,HBMBw,FP32Flops\n0,fast,1\n").contains("line 2, column hbmbw: \"fast\""));
        assert!(fault("device,HBMBw,FP32Flops\n\n0,-4,1\n").contains("line 3, column hbmbw"));
        assert!(fault("device,HBMBw,FP32Flops\n0,NaN,1\n").contains("column hbmbw"));
    }
}
