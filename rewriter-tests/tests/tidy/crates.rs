//! The crate table: what each crate may depend on. A checker that shared code with what it checks would repeat its
//! errors, so `verify` and `emulator` depend on nothing that rewrites.

/// A crate of `crates/` and the crates of the project that it may depend on, those for its tests apart.
pub const TABLE: &[(&str, &[&str])] = &[
    ("base", &[]),
    // Code of any vendor: it knows no decoder.
    ("code", &["base"]),
    // NVIDIA's files, decoder and samples: all but the slicer itself.
    ("nvidia", &["base", "code", "profile"]),
    ("amdgpu", &["base"]),
    // Descriptors and metadata mean what the target says.
    ("object", &["amdgpu", "base"]),
    ("profile", &["base"]),
    // A vendor's decoder knows no other vendor.
    ("intel", &["base", "code", "profile"]),
    ("analysis", &["amdgpu", "base", "object"]),
    ("instrument", &["amdgpu", "analysis", "base", "object", "profile"]),
    ("verify", &["amdgpu", "analysis", "base", "object", "profile"]),
    ("emulator", &["amdgpu", "base", "profile"]),
    ("collect", &["amdgpu", "base", "object", "profile"]),
    ("memory", &["amdgpu", "analysis", "base", "code", "object", "profile"]),
    ("mix", &["amdgpu", "analysis", "base", "profile"]),
    ("amd-code", &["amdgpu", "analysis", "base", "code", "memory", "object", "profile"]),
    // It knows no vendor.
    ("slice", &["base", "code", "profile"]),
    ("capture", &["base", "object", "profile"]),
    ("explain", &["amdgpu", "base", "memory", "mix", "object", "profile", "slice"]),
    // Prints what the checker found as it prints profiles and slices; lists code with what analyses say of it.
    (
        "report",
        &[
            "amd-code", "amdgpu", "analysis", "base", "capture", "code", "explain", "memory", "object", "profile",
            "slice", "verify",
        ],
    ),
    // Tables of what the others found and print.
    ("dataset", &["base", "explain", "memory", "profile", "report"]),
];

/// The crates of the project in the `[dependencies]` of a manifest.
pub fn dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    let names = section.lines().filter_map(|line| line.strip_prefix("wavetap-"));
    names.map(|rest| rest.split(['.', ' ', '=']).next().unwrap_or_default()).collect()
}
