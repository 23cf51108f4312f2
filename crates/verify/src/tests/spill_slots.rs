//! Whole vector registers that are moved away and back.

use super::listing::{accepts, finds};
use crate::Rule;

/// v3 goes away, is used and is restored.
fn moved(around: &str, out: &str, back: &str) -> String {
    format!(
        "v_mov_b32_e32 v3, 5
        v_mov_b32_e32 v4, 6
        + s_mov_b64 s[20:21], exec
        {around}
        + s_nop 3
        {out}
        + s_nop 3
        + v_mov_b32_e32 v3, 7
        + s_nop 3
        {back}
        + s_waitcnt 0
        + s_nop 3
        + s_mov_b64 exec, s[20:21]
        @
        v_add_u32_e32 v0, v3, v4
        s_endpgm"
    )
}

const ALL: &str = "+ s_mov_b64 exec, -1";
const OUT: &str = "+ scratch_store_dword v3 offset:20";
const BACK: &str = "+ scratch_load_dword v3 offset:20";

#[test]
fn what_went_to_scratch_memory_comes_back() {
    accepts("gfx942", &moved(ALL, OUT, BACK).replace('@', ""));
    let through = |base: &str| {
        let based = |line: &str| line.replace("v3 offset:20", "v3, s22 offset:8");
        moved(&format!("{ALL}\n+ s_mov_b32 s22, {base}"), &based(OUT), &based(BACK)).replace('@', "")
    };
    accepts("gfx942", &through("12"));
    // Not what went there: nothing, something else, half of the lanes, an earlier value.
    let lost = |text: String| finds("gfx942", &text.replace('@', ""), Rule::Clobbered, "v3");
    lost(moved(ALL, "", BACK));
    lost(moved(ALL, "+ scratch_store_dword v4 offset:20", BACK));
    lost(moved(ALL, OUT, ""));
    lost(moved(ALL, OUT, "+ scratch_load_dword v3 offset:24"));
    lost(moved("", OUT, BACK));
    lost(moved("+ s_mov_b64 exec, 63", OUT, BACK));
    lost(moved(ALL, OUT, "+ s_mov_b64 exec, 63\n+ scratch_load_dword v3 offset:20"));
    lost(moved(ALL, &format!("{OUT}\n+ s_nop 0\n+ scratch_store_dword v4 offset:20"), BACK));
    lost(moved(ALL, &format!("+ v_mov_b32_e32 v3, 7\n{OUT}"), BACK));
    lost(moved(ALL, &format!("+ v_writelane_b32 v3, s20, 4\n{OUT}"), BACK));
    // The original gave it another value meanwhile.
    let text = moved(ALL, OUT, BACK).replace(
        '@',
        "v_mov_b32_e32 v3, 9\n+ s_mov_b64 exec, -1\n+ s_nop 3\n+ \
        scratch_load_dword v3 offset:20\n+ s_waitcnt 0\n+ s_mov_b64 exec, s[20:21]",
    );
    finds("gfx942", &text, Rule::Clobbered, "v3");
}

#[test]
fn what_is_loaded_back_is_waited_for() {
    finds("gfx942", &moved(ALL, OUT, BACK).replace("+ s_waitcnt 0\n", "").replace('@', ""), Rule::Wait, "v3");
}

#[test]
fn scratch_memory_of_the_original_is_left_alone() {
    for offset in [0, 12, 18, 40] {
        let at = |line: &str| line.replace("offset:20", &format!("offset:{offset}"));
        finds("gfx942", &moved(ALL, &at(OUT), &at(BACK)).replace('@', ""), Rule::Scratch, "scratch memory");
    }
    let unknown = |line: &str| line.replace("v3 offset:20", "v3, s0 offset:8");
    finds("gfx942", &moved(ALL, &unknown(OUT), &unknown(BACK)).replace('@', ""), Rule::Scratch, "an unknown place");
    // Where each lane has an offset of its own, nothing is known.
    let by_lane = |line: &str| line.replace("v3 offset:20", "v3, v4, off offset:20");
    finds("gfx942", &moved(ALL, OUT, &by_lane(BACK)).replace('@', ""), Rule::Scratch, "an unknown place");
}

