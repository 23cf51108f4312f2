//! Image instructions of gfx10 and later: the registers that they read and write, and what counts them. The words are
//! LLVM's assembler's.

use wavetap::cfg::Cfg;
use wavetap::dataflow::{Liveness, RegSet, Summaries};
use wavetap::entity::InstId;
use wavetap::isa::{self, Counters, Reg, Target};
use wavetap::kernel::{Body, BodyKind, Image};

const START: u64 = 0x1000;

struct Case {
    target: &'static str,
    dwords: &'static [u32],
    text: &'static str,
    /// Runs of vector registers, first and count.
    reads: &'static [(u16, u8)],
    writes: &'static [(u16, u8)],
    counters: Counters,
}

const CASES: [Case; 16] = [
    Case {
        target: "gfx1030",
        dwords: &[0xf000_0f12, 0x0002_0400, 0x0000_0309],
        text: "image_load v[4:7], [v0, v9, v3], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_3D",
        reads: &[(0, 1), (9, 1), (3, 1)],
        writes: &[(4, 4)],
        counters: Counters::VM,
    },
    // Twelve addresses: the last ones are after 128 bits.
    Case {
        target: "gfx1030",
        dwords: &[0xf0ec_0f16, 0x0082_040a, 0x0e03_0c01, 0x1207_1005, 0x0022_201e],
        text: "image_sample_c_d_cl_o v[4:7], [v10, v1, v12, v3, v14, v5, v16, v7, v18, v30, v32, v34], s[8:15], \
            s[16:19] dmask:0xf dim:SQ_RSRC_IMG_3D",
        reads: &[
            (10, 1),
            (1, 1),
            (12, 1),
            (3, 1),
            (14, 1),
            (5, 1),
            (16, 1),
            (7, 1),
            (18, 1),
            (30, 1),
            (32, 1),
            (34, 1),
        ],
        writes: &[(4, 4)],
        counters: Counters::VM,
    },
    Case {
        target: "gfx1030",
        dwords: &[0xf020_1f0a, 0x0002_0400, 0x0000_0009],
        text: "image_store v[4:7], [v0, v9], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D unorm",
        reads: &[(4, 4), (0, 1), (9, 1)],
        writes: &[],
        counters: Counters::VS,
    },
    Case {
        target: "gfx1030",
        dwords: &[0xf198_9f07, 0x0003_0432, 0x1011_172e, 0x1314_150f, 0x0000_2825],
        text: "image_bvh_intersect_ray v[4:7], [v50, v46, v23, v17, v16, v15, v21, v20, v19, v37, v40], s[12:15]",
        reads: &[(50, 1), (46, 1), (23, 1), (15, 3), (19, 3), (37, 1), (40, 1)],
        writes: &[(4, 4)],
        counters: Counters::VM,
    },
    Case {
        target: "gfx1030",
        dwords: &[0xf044_210a, 0x0002_0400, 0x0000_0009],
        text: "image_atomic_add v4, [v0, v9], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D glc",
        reads: &[(4, 1), (0, 1), (9, 1)],
        writes: &[(4, 1)],
        counters: Counters::VM,
    },
    Case {
        target: "gfx1030",
        dwords: &[0xf044_010a, 0x0002_0400, 0x0000_0009],
        text: "image_atomic_add v4, [v0, v9], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D",
        reads: &[(4, 1), (0, 1), (9, 1)],
        writes: &[(4, 1)],
        counters: Counters::VS,
    },
    Case {
        target: "gfx1100",
        dwords: &[0xf000_0f09, 0x0002_0400, 0x0000_0309],
        text: "image_load v[4:7], [v0, v9, v3], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_3D",
        reads: &[(0, 1), (9, 1), (3, 1)],
        writes: &[(4, 4)],
        counters: Counters::VM,
    },
    // The last address is a run of what the encoding has no place for.
    Case {
        target: "gfx1100",
        dwords: &[0xf070_0f09, 0x1002_040a, 0x0e03_0c01],
        text: "image_sample_d v[4:7], [v10, v1, v12, v3, v[14:18]], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_3D",
        reads: &[(10, 1), (1, 1), (12, 1), (3, 1), (14, 5)],
        writes: &[(4, 4)],
        counters: Counters::VM,
    },
    Case {
        target: "gfx1100",
        dwords: &[0xf018_0f85, 0x0002_0400, 0x0000_0009],
        text: "image_store v[4:7], [v0, v9], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D unorm",
        reads: &[(4, 4), (0, 1), (9, 1)],
        writes: &[],
        counters: Counters::VS,
    },
    Case {
        target: "gfx1100",
        dwords: &[0xf064_8f81, 0x0003_0432, 0x2f28_142e],
        text: "image_bvh_intersect_ray v[4:7], [v50, v46, v[20:22], v[40:42], v[47:49]], s[12:15]",
        reads: &[(50, 1), (46, 1), (20, 3), (40, 3), (47, 3)],
        writes: &[(4, 4)],
        counters: Counters::VM,
    },
    Case {
        target: "gfx1200",
        dwords: &[0xd3c0_0002, 0x0000_1004, 0x0003_0900],
        text: "image_load v[4:7], [v0, v9, v3], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_3D",
        reads: &[(0, 1), (9, 1), (3, 1)],
        writes: &[(4, 4)],
        counters: Counters::LOAD,
    },
    Case {
        target: "gfx1200",
        dwords: &[0xe7c7_0002, 0x0800_1004, 0x0e0c_010a],
        text: "image_sample_d v[4:7], [v10, v1, v12, v[14:19]], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_3D",
        reads: &[(10, 1), (1, 1), (12, 1), (14, 6)],
        writes: &[(4, 4)],
        counters: Counters::SAMPLE,
    },
    Case {
        target: "gfx1200",
        dwords: &[0xd3c1_8001, 0x0000_1004, 0x0000_0900],
        text: "image_store v[4:7], [v0, v9], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D",
        reads: &[(4, 4), (0, 1), (9, 1)],
        writes: &[],
        counters: Counters::STORE,
    },
    // Not a sample, but it has the encoding of one.
    Case {
        target: "gfx1200",
        dwords: &[0xe446_0006, 0x0000_1004, 0x0003_0900],
        text: "image_msaa_load v[4:7], [v0, v9, v3], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D_MSAA",
        reads: &[(0, 1), (9, 1), (3, 1)],
        writes: &[(4, 4)],
        counters: Counters::SAMPLE,
    },
    // The ray comes back where it was.
    Case {
        target: "gfx1200",
        dwords: &[0xd3e0_4010, 0x1400_1800, 0x110e_0c0a],
        text: "image_bvh8_intersect_ray v[0:9], [v[10:11], v[12:13], v[14:16], v[17:19], v20], s[12:15]",
        reads: &[(10, 11)],
        writes: &[(0, 10), (14, 6)],
        counters: Counters::BVH,
    },
    Case {
        target: "gfx1200",
        dwords: &[0xd043_0001, 0x0010_1004, 0x0000_0900],
        text: "image_atomic_add_uint v4, [v0, v9], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D th:TH_ATOMIC_RETURN",
        reads: &[(4, 1), (0, 1), (9, 1)],
        writes: &[(4, 1)],
        counters: Counters::LOAD,
    },
];

