//! The attributes of a launch configuration (`hipLaunchAttribute`).

use std::ffi::c_uint;

use crate::raw;
use crate::status::*;
use wavetap::stderr_line;

/// `hipLaunchAttributeCooperative`: the first word of the value is not 0 if all workgroups have to be resident.
const COOPERATIVE: u32 = 2;
/// `hipLaunchAttributeClusterDimension`: the value is the workgroups of a cluster in x, y, z.
const CLUSTER_DIMENSION: u32 = 4;
/// As many attributes as are read: HIP 7.2 has fewer than 20 kinds.
const MOST: c_uint = 64;

/// `hipLaunchAttribute`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// Whether attributes say that a launch needs all its workgroups resident at once. Those that say how launches follow
/// each other or how caches are used make no difference here. Clusters of several workgroups are refused.
pub(crate) fn are_cooperative(attributes: *const Attribute, count: c_uint) -> Outcome<bool> {
    if count > MOST {
        return Err(INVALID_VALUE);
    }
    let mut cooperative = false;
    for index in 0..count as usize {
        let Attribute { id, value, .. } = raw::element(attributes, index)?;
        match id {
            COOPERATIVE => cooperative |= value[0] != 0,
            CLUSTER_DIMENSION => check_cluster([value[0], value[1], value[2]].map(u64::from))?,
            _ => {}
        }
    }
    Ok(cooperative)
}

/// Refuses clusters of several workgroups.
pub(crate) fn check_cluster([x, y, z]: [u64; 3]) -> Outcome {
    if [x, y, z].into_iter().all(|workgroups| workgroups <= 1) {
        return Ok(());
    }
    stderr_line!("wavetap: a launch in clusters of {x}×{y}×{z} workgroups is not implemented by the built-in runtime");
    Err(NOT_SUPPORTED)
}