#[test]
fn what_went_to_accumulation_registers_comes_back() {
    let (out, back) = ("+ v_accvgpr_write_b32 a7, v3", "+ v_accvgpr_read_b32 v3, a7");
    for target in ["gfx908", "gfx90a", "gfx942"] {
        accepts(target, &moved(ALL, out, back).replace('@', ""));
        for text in [
            moved(ALL, "", back),
            moved("", out, back),
            moved(ALL, out, "+ v_accvgpr_read_b32 v3, a8"),
            moved(ALL, &format!("{out}\n+ s_nop 3\n+ v_accvgpr_write_b32 a7, v4"), back),
            moved(ALL, "+ v_accvgpr_write_b32 a7, v4", back),
        ] {
            finds(target, &text.replace('@', ""), Rule::Clobbered, "v3");
        }
        // The original has something there.
        let used = moved(ALL, out, back).replace('@', "v_accvgpr_read_b32 v9, a7");
        let used = used.replacen("v_mov_b32_e32 v4, 6", "v_mov_b32_e32 v4, 6\nv_accvgpr_write_b32 a7, v4", 1);
        finds(target, &used, Rule::Clobbered, "a7");
    }
}

#[test]
fn what_nothing_has_set_goes_and_comes_back() {
    // In the first round inserted code alone has set v3, in later ones the original has.
    let text = "+ v_mov_b32_e32 v3, 7
        top:
        + s_mov_b64 exec, -1
        + s_nop 4
        + v_accvgpr_write_b32 a7, v3
        + v_mov_b32_e32 v3, 1
        + s_cbranch_vccz @skip
        + v_mov_b32_e32 v3, 0
        + skip:
        @
        + s_mov_b64 exec, s[20:21]
        s_cbranch_vccnz @on
        v_mov_b32_e32 v3, 5
        on:
        v_mov_b32_e32 v1, v3
        s_cbranch_scc0 @top
        s_endpgm";
    let text = text.replacen("top:", "+ s_mov_b64 s[20:21], exec\ntop:", 1);
    accepts("gfx90a", &text.replace("@\n", "+ v_accvgpr_read_b32 v3, a7\n"));
    finds("gfx90a", &text.replace("@\n", "\n"), Rule::Clobbered, "v3");
    finds("gfx90a", &text.replace("@\n", "+ v_accvgpr_read_b32 v3, a8\n"), Rule::Clobbered, "v3");
}

/// [`moved`] where software sets FLAT_SCRATCH, which these lines do at the entry.
fn moved_behind(target: &str, entry: &str) -> String {
    let based = |line: &str| line.replace("v3 offset:20", "v3, s22 offset:8");
    let text = moved(&format!("{ALL}\n+ s_mov_b32 s22, 12"), &based(OUT), &based(BACK)).replace('@', "");
    let text = if target.starts_with("gfx10") { text.replace("v_add_u32", "v_add_nc_u32") } else { text };
    format!("{entry}\n{text}")
}

#[test]
fn flat_scratch_leads_to_scratch_memory() {
    let pairs = [
        ("gfx906", "s102", "s103", ""),
        ("gfx1030/64", "s30", "s31", "+ s_setreg_b32 63508, s30\n+ s_setreg_b32 63509, s31"),
    ];
    for (target, low, high, set) in pairs {
        let entry = format!("+ s_add_u32 {low}, s2, s4\n+ s_addc_u32 {high}, s3, 0\n{set}");
        let check = |entry: &str| moved_behind(target, entry);
        accepts(target, &check(&entry));
        accepts(target, &check(&entry.replace("s2, s4", "s4, s2")));
        for (from, to) in [
            // Another address or offset, no carry or another one, a half that is not set.
            ("s2, s4", "s2, s5"),
            ("s2, s4", "s0, s4"),
            ("s3, 0", "s3, 1"),
            ("s3, 0", "s1, 0"),
            ("s_addc_u32", "s_add_u32"),
            ("+ s_addc_u32", "+ s_cmp_eq_u32 s2, 0\n+ s_addc_u32"),
            ("+ s_add_u32", "+ s_mov_b32 s4, 0\n+ s_add_u32"),
            ("+ s_add_u32", "+ s_nop 0 ; "),
            ("+ s_setreg_b32 63509, s31", ""),
            ("63508", "30740"),
            ("63509, s31", "63509, s30"),
        ] {
            if let Some(at) = entry.find(from) {
                let damaged = format!("{}{to}{}", &entry[..at], &entry[at + from.len()..]);
                let damaged = damaged
                    .lines()
                    .map(|line| line.split(" ; ").next().unwrap_or_default())
                    .collect::<Vec<_>>()
                    .join("\n");
                finds(target, &check(&damaged), Rule::Scratch, "FLAT_SCRATCH does not lead there");
            }
        }
        // Neither before nor after the entry.
        let change = if set.is_empty() { "+ s_mov_b32 s102, 5" } else { "+ s_setreg_b32 63508, s30" };
        finds(
            target,
            &check(&entry).replace("+ s_mov_b32 s22, 12", &format!("+ s_mov_b32 s22, 12\n{change}")),
            Rule::Scratch,
            "FLAT_SCRATCH",
        );
        let early = "+ s_mov_b32 s22, 12\n+ scratch_store_dword v3, s22 offset:8\n";
        finds(target, &check(&format!("{early}{entry}")), Rule::Scratch, "FLAT_SCRATCH does not lead there");
    }
}

