// A kernel whose loop looks after vector registers between VALU and memory by itself (SCHED_MODE).
	.text
	.globl scheduled
	.p2align 8
	.type scheduled,@function
scheduled:
	s_load_b64 s[2:3], s[0:1], 0x0
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v1, 2, v0
	s_mov_b32 s4, 0
	s_wait_kmcnt 0x0
	s_wait_alu 0x0
	s_setreg_imm32_b32 hwreg(26, 0, 2), 2
again:
	v_cmp_gt_u32_e32 vcc_lo, 32, v0
	s_and_saveexec_b32 s6, vcc_lo
	s_cbranch_execz none
	s_wait_alu 0xfff
	global_store_b32 v1, v0, s[2:3]
none:
	s_or_b32 exec_lo, exec_lo, s6
	s_wait_alu 0xffe3
	v_add_nc_u32_e32 v0, 5, v0
	s_add_co_u32 s4, s4, 1
	s_cmp_lt_u32 s4, 3
	s_cbranch_scc1 again
	s_wait_alu 0x0
	s_setreg_imm32_b32 hwreg(26, 0, 2), 0
	s_endpgm
	.size scheduled, . - scheduled

	.rodata
	.p2align 6
	.amdhsa_kernel scheduled
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 8
		.amdhsa_next_free_vgpr 2
		.amdhsa_next_free_sgpr 8
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel

	.amdgpu_metadata
amdhsa.kernels:
  - .args:
      - .address_space: global
        .offset: 0
        .size: 8
        .value_kind: global_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .name: scheduled
    .private_segment_fixed_size: 0
    .sgpr_count: 14
    .sgpr_spill_count: 0
    .symbol: scheduled.kd
    .vgpr_count: 2
    .vgpr_spill_count: 0
    .wavefront_size: 32
amdhsa.version: [1, 2]
	.end_amdgpu_metadata
