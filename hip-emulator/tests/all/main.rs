//! The stand-in runtime's tests, by what they are about: one program, since each more takes seconds to link, and since
//! all cores are busy to the end.

mod api;
mod expectations;
mod exports;
mod modelled_times;
mod programs;
mod rewritten;
mod samples;
mod stand_in;
