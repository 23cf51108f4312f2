//! Kernels made up from seeds, in the language of `rewriter-tests/kernels`: the CPU runs the same source, so what their
//! output must be is known.
//!
//! A `Plan` says what a kernel is to have: how many values live at the same time, which bounds the compiler is given,
//! calls, recursion, function pointers, LDS with barriers, arrays in scratch, operations across lanes. Its small
//! numbers come from the seed's digits, so that any fifty seeds in a row have all of them; the rest is drawn. All
//! arithmetic is on integers, and what several work-items write is added up atomically, so that outputs are exact
//! whatever the order.

mod ways;
mod write;

use std::fmt::Write as _;

pub use ways::{Built, Compiled, compiled, variant, variants};
use write::Writer;

use wavetap::isa::EventHazards;

use crate::Failure;
use crate::kernels::build::{self, Sources, Variant};
use crate::random::Random;

/// Kernels that the tests take, and those in one source.
const KERNELS: u64 = 200;
const IN_ONE: u64 = 8;

/// Words of input that every kernel has.
const INPUT: u32 = 1024;
/// Words after those of the work-items, which all of them add to.
const SUMS: u32 = 8;
/// Words that a work-item has in the output.
const WORDS: u32 = 3;
/// Items of the array in scratch, and of what a workgroup shares for each work-item.
const ARRAY: u32 = 16;

/// What a kernel is to have.
#[derive(Debug, Clone)]
struct Plan {
    /// Values of a lane's own that live from the start to the end.
    live: usize,
    /// Values that are the same for the whole wave.
    uniforms: usize,
    /// Attributes for the compiler: bounds of workgroups and of registers.
    attributes: Vec<String>,
    group: [u32; 3],
    grid: [u32; 3],
    /// LDS of a fixed size, and of the launch's.
    shared: bool,
    dynamic: bool,
    array: bool,
    functions: usize,
    recursion: bool,
    pointers: bool,
    /// Shuffles and ballots: only whole waves run.
    lanes: bool,
    /// Statements, those inside others counted.
    statements: usize,
}

impl Plan {
    fn of(seed: u64, random: &mut Random) -> Plan {
        /// Values at the same time, from what fits 8 registers to what fits none.
        const LIVE: [usize; 10] = [1, 3, 6, 12, 20, 40, 72, 130, 220, 290];
        const UNIFORMS: [usize; 5] = [0, 3, 16, 48, 96];
        let live = LIVE[(seed % 10) as usize];
        let uniforms = UNIFORMS[(seed / 3 % 5) as usize];
        let calls = seed % 3 == 1;
        let lanes = seed % 4 == 2;
        let large = live > 100;
        let groups: &[[u32; 3]] = match (lanes, large) {
            (_, true) => &[[64, 1, 1]],
            (true, false) => &[[64, 1, 1], [128, 1, 1], [192, 1, 1], [16, 8, 1]],
            (false, false) => &[[64, 1, 1], [100, 1, 1], [33, 1, 1], [96, 2, 1], [8, 4, 4], [7, 5, 1], [128, 1, 1]],
        };
        let group = groups[random.below(groups.len())];
        let mut grid = [group[0] * (1 + random.below(2) as u32), group[1] * (1 + random.below(2) as u32), group[2]];
        // The last workgroup may be partial.
        if !lanes && random.chance(40) {
            grid[0] -= 1 + random.below(group[0] as usize / 2) as u32;
        }
        let items = group.iter().product::<u32>();
        let mut attributes = Vec::new();
        match random.below(4) {
            // The bound of HIP: 1024.
            0 if !large => {}
            _ => attributes.push(format!("amdgpu_flat_work_group_size(1, {})", items.next_multiple_of(64))),
        }
        if random.chance(30) {
            attributes.push(format!("amdgpu_waves_per_eu({0}, {0})", random.of(&[1, 2, 4, 6, 8])));
        }
        Plan {
            live,
            uniforms,
            attributes,
            group,
            grid,
            shared: random.chance(35),
            dynamic: random.chance(20),
            array: random.chance(25),
            functions: if calls { 1 + random.below(4) } else { 0 },
            recursion: calls && random.chance(40),
            pointers: calls && random.chance(40),
            lanes,
            statements: if large { 8 + random.below(8) } else { 12 + random.below(40) },
        }
    }

    /// Work-items.
    fn items(&self) -> u32 {
        self.grid.iter().product()
    }
}

