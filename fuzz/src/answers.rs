//! What is true of every answer of the library.

/// An error says what is wrong in words, and is no fault of this program.
///
/// # Panics
/// If it is internal or says nothing.
pub fn check_error(error: &wavetap::error::Error) {
    assert!(error.kind() != wavetap::error::Kind::Internal, "an internal error: {error}");
    assert!(!error.to_string().is_empty(), "an error without a text");
}

/// What was read, or none after the error was checked.
pub fn read<T>(result: Result<T, wavetap::error::Error>) -> Option<T> {
    result.map_err(|error| check_error(&error)).ok()
}
