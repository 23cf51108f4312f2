//! `.ze_info`: which kernels there are, as YAML.

use serde::Deserialize;
use wavetap_base::error::{Error, Result};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ZeInfo {
    pub kernels: Vec<Entry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    pub name: String,
    pub execution_env: ExecutionEnvironment,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct ExecutionEnvironment {
    pub grf_count: u32,
    pub simd_size: u32,
}

impl ZeInfo {
    pub(super) fn read(bytes: &[u8], offset: u64) -> Result<ZeInfo> {
        let text = std::str::from_utf8(bytes).map_err(|_| Error::malformed(".ze_info is no UTF-8").at(offset))?;
        // Some versions end it with a zero byte.
        serde_yaml::from_str(text.trim_end_matches('\0'))
            .map_err(|error| Error::malformed(format!(".ze_info: {error}")).at(offset))
    }
}
