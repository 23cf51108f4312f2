//! HIP's objects as data: what streams, events, arrays, textures and pools are. Nothing here knows the device, the lock
//! or the entry points.

pub(crate) mod advice;
pub(crate) mod arrays;
pub(crate) mod captures;
pub(crate) mod captures_of_dispatches;
pub(crate) mod pools;
pub(crate) mod streams;
pub(crate) mod tasks;
pub(crate) mod textures;
pub(crate) mod virtual_memory;
