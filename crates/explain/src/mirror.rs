//! Enums of other crates as they are named in JSON.

/// Defines the JSON form of an enum of another crate: the same variants, in snake case.
macro_rules! mirror {
    (
        $(#[$meta:meta])*
        pub enum $name:ident = $of:path { $($(#[$variant_meta:meta])* $variant:ident,)* }
    ) => {
        $(#[$meta])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_meta])* $variant,)* }

        impl From<$of> for $name {
            fn from(of: $of) -> $name {
                use $of as Of;
                match of { $(Of::$variant => $name::$variant,)* }
            }
        }
    };
}

pub(crate) use mirror;
