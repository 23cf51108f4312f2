//! The words of the tables as types: generated from `isa-tables/vocabulary.yaml`, which is also what the build script
//! reads the tables by.

use super::table::{Branch, Condition, Written};

include!(concat!(env!("OUT_DIR"), "/vocabulary.rs"));
