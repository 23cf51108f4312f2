//! What the file tests need: the samples, the command, its reports.
