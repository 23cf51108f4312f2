//! Memory instructions: vector memory, scalar memory, LDS, images, tensors, global wave sync.

pub(crate) mod accesses;
pub(crate) mod async_copy;
pub(crate) mod atomic;
pub(crate) mod buffer;
pub(crate) mod direct_lds;
pub(crate) mod global_fast;
pub(crate) mod gws;
pub(crate) mod image;
pub(crate) mod lds;
pub(crate) mod lds_fast;
pub(crate) mod sampler;
pub(crate) mod scratch_fast;
pub(crate) mod smem;
pub(crate) mod tensor;
pub(crate) mod transposing;
pub(crate) mod typed;
pub(crate) mod vmem;
pub(crate) mod wave_transposing;
