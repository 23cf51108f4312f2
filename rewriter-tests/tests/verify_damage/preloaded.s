// A kernel whose first argument is preloaded, with the code in front that loads it on firmware that does not preload.
	.text
	.globl preloaded
	.p2align 8
	.type preloaded,@function
preloaded:
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	s_waitcnt lgkmcnt(0)
	s_branch start
	.p2align 8
start:
	v_cmp_gt_u32_e32 vcc, 32, v0
	s_and_saveexec_b64 s[6:7], vcc
	s_cbranch_execz end
	v_lshlrev_b32_e32 v1, 2, v0
	global_store_dword v1, v0, s[2:3]
end:
	s_endpgm
	.size preloaded, . - preloaded

// One with two beginnings that meet later, as generators of assembly write them: with arguments preloaded it starts
// behind the alignment. What is read in the end in s[6:7] is there on the ways that read it, as only the flags say.
	.globl preloaded_apart
	.p2align 8
	.type preloaded_apart,@function
preloaded_apart:
	s_load_dword s12, s[0:1], 0x8
	s_load_dwordx2 s[8:9], s[0:1], 0x0
	s_load_dword s13, s[0:1], 0x14
	s_waitcnt lgkmcnt(0)
	s_branch meet
	.p2align 8
	s_mov_b64 s[8:9], s[2:3]
	s_mov_b32 s12, s4
	s_mov_b32 s13, s7
meet:
	s_cmp_eq_u32 s12, 0
	s_cbranch_scc1 without
	s_mov_b64 s[6:7], 5
without:
	v_cmp_gt_u32_e32 vcc, 32, v0
	s_and_saveexec_b64 s[10:11], vcc
	s_cbranch_execz end_apart
	v_mov_b32_e32 v2, s13
	s_cmp_eq_u32 s12, 0
	s_cbranch_scc1 store
	v_mov_b32_e32 v2, s6
store:
	v_lshlrev_b32_e32 v1, 2, v0
	v_add_u32_e32 v2, v2, v0
	global_store_dword v1, v2, s[8:9]
end_apart:
	s_endpgm
	.size preloaded_apart, . - preloaded_apart

	.rodata
	.p2align 6
	.amdhsa_kernel preloaded
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_kernarg_preload_length 2
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_kernarg_size 8
		.amdhsa_next_free_vgpr 2
		.amdhsa_next_free_sgpr 8
		.amdhsa_accum_offset 4
	.end_amdhsa_kernel

	.amdhsa_kernel preloaded_apart
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_kernarg_preload_length 6
		.amdhsa_user_sgpr_kernarg_preload_offset 0
		.amdhsa_kernarg_size 24
		.amdhsa_next_free_vgpr 3
		.amdhsa_next_free_sgpr 14
		.amdhsa_accum_offset 4
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
    .name: preloaded
    .private_segment_fixed_size: 0
    .sgpr_count: 14
    .sgpr_spill_count: 0
    .symbol: preloaded.kd
    .vgpr_count: 2
    .vgpr_spill_count: 0
    .wavefront_size: 64
  - .args:
      - .address_space: global
        .offset: 0
        .size: 8
        .value_kind: global_buffer
      - .offset: 8
        .size: 16
        .value_kind: by_value
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 24
    .max_flat_workgroup_size: 256
    .name: preloaded_apart
    .private_segment_fixed_size: 0
    .sgpr_count: 20
    .sgpr_spill_count: 0
    .symbol: preloaded_apart.kd
    .vgpr_count: 3
    .vgpr_spill_count: 0
    .wavefront_size: 64
amdhsa.version: [1, 2]
	.end_amdgpu_metadata
