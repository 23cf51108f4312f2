//! State of a thread that is there as long as the thread is.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A thread-local value without a destructor.
///
/// Destructors of static objects and functions that `atexit` knows run after the thread-local values of the main thread
/// are destroyed, and they may call every entry point of HIP. What a thread leaves in such a value is leaked when it
/// ends.
#[derive(Debug)]
pub(crate) struct PerThread<T>(ManuallyDrop<RefCell<T>>);

impl<T> PerThread<T> {
    /// With this value at first.
    pub(crate) const fn new(value: T) -> PerThread<T> {
        PerThread(ManuallyDrop::new(RefCell::new(value)))
    }
}

impl<T> Deref for PerThread<T> {
    type Target = RefCell<T>;

    fn deref(&self) -> &RefCell<T> {
        &self.0
    }
}

/// Takes the last element of a stack; an empty one keeps no memory, so that threads that have ended leak none.
pub(crate) fn pop<T>(stack: &PerThread<Vec<T>>) -> Option<T> {
    let mut stack = stack.borrow_mut();
    let last = stack.pop();
    if stack.is_empty() {
        *stack = Vec::new();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_destructor_runs_and_an_empty_stack_keeps_no_memory() {
        assert!(!std::mem::needs_drop::<PerThread<Vec<u8>>>());
        let stack = PerThread::new(vec![1, 2]);
        assert_eq!([pop(&stack), pop(&stack), pop(&stack)], [Some(2), Some(1), None]);
        assert_eq!(stack.borrow().capacity(), 0);
    }
}