#[test]
fn original_prologues_may_set_flat_scratch_to_what_it_is() {
    let pairs = [
        ("gfx906", "s102", "s103", ""),
        ("gfx1030/64", "s30", "s31", "s_setreg_b32 63508, s30\ns_setreg_b32 63509, s31\n"),
    ];
    for (target, low, high, set) in pairs {
        let original = format!("s_add_u32 {low}, s2, s4\ns_mov_b32 s5, 0\ns_addc_u32 {high}, 0, s3\n{set}");
        let inserted: String =
            original.lines().filter(|line| !line.contains("s5")).map(|line| format!("+ {line}\n")).collect();
        let check = |original: &str| moved_behind(target, &format!("{inserted}{original}"));
        accepts(target, &check(&original));
        accepts(target, &check(&original.replace("s2, s4", "s4, s2").replace("0, s3", "s3, 0")));
        // Of a part of it there is as little to say.
        accepts(
            target,
            &check(original.split_inclusive('\n').filter(|line| !line.contains("63509")).collect::<String>().as_str()),
        );
        for (from, to) in [
            ("s2, s4", "s2, s5"),
            ("s2, s4", "s3, s4"),
            ("s2, s4", "s2, 0"),
            ("s_add_u32", "s_sub_u32"),
            ("0, s3", "1, s3"),
            ("0, s3", "0, s2"),
            ("s_addc_u32", "s_add_u32"),
            ("s_mov_b32 s5, 0", "s_mov_b32 s3, 0"),
            ("s_mov_b32 s5, 0", "s_add_u32 s5, s2, s5"),
            ("63508", "30740"),
            ("63509, s31", "63509, s30"),
        ] {
            if original.contains(from) {
                finds(
                    target,
                    &check(&original.replacen(from, to, 1)),
                    Rule::Scratch,
                    "sets FLAT_SCRATCH in its own way",
                );
            }
        }
        // Where it comes again, the registers may be others.
        let again = check(&format!("top:\n{original}s_mov_b32 s4, 7\ns_cbranch_vccnz @top\n"));
        finds(target, &again, Rule::Scratch, "sets FLAT_SCRATCH in its own way");
    }
    let whole = "s_mov_b64 s[102:103], s[2:3]\n";
    finds(
        "gfx906",
        &moved_behind("gfx906", &format!("+ s_add_u32 s102, s2, s4\n+ s_addc_u32 s103, s3, 0\n{whole}")),
        Rule::Scratch,
        "in its own way",
    );
}

/// What makes s[24:27] describe the wave's scratch memory, and these lines after it.
const DESCRIBED: &str = "+ s_add_u32 s24, s4, s8\n+ s_addc_u32 s25, s5, 0\n+ s_mov_b64 s[26:27], s[6:7]";
const BUFFER_OUT: &str = "+ buffer_store_dword v3, off, s[24:27], 0 offset:20";
const BUFFER_BACK: &str = "+ buffer_load_dword v3, off, s[24:27], 0 offset:20";

fn moved_by_buffer(entry: &str, around: &str, out: &str, back: &str) -> String {
    format!("{entry}\n{}", moved(around, out, back).replace("v_add_u32", "v_or_b32"))
}

#[test]
fn buffer_instructions_reach_the_scratch_memory_of_the_wave() {
    let by_buffer =
        |around: &str, out: &str, back: &str| moved_by_buffer(DESCRIBED, around, out, back).replace('@', "");
    accepts("gfx803", &by_buffer(ALL, BUFFER_OUT, BUFFER_BACK));
    // The register counts the bytes of all 64 lanes.
    let through = |base: &str| {
        let based = |line: &str| line.replace("0 offset:20", "s22 offset:8");
        by_buffer(&format!("{ALL}\n+ s_mov_b32 s22, {base}"), &based(BUFFER_OUT), &based(BUFFER_BACK))
    };
    accepts("gfx803", &through("768"));
    accepts(
        "gfx803",
        &by_buffer(
            &format!("{ALL}\n+ s_mov_b32 s22, 768"),
            BUFFER_OUT,
            &BUFFER_BACK.replace("0 offset:20", "s22 offset:8"),
        ),
    );
    for wrong in ["12", "0", "760", "2048", "s0"] {
        finds("gfx803", &through(wrong), Rule::Scratch, "scratch memory");
    }
    for offset in [0, 12, 18, 40] {
        let at = |line: &str| line.replace("offset:20", &format!("offset:{offset}"));
        finds("gfx803", &by_buffer(ALL, &at(BUFFER_OUT), &at(BUFFER_BACK)), Rule::Scratch, "scratch memory");
    }
    let lost = |text: String| finds("gfx803", &text, Rule::Clobbered, "v3");
    lost(by_buffer(ALL, "", BUFFER_BACK));
    lost(by_buffer(ALL, BUFFER_OUT, ""));
    lost(by_buffer(ALL, &BUFFER_OUT.replace("v3", "v4"), BUFFER_BACK));
    lost(by_buffer(ALL, BUFFER_OUT, &BUFFER_BACK.replace("20", "24")));
    lost(by_buffer(ALL, BUFFER_OUT, &BUFFER_BACK.replace("load_dword", "load_ushort")));
    lost(by_buffer(ALL, &BUFFER_OUT.replace("store_dword", "store_short"), BUFFER_BACK));
    lost(by_buffer("+ s_mov_b64 exec, 63", BUFFER_OUT, BUFFER_BACK));
    // A wider store overwrites it.
    let wide = BUFFER_OUT.replace("dword v3", "dwordx2 v[4:5]").replace("offset:20", "offset:16");
    lost(by_buffer(ALL, &format!("{BUFFER_OUT}\n{wide}"), BUFFER_BACK));
    finds("gfx803", &by_buffer(ALL, BUFFER_OUT, BUFFER_BACK).replace("+ s_waitcnt 0\n", ""), Rule::Wait, "v3");
}

