//! A kernel to be analysed and edited: its descriptor, its instructions, and the edits others ask for.

pub mod edit;
