//! Slices of kernels that are assembled here: with samples of every kind of file, and where LEO, the best published
//! analyser, goes wrong.

mod assembled;
mod lanes;
mod samples;
mod weaknesses;
