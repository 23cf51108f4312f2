//! NVIDIA GPU code, sm_75 to sm_121, as a slicer reads it.
//!
//! [`container::open`] finds the cubins of a file, [`container::Cubin::functions`] has their functions and
//! [`container::Function::code`] makes a [`wavetap_code::Code`] of one. [`isa`] decodes single instructions, from the
//! tables in `tables/`. [`samples`] reads what profilers sampled.
//!
//! What is not in the tables is refused, never guessed: one instruction costs its function.
//!
//! ```
//! let file = include_bytes!("../fixtures/sm_80.cubin");
//! let cubins = wavetap_nvidia::container::open(file, "sm_80.cubin")?.cubins;
//! let stream = cubins[0].functions().find(|function| function.name() == "stream").expect("there");
//! let lines = stream.lines()?;
//! let code = stream.code(&lines)?;
//! // The first wait is for the index of the thread or of the block.
//! let wait = &code.waits()[0];
//! assert_eq!(wait.name.as_deref(), Some("SB0"));
//! assert!(!wait.operations.is_empty());
//! # Ok::<(), wavetap_base::error::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod container;
pub mod isa;
pub mod samples;
mod slicing;