/// The sources of the kernels that the tests take.
///
/// # Errors
/// If they cannot be written where they are compiled.
pub fn sources() -> Result<Sources, Failure> {
    let file = |n: u64| (format!("made-up-{n}"), source(n * IN_ONE..(n + 1) * IN_ONE));
    Sources::made_up("made-up", &(0..KERNELS / IN_ONE).map(file).collect::<Vec<_>>())
}

/// What clang 19 makes wrong machine code of: kernel, start of the targets' names, wave size, and what is wrong.
///
/// - `saturation`: on gfx8 it loses the saturation of `max(a, b) - b` (`v_sub_u32 … clamp` becomes the short form,
///   which has none; LLVM 22 does, too).
/// - `scratch descriptor`: where no scalar register is left, EXEC is saved in the last two of the four that describe
///   scratch, around a spill of all lanes through that very descriptor (`s_or_saveexec_b64 s[74:75], -1`,
///   `buffer_store_dword …, s[72:75]`).
/// - `lanes`: a register that holds scalar ones in its lanes is read back for the whole wave into one in which other
///   lanes keep values of their own; LLVM 20 and later choose registers for the two apart.
/// - `unknown`: what clang 22 makes of the same source is right on the same emulator (`WAVETAP_CLANG` names another
///   compiler for the tests); what clang 19 does wrong has not been found.
const MISCOMPILED: [(&str, &str, u32, &str); 24] = [
    ("made_up_0", "gfx8", 64, "saturation"),
    ("made_up_14", "gfx908", 64, "unknown"),
    ("made_up_29", "gfx11", 64, "unknown"),
    ("made_up_29", "gfx12", 64, "unknown"),
    ("made_up_43", "gfx802", 64, "scratch descriptor"),
    ("made_up_43", "gfx805", 64, "scratch descriptor"),
    ("made_up_43", "gfx9", 64, "scratch descriptor"),
    ("made_up_73", "gfx9", 64, "lanes"),
    ("made_up_86", "gfx802", 64, "scratch descriptor"),
    ("made_up_86", "gfx805", 64, "scratch descriptor"),
    ("made_up_86", "gfx9", 64, "scratch descriptor"),
    ("made_up_87", "gfx802", 64, "scratch descriptor"),
    ("made_up_87", "gfx805", 64, "scratch descriptor"),
    ("made_up_87", "gfx9", 64, "scratch descriptor"),
    ("made_up_88", "gfx90a", 64, "lanes"),
    ("made_up_104", "gfx802", 64, "scratch descriptor"),
    ("made_up_104", "gfx805", 64, "scratch descriptor"),
    ("made_up_104", "gfx9", 64, "scratch descriptor"),
    ("made_up_136", "gfx8", 64, "unknown"),
    ("made_up_160", "gfx8", 64, "saturation"),
    ("made_up_161", "gfx802", 64, "scratch descriptor"),
    ("made_up_161", "gfx805", 64, "scratch descriptor"),
    ("made_up_161", "gfx9", 64, "scratch descriptor"),
    ("made_up_179", "gfx90a", 64, "lanes"),
];

/// What it makes wrong without optimisation: after the return of a function whose last instructions write a scalar
/// register with vector ones, a memory instruction uses the register too soon. It looks for such hazards in each
/// function by itself.
const MISCOMPILED_AT_O0: [(&str, &str, u32); 1] = [("made_up_127", "gfx8", 64)];

/// And what LLVM 22 does, for targets that clang 19 does not know: kernel, start of the targets' names, and level. In a
/// loop that both a scalar load from before it and the stores of its last round reach, the wait for the load is taken
/// for one for the stores' addresses, which are then overwritten too early.
const MISCOMPILED_BY_NEWER: [(&str, &str, &str); 1] = [("flat_pointers", "gfx125", "O1")];

/// What the compiler does wrong in a kernel, if it is known to: whether it faults or what it computes then says
/// nothing.
#[must_use]
pub fn miscompiled(kernel: &str, variant: Variant) -> Option<&'static str> {
    if build::is_newer(variant.target).is_ok_and(|newer| newer) {
        let known = |(name, target, level): &&(&str, &str, &str)| {
            *name == kernel && variant.target.name().starts_with(target) && variant.level == *level
        };
        return MISCOMPILED_BY_NEWER.iter().find(known).map(|_| "wait for addresses");
    }
    let is_it = |name: &str, target: &str, lanes: u32| {
        name == kernel && variant.target.name().starts_with(target) && lanes == variant.target.wave_size()
    };
    if variant.level == "O0" {
        return MISCOMPILED_AT_O0
            .iter()
            .find(|(name, target, lanes)| is_it(name, target, *lanes))
            .map(|_| "hazard behind a return");
    }
    let known = |(name, target, lanes, _): &&(&str, &str, u32, &str)| is_it(name, target, *lanes);
    MISCOMPILED.iter().find(known).map(|(_, _, _, what)| *what)
}

