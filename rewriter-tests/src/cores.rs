//! Work on all cores.

use std::sync::Mutex;

/// What `work` makes of each item, in the order of the items. Each thread takes the next item when it is done with one;
/// a panic in one of them goes on here.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    on_all_cores_with(items, || (), |(), item| work(item))
}

/// The same where each thread has something of its own, made by `own`, that `work` may change.
pub fn on_all_cores_with<T: Sync, R: Send, S>(
    items: &[T],
    own: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = Mutex::new(items.iter().enumerate());
    let one_thread = || {
        let mut own = own();
        let mut made = Vec::new();
        // Nothing panics while this is locked, so it is never poisoned.
        while let Some((n, item)) = next.lock().ok().and_then(|mut items| items.next()) {
            made.push((n, work(&mut own, item)));
        }
        made
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut made: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one_thread)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    made.sort_by_key(|&(n, _)| n);
    made.into_iter().map(|(_, result)| result).collect()
}
