//! How lanes lie to each other, from what a compiler makes of the usual ways to form an index.

use wavetap::pipeline::Selection;
use wavetap::pipeline::{self, Evidence};
use wavetap::profile::file::{Backend, KernelTotals, Origin, Profile};
use wavetap::profile::launches::LaunchShape;
use wavetap::report::slice::{LaneAccess, WorkgroupSource};

use crate::hip_compiler::{Workshop, compiler_is_there};

const HEAD: &str = "#define KERNEL(N) extern \"C\" __attribute__((global)) \
    __attribute__((amdgpu_flat_work_group_size(1, N)))\n\
    #define X __builtin_amdgcn_workitem_id_x()\n#define Y __builtin_amdgcn_workitem_id_y()\n#define GX \
    __builtin_amdgcn_workgroup_id_x()\n\
    #define GY __builtin_amdgcn_workgroup_id_y()\n";

/// The access of the only load from memory that its wait is blamed on, for launches with these workgroups.
fn access(target: &str, source: &str, workgroup: Option<[u32; 3]>) -> Option<LaneAccess> {
    let object = Workshop::new().code_object(&format!("{HEAD}{source}"), target, &[]);
    let launches = workgroup.map(|workgroup| LaunchShape {
        grid: Some([1024, 1024, 1]),
        workgroup,
        dynamic_lds: 0,
        dispatches: 1,
    });
    let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
    let digest = <md5::Md5 as md5::Digest>::digest(&object).iter().map(|byte| format!("{byte:02x}")).collect();
    let totals = KernelTotals {
        name: "k".to_owned(),
        object: digest,
        dispatches: 1,
        waves: 1024,
        launches: launches.into_iter().collect(),
        ..KernelTotals::default()
    };
    profile.kernels.push(totals);
    let slice =
        pipeline::slice(&object, &Selection::default(), Evidence { profile: Some(&profile), ..Evidence::default() })
            .expect("a slice");
    let chains = &slice.kernels[0].chains;
    let of_load = chains.iter().find(|chain| {
        chain
            .path
            .get(1)
            .is_some_and(|step| ["global_load", "flat_load"].iter().any(|name| step.instruction.starts_with(name)))
    });
    of_load.unwrap_or_else(|| panic!("{target}: no load is blamed: {chains:?}")).evidence.access
}

const TARGETS: [&str; 6] = ["gfx803", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100"];

#[test]
fn an_index_of_blocks_of_a_known_size_is_followed() {
    if !compiler_is_there() {
        return;
    }
    // Such a sum is an `or` where the compiler knows that no bit is in both.
    let strided = "KERNEL(256) void k(const int* in, int* out) { unsigned i = GX * 256 + X; out[i] = in[4 * i]; }";
    let dense = "KERNEL(256) void k(const int* in, int* out) { unsigned i = GX * 256 + X; out[i] = in[i]; }";
    for target in TARGETS {
        let stride = |source| {
            access(target, source, Some([256, 1, 1])).map(|access| (access.stride, access.lines > access.least_lines))
        };
        assert_eq!(stride(strided), Some((Some(16), true)), "{target}");
        assert_eq!(stride(dense), Some((Some(4), false)), "{target}");
    }
}

#[test]
fn an_or_is_no_sum_where_bits_may_meet() {
    if !compiler_is_there() {
        return;
    }
    let meets = "KERNEL(1024) void k(const int* in, int* out) { unsigned i = GX * 256 | X; out[i] = in[4 * i]; }";
    for target in TARGETS {
        assert_eq!(access(target, meets, Some([1024, 1, 1])), None, "{target}");
        // In launches with 256 it is one.
        assert_eq!(access(target, meets, Some([256, 1, 1])).map(|access| access.stride), Some(Some(16)), "{target}");
    }
}

#[test]
fn lanes_of_a_tile_have_two_dimensions() {
    if !compiler_is_there() {
        return;
    }
    let column = "KERNEL(256) void k(const float* a, float* o) \
        { unsigned x = GX * 16 + X, y = GY * 16 + Y; o[y * 64 + x] = a[x * 64 + y] * 2.f; }";
    for (target, line, used) in
        [("gfx906", 64, 16), ("gfx90a", 64, 16), ("gfx942", 128, 16), ("gfx1030", 128, 8), ("gfx1100", 128, 8)]
    {
        let tile = access(target, column, Some([16, 16, 1])).unwrap_or_else(|| panic!("{target}: nothing known"));
        assert_eq!((tile.line, tile.used, tile.workgroup_source), (line, used, WorkgroupSource::Launched), "{target}");
        let row = access(target, column, None).unwrap_or_else(|| panic!("{target}: nothing known"));
        assert_eq!(
            (row.used, row.workgroup, row.workgroup_source),
            (4, [256, 1, 1], WorkgroupSource::Assumed),
            "{target}"
        );
    }
}
