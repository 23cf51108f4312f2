//! Programs of many processes and nodes: MPI, and the files for CI in `examples/ci`.

mod ci;
mod mpi;
