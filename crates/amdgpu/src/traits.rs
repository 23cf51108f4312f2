//! What the name of an operation says, found once for each row of the tables: analyses ask it of every instruction.

bitflags::bitflags! {
    /// Groups of operations that are known by their names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Traits: u32 {
        /// `s_movrel*`: the register is the named one plus M0.
        const SCALAR_RELATIVE = 1;
        /// `s_movreld*`: so is the one that is written.
        const SCALAR_RELATIVE_WRITE = 1 << 1;
        /// `v_movrel*`.
        const VECTOR_RELATIVE = 1 << 2;
        /// `s_set_gpr_idx*`: vector registers are indexed from here on.
        const INDEX_MODE = 1 << 3;
        /// `s_cmov*` and `s_bitset*`: may leave their destination, or bits of it, as it was.
        const CONDITIONAL = 1 << 4;
        /// `v_writelane*`.
        const WRITE_LANE = 1 << 5;
        /// `s_set_vgpr_msb`.
        const SET_VGPR_MSB = 1 << 6;
        /// `s_getpc_b64` by any of its names.
        const GET_PC = 1 << 7;
        /// `s_clause`.
        const CLAUSE = 1 << 8;
        /// `s_delay_alu`.
        const DELAY = 1 << 9;
        /// `s_nop`.
        const NOP = 1 << 10;
        /// `s_waitcnt_depctr`, `s_wait_alu` and `s_wait_idle`.
        const ALU_WAIT = 1 << 12;
        /// `s_barrier_wait`.
        const BARRIER_WAIT = 1 << 13;
        /// Reads a mask of lanes as its last source: `v_cndmask`, additions and subtractions with a carry, `v_div_fmas`.
        const LANE_MASK = 1 << 14;
        /// `v_accvgpr_*`.
        const ACCUM_MOVE = 1 << 15;
        /// `v_dot*`.
        const DOT = 1 << 16;
        /// Changes how instructions execute, or what other waves and the host see: nothing that inserted code may do.
        const STATEFUL = 1 << 17;
        /// `s_alloc_vgpr`.
        const ALLOC_VGPR = 1 << 18;
        /// `ds_nop`.
        const DS_NOP = 1 << 19;
        /// `v_swaprel*`.
        const SWAP_RELATIVE = 1 << 20;
        /// `s_getreg*` and `s_setreg*`.
        const HARDWARE_REGISTER = 1 << 21;
        /// `s_setvskip`: vector instructions are skipped from here on, or no longer.
        const SET_VSKIP = 1 << 22;
        /// Loads into LDS, not into registers, but for those that a modifier makes do so.
        const TO_LDS = 1 << 23;
        /// `s_barrier_signal*`, `s_barrier_wait`, `s_sendmsg*`, `s_getreg*` and `s_setreg*`: see [`super::Inst::waits_for_translations`].
        const TRANSLATES = 1 << 24;
        /// Whatever makes registers depend on values.
        const CHOOSES_REGISTERS = 1 | 1 << 2 | 1 << 3 | 1 << 20;
    }
}

/// Starts of the names of what is [`Traits::STATEFUL`].
const STATEFUL: [&str; 20] = [
    "s_setreg",
    "s_set_gpr_idx",
    "s_setvskip",
    "s_sethalt",
    "s_setkill",
    "s_setprio",
    "s_sleep",
    "s_movrel",
    "v_movrel",
    "s_dcache",
    "s_icache",
    "s_inst_prefetch",
    "s_set_inst_prefetch",
    "s_round_mode",
    "s_denorm_mode",
    "s_alloc_vgpr",
    "s_set_vgpr_msb",
    "s_barrier",
    "s_wakeup",
    "s_code_end",
];
/// Starts of the names of what is a [`Traits::LANE_MASK`].
const LANE_MASK: [&str; 8] =
    ["v_cndmask_", "v_addc_", "v_add_co_ci_", "v_subb_", "v_sub_co_ci_", "v_subbrev_", "v_subrev_co_ci_", "v_div_fmas_"];

impl Traits {
    /// Those of an operation of this name.
    #[must_use]
    pub fn of(name: &str) -> Traits {
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        let known = [
            (Traits::SCALAR_RELATIVE, starts(&["s_movrel"])),
            (Traits::SCALAR_RELATIVE_WRITE, starts(&["s_movreld"])),
            (Traits::VECTOR_RELATIVE, starts(&["v_movrel"])),
            (Traits::INDEX_MODE, starts(&["s_set_gpr_idx"])),
            (Traits::CONDITIONAL, starts(&["s_cmov", "s_bitset"])),
            (Traits::WRITE_LANE, starts(&["v_writelane"])),
            (Traits::TO_LDS, name.contains("_load_lds_") || name.contains("_to_lds") || name.ends_with("_lds")),
            (Traits::SET_VGPR_MSB, name == "s_set_vgpr_msb"),
            (Traits::GET_PC, matches!(name, "s_getpc_b64" | "s_get_pc_i64")),
            (Traits::CLAUSE, name == "s_clause"),
            (Traits::DELAY, name == "s_delay_alu"),
            (Traits::NOP, name == "s_nop"),
            (Traits::ALU_WAIT, matches!(name, "s_waitcnt_depctr" | "s_wait_alu" | "s_wait_idle")),
            (Traits::BARRIER_WAIT, name == "s_barrier_wait"),
            (Traits::LANE_MASK, starts(&LANE_MASK)),
            (Traits::ACCUM_MOVE, starts(&["v_accvgpr_"])),
            (Traits::DOT, starts(&["v_dot"])),
            (Traits::STATEFUL, starts(&STATEFUL)),
            (Traits::ALLOC_VGPR, name == "s_alloc_vgpr"),
            (Traits::DS_NOP, name == "ds_nop"),
            (Traits::SWAP_RELATIVE, starts(&["v_swaprel"])),
            (Traits::SET_VSKIP, name == "s_setvskip"),
            (Traits::TRANSLATES, starts(&["s_barrier_signal", "s_barrier_wait", "s_sendmsg", "s_getreg", "s_setreg"])),
            (Traits::HARDWARE_REGISTER, starts(&["s_getreg", "s_setreg"])),
        ];
        known.into_iter().filter(|(_, is)| *is).fold(Traits::empty(), |all, (known, _)| all | known)
    }
}