/// What the names of these kernels begin with.
const PREFIX: &str = "made_up_";

/// Kernels of those that are not made up with hazards that clang 19 leaves in, see [`left_in`], and the level.
const LEFT_IN: [(&str, &str); 2] = [("merge_sort", "O1"), ("murmur", "O1")];

/// Hazards that clang 19 leaves in a kernel: on gfx11, in wave64, the wait between a write of EXEC and an
/// instruction that uses results from before and after it. It looks at each block once, so that the second round of a
/// loop may lack the wait (LLVM 22 has it); and where an instruction uses several results from behind the write, it
/// asks only whether the last of them comes too soon, and not the others.
#[must_use]
pub fn left_in(kernel: &str, variant: Variant) -> EventHazards {
    let known = kernel.starts_with(PREFIX) || LEFT_IN.contains(&(kernel, variant.level));
    let gfx11 = known && variant.target.name().starts_with("gfx11") && variant.target.wave_size() == 64;
    if gfx11 { EventHazards::VALU_PARTIAL_FORWARD } else { EventHazards::empty() }
}

/// The name of a seed's kernel.
#[must_use]
pub fn name(seed: u64) -> String {
    format!("{PREFIX}{seed}")
}

/// A source file with the kernels of some seeds.
#[must_use]
pub fn source(seeds: std::ops::Range<u64>) -> String {
    let mut text = String::from(
        "#include \"shim/kernel.h\"\n\
         #ifdef __AMDGCN__\n\
         #define BOUNDED(name, ...) extern \"C\" __attribute__((global, ##__VA_ARGS__)) void name\n\
         #else\n\
         #define BOUNDED(name, ...) extern \"C\" void name\n\
         #endif\n",
    );
    for seed in seeds {
        kernel(seed, &mut text);
    }
    text
}

fn kernel(seed: u64, text: &mut String) {
    let mut random = Random::new(seed.wrapping_mul(0x1000) + 17);
    let plan = Plan::of(seed, &mut random);
    let name = name(seed);
    let attributes: String = plan.attributes.iter().map(|attribute| format!(", {attribute}")).collect();
    let mut writer = Writer::new(&plan, &name, random);
    writer.functions();
    writer.line(&format!("BOUNDED({name}{attributes})(const u32 *in, u32 *out, u32 n) {{"));
    writer.body();
    writer.line("}");
    text.push_str(&writer.text);
    let [x, y, z] = plan.grid;
    let [gx, gy, gz] = plan.group;
    let words = plan.items() * WORDS + SUMS;
    // Two words for each work-item, whatever its workgroup's size.
    let dynamic = if plan.dynamic { 2 * 4 * plan.group.iter().product::<u32>() } else { 0 };
    writeln!(
        text,
        "TEST({name}, .grid = {{{x}, {y}, {z}}}, .group = {{{gx}, {gy}, {gz}}}, .dynamic = {dynamic}, .in = {INPUT}, \
            .out = {words});\n"
    )
    .expect("writing to a string");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_one_kernel_and_seeds_differ() {
        assert_eq!(source(3..5), source(3..5));
        assert_ne!(source(3..4), source(4..5));
    }

    #[test]
    fn fifty_seeds_have_everything() {
        let plans: Vec<Plan> = (0..50).map(|seed| Plan::of(seed, &mut Random::new(seed * 0x1000 + 17))).collect();
        let has: [fn(&Plan) -> bool; 7] = [
            |p| p.shared,
            |p| p.dynamic,
            |p| p.array,
            |p| p.functions > 0,
            |p| p.recursion,
            |p| p.pointers,
            |p| p.lanes,
        ];
        assert!(has.iter().all(|has| plans.iter().any(has)));
        assert!(
            plans.iter().any(|p| p.live >= 256)
                && plans.iter().any(|p| p.live == 1)
                && plans.iter().any(|p| p.uniforms >= 96)
        );
    }
}