#[test]
fn four_registers_describe_the_scratch_memory_of_the_wave() {
    let check = |entry: &str, around: &str| {
        let text = moved_by_buffer(entry, &format!("{ALL}\n{around}"), BUFFER_OUT, BUFFER_BACK).replace('@', "");
        text.lines().map(|line| line.split(" ; ").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
    };
    let undescribed = |text: &str| finds("gfx803", text, Rule::Scratch, "are not known to describe");
    accepts("gfx803", &check(&DESCRIBED.replace("s4, s8", "s8, s4"), ""));
    accepts(
        "gfx803",
        &check(&DESCRIBED.replace("+ s_mov_b64 s[26:27], s[6:7]", "+ s_mov_b32 s26, s6\n+ s_mov_b32 s27, s7"), ""),
    );
    for (from, to) in [
        // Another base or offset, no carry or another one, a register that is not set or another one.
        ("s4, s8", "s4, s9"),
        ("s4, s8", "s0, s8"),
        ("s4, s8", "s4, 0"),
        ("s5, 0", "s5, 1"),
        ("s5, 0", "s1, 0"),
        ("s_addc_u32", "s_add_u32"),
        ("+ s_addc_u32", "+ s_cmp_eq_u32 s2, 0\n+ s_addc_u32"),
        ("+ s_add_u32", "+ s_mov_b32 s8, 0\n+ s_add_u32"),
        ("+ s_add_u32", "+ s_nop 0 ; "),
        ("+ s_addc_u32", "+ s_nop 0 ; "),
        ("+ s_mov_b64", "+ s_nop 0 ; "),
        ("s[6:7]", "s[4:5]"),
        ("s[26:27], s[6:7]", "s[26:27], s[24:25]"),
    ] {
        undescribed(&check(&DESCRIBED.replacen(from, to, 1), ""));
    }
    for half in 24..28 {
        undescribed(&check(DESCRIBED, &format!("+ s_mov_b32 s{half}, 0")));
    }
    // Those that the hardware gives describe the memory of all waves; and after the first original instruction they
    // may be anything.
    let given = |text: String| text.replace("s[24:27]", "s[4:7]");
    undescribed(&given(check(DESCRIBED, "")));
    undescribed(&check("s_nop 0", DESCRIBED));
    // The original's own go on being the original's.
    let reads =
        "s_mov_b64 s[10:11], s[4:5]\ns_mov_b64 s[12:13], s[6:7]\nv_or_b32_e32 v0, s10, v0\nv_or_b32_e32 v0, s12, v0";
    let reads = |entry: &str| {
        format!("{entry}\n{}", check("", "").replace("v_mov_b32_e32 v3, 5", &format!("v_mov_b32_e32 v3, 5\n{reads}")))
    };
    accepts("gfx803", &reads(DESCRIBED));
    finds("gfx803", &reads(&format!("{DESCRIBED}\n+ s_mov_b64 s[4:5], s[24:25]")), Rule::Clobbered, "s4");
}

#[test]
fn an_unknown_function_may_have_inserted_code() {
    let call = "v_mov_b32_e32 v3, 5\ns_mov_b64 s[12:13], s[0:1]\ns_swappc_b64 s[30:31], s[12:13]";
    let text =
        moved_by_buffer(DESCRIBED, ALL, BUFFER_OUT, BUFFER_BACK).replace('@', "").replace("v_mov_b32_e32 v3, 5", call);
    finds("gfx803", &text, Rule::Scratch, "are not known to describe");
}