fn vectors(runs: &[(u16, u8)]) -> RegSet {
    runs.iter().map(|&(first, count)| Reg::vector(first, count)).collect()
}

#[test]
fn registers_and_counters_of_each_generation() {
    for case in &CASES {
        let target = Target::by_name(case.target).expect("a target");
        let bytes: Vec<u8> = case.dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        let inst = isa::decode(target, &bytes).expect("decodes");
        let text = isa::print(target, &inst);
        assert_eq!((usize::from(inst.size), text.as_str()), (bytes.len(), case.text), "{}", case.target);
        assert_eq!(isa::encode(target, &inst).expect("encodes"), bytes, "{text}");
        assert_eq!(inst.reads().collect::<RegSet>().vectors(), vectors(case.reads), "{}: {text}", case.target);
        assert_eq!(inst.writes().collect::<RegSet>().vectors(), vectors(case.writes), "{}: {text}", case.target);
        assert_eq!(isa::issued(&inst), case.counters, "{}: {text}", case.target);
    }
}

#[test]
fn separate_addresses_are_live_before_the_instruction() {
    const END: u32 = 0xbf81_0000;
    for case in CASES.iter().filter(|case| case.target == "gfx1030") {
        let target = Target::by_name(case.target).expect("a target");
        let bytes: Vec<u8> = case.dwords.iter().chain(&[END]).flat_map(|dword| dword.to_le_bytes()).collect();
        let mut image = Image::new();
        image.add_code(START, &bytes);
        let body = Body::decode(target, &image, "test", BodyKind::Kernel, START).expect("decodes");
        let live = *Liveness::compute(&body, &Cfg::build(&body), &Summaries::none()).before(InstId(0));
        assert_eq!(live.vectors(), vectors(case.reads), "{}", case.text);
    }
}

#[test]
fn what_no_dimension_has_is_malformed() {
    let gfx1030 = Target::by_name("gfx1030").expect("a target");
    let word = |dwords: &[u32]| -> Vec<u8> { dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect() };
    let decode = |dwords: &[u32]| isa::decode(gfx1030, &word(dwords));
    // image_load in one dimension, with separate addresses; in two it is one.
    assert!(decode(&[0xf000_0f02, 0x0002_0400, 0x0000_0309]).is_err());
    assert!(decode(&[0xf000_0f0a, 0x0002_0400, 0x0000_0009]).is_ok());
    // image_sample_d in three dimensions: nine addresses, of which there are places for five or for nine.
    assert!(decode(&[0xf088_0f12, 0x0082_040a, 0x0e03_0c01]).is_err());
    assert!(decode(&[0xf088_0f14, 0x0082_040a, 0x0e03_0c01, 0x1207_1005]).is_ok());
    // Data and addresses that run out of the file: v[253:256], v[255:257].
    assert!(decode(&[0xf000_0f10, 0x0002_fd00]).is_err());
    assert!(decode(&[0xf000_0f10, 0x0002_04ff]).is_err());
    // Bits after the last of twelve addresses, and code that ends within them.
    let twelve = [0xf0ec_0f16, 0x0082_040a, 0x0e03_0c01, 0x1207_1005, 0x0122_201e];
    assert!(decode(&twelve).is_err());
    for bytes in 0..20 {
        assert!(isa::decode(gfx1030, &word(CASES[1].dwords)[..bytes]).is_err(), "{bytes} bytes");
    }
    // gfx90a has image_load and no image_sample with a bias; gfx1250 has no images.
    let names = |target: &str| {
        isa::variants(Target::by_name(target).expect("a target")).map(|row| row.name).collect::<Vec<_>>()
    };
    assert!(names("gfx90a").contains(&"image_load") && !names("gfx90a").contains(&"image_sample_b"));
    assert!(!names("gfx1250").iter().any(|name| name.starts_with("image_")));
}
