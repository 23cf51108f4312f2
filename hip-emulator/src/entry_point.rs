//! What every entry point does around its body.

/// Whether the default stream of an entry point is the one of each thread, by its name.
pub(crate) const fn is_per_thread(name: &str) -> bool {
    matches!(name.as_bytes(), [.., b'_', b's', b'p', b't'])
}

/// Defines entry points: exported functions whose body gives an [`Outcome`](crate::status::Outcome). Names after a `/`
/// are exported too and do the same.
macro_rules! entry_points {
    ($($(#[$meta:meta])* fn $name:ident $(/ $also:ident)* ($($arguments:tt)*) $body:block)*) => {$(
        $crate::entry_point::entry_point! { { $(#[$meta])* } $name $($also)* ; ($($arguments)*) $body }
    )*};
}
pub(crate) use entry_points;

/// One entry point under each of its names; see [`entry_points`].
macro_rules! entry_point {
    ({ $($meta:tt)* } ; $arguments:tt $body:block) => {};
    ({ $($meta:tt)* } $name:ident $($also:ident)* ; ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $($meta)*
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        extern "C" fn $name($($arg: $ty),*) -> $crate::status::Status {
            const NAME: &str = stringify!($name);
            const PER_THREAD: bool = $crate::entry_point::is_per_thread(NAME);
            $crate::called::called(NAME);
            $crate::objects::streams::default_is_per_thread(PER_THREAD);
            let status = $crate::status::answer(|| $body);
            if status != $crate::status::SUCCESS {
                $crate::failed_calls::failed(NAME, status);
            }
            status
        }
        $crate::entry_point::entry_point! { { $($meta)* } $($also)* ; ($($arg: $ty),*) $body }
    };
}
pub(crate) use entry_point;
