//! Matrix instructions: MFMA and SMFMAC of CDNA, WMMA and SWMMAC of RDNA and gfx1250.

pub(crate) mod mfma;
pub(crate) mod mfma_scaled;
pub(crate) mod smfmac;
pub(crate) mod swmmac;
pub(crate) mod wmma;
pub(crate) mod wmma_scaled;
