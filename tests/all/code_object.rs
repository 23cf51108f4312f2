//! Code objects as a compiler writes them.

use crate::hip_compiler::{SOURCE, Workshop, compiler_is_there, tool};
use crate::random::Random;
use wavetap::code_object::{CodeObject, Field, LineTable, WorkItemIds, demangle, initial_registers, metadata};
use wavetap::isa::Target;

/// Targets that clang 19 builds without HIP's device library.
const TARGETS: [&str; 5] = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"];

#[test]
fn kernels_functions_and_metadata_agree_with_llvm() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for target in TARGETS {
        let bytes = workshop.code_object(SOURCE, target, &[]);
        let object = CodeObject::parse(&bytes).expect("parses");
        assert_eq!(object.target(), Target::by_name(target));
        assert_eq!(object.target_id(), target);
        assert_eq!(object.version(), 5);
        let names: Vec<_> = object.kernels().iter().map(|kernel| demangle(&kernel.name).into_owned()).collect();
        assert_eq!(names, ["add(int*, int)", "void scale<int>(int*, int)"]);
        let twice =
            object.functions().iter().find(|function| demangle(&function.name) == "twice(int)").expect("the callee");
        assert!(twice.sized && twice.code.end > twice.code.start);

        let file = format!("{target}.co");
        let headers = workshop.run("llvm-readelf-19", &["-s", &file]);
        for kernel in object.kernels() {
            // llvm-readelf prints value and size of each symbol.
            let line =
                headers.lines().find(|line| line.trim_end().ends_with(&format!(" {}", kernel.name))).expect("symbol");
            let fields: Vec<_> = line.split_whitespace().collect();
            assert_eq!(u64::from_str_radix(fields[1], 16), Ok(kernel.entry), "{line}");
            assert_eq!(fields[2].parse(), Ok(kernel.code.end - kernel.code.start), "{line}");
            let metadata = kernel.metadata.as_ref().expect("metadata");
            assert_eq!(
                metadata.group_segment_fixed_size,
                u64::from(kernel.descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE))
            );
            assert_eq!(metadata.kernarg_segment_size, u64::from(kernel.descriptor.get(Field::KERNARG_SIZE)));
            assert!(
                metadata.vgpr_count <= u64::from(kernel.descriptor.allocated_vgprs(object.target().expect("known")))
            );
            assert!(
                metadata.sgpr_count <= u64::from(kernel.descriptor.allocated_sgprs(object.target().expect("known")))
            );
            assert_eq!(metadata.args[0].offset, 0);
            assert_eq!((metadata.args[1].offset, metadata.args[1].size), (8, 4));
        }
        let metadata = object.metadata().expect("note");
        let encoded = metadata::encode(&metadata.value().expect("values")).expect("encodes");
        assert_eq!(
            encoded,
            bytes[metadata.file_offset as usize..][..metadata.size as usize],
            "decode and encode give the note's bytes"
        );
    }
}

/// llvm-objdump prints a descriptor as assembler directives; all of them must agree with ours.
#[test]
fn descriptor_fields_agree_with_llvm_objdump() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for target in TARGETS {
        let bytes = workshop.code_object(SOURCE, target, &[]);
        let object = CodeObject::parse(&bytes).expect("parses");
        for kernel in object.kernels() {
            let file = format!("{target}.co");
            let text =
                workshop.run("llvm-objdump-19", &["-D", &format!("--disassemble-symbols={}", kernel.symbol()), &file]);
            let directive = |name: &str| {
                let line = text.lines().find(|line| line.trim().starts_with(&format!(".amdhsa_{name} ")));
                line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok())
            };
            let fields = [
                ("group_segment_fixed_size", Field::GROUP_SEGMENT_FIXED_SIZE),
                ("private_segment_fixed_size", Field::PRIVATE_SEGMENT_FIXED_SIZE),
                ("kernarg_size", Field::KERNARG_SIZE),
                ("system_sgpr_workgroup_id_x", Field::ENABLE_WORKGROUP_ID_X),
                ("system_sgpr_workgroup_id_y", Field::ENABLE_WORKGROUP_ID_Y),
                ("system_sgpr_workgroup_id_z", Field::ENABLE_WORKGROUP_ID_Z),
                ("system_sgpr_workgroup_info", Field::ENABLE_WORKGROUP_INFO),
                ("system_vgpr_workitem_id", Field::ENABLE_VGPR_WORKITEM_ID),
                ("float_round_mode_32", Field::FLOAT_ROUND_MODE_32),
                ("float_round_mode_16_64", Field::FLOAT_ROUND_MODE_16_64),
                ("float_denorm_mode_32", Field::FLOAT_DENORM_MODE_32),
                ("float_denorm_mode_16_64", Field::FLOAT_DENORM_MODE_16_64),
                ("dx10_clamp", Field::ENABLE_DX10_CLAMP),
                ("ieee_mode", Field::ENABLE_IEEE_MODE),
                ("fp16_overflow", Field::FP16_OVFL),
                ("user_sgpr_dispatch_ptr", Field::ENABLE_SGPR_DISPATCH_PTR),
                ("user_sgpr_queue_ptr", Field::ENABLE_SGPR_QUEUE_PTR),
                ("user_sgpr_kernarg_segment_ptr", Field::ENABLE_SGPR_KERNARG_SEGMENT_PTR),
                ("user_sgpr_dispatch_id", Field::ENABLE_SGPR_DISPATCH_ID),
                ("user_sgpr_private_segment_size", Field::ENABLE_SGPR_PRIVATE_SEGMENT_SIZE),
                ("uses_dynamic_stack", Field::USES_DYNAMIC_STACK),
            ];
            for (name, field) in fields {
                assert_eq!(
                    Some(kernel.descriptor.get(field)),
                    directive(name),
                    "{target} {} .amdhsa_{name}\n{text}",
                    kernel.name
                );
            }
            let known = object.target().expect("known");
            assert_eq!(Some(kernel.descriptor.allocated_vgprs(known)), directive("next_free_vgpr"), "{text}");
            // The directive is counted in eights; the hardware gives sixteens.
            assert_eq!(
                Some(kernel.descriptor.allocated_sgprs(known)),
                directive("next_free_sgpr").map(|count| count.next_multiple_of(16)),
                "{text}"
            );
            if known.unified_accum() {
                assert_eq!(kernel.descriptor.accum_offset(known), directive("accum_offset"), "{text}");
                assert_eq!(Some(kernel.descriptor.get(Field::TG_SPLIT)), directive("tg_split"), "{text}");
            }
        }
    }
}

/// A kernel that asks for nearly everything; version 4, because later ones find the queue through the kernel arguments.
#[test]
fn initial_registers_follow_the_abi_order() {
    if !compiler_is_there() {
        return;
    }
    let source = SOURCE.to_owned()
        + r#"
        __global__ void everything(long* out) {
            auto* dispatch = (const int __attribute__((address_space(4)))*)__builtin_amdgcn_dispatch_ptr();
            out[0] = dispatch[0] + __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workgroup_id_y()
            + __builtin_amdgcn_workgroup_id_z();
            out[1] = __builtin_amdgcn_workitem_id_x() + __builtin_amdgcn_workitem_id_y()
            + __builtin_amdgcn_workitem_id_z();
            out[2] = *(const long __attribute__((address_space(4)))*)__builtin_amdgcn_queue_ptr();
        }"#;
    let workshop = Workshop::new();
    for target in TARGETS {
        let bytes = workshop.code_object(&source, target, &["-mcode-object-version=4"]);
        let object = CodeObject::parse(&bytes).expect("parses");
        let kernel =
            object.kernels().iter().find(|kernel| demangle(&kernel.name).starts_with("everything")).expect("kernel");
        let target = object.target().expect("known");
        let registers = initial_registers(&kernel.descriptor, target).expect("registers");
        let buffer = registers.private_segment_buffer.map_or(0, |first| first + 4);
        assert_eq!(registers.dispatch_ptr, Some(buffer));
        assert_eq!(registers.queue_ptr, Some(buffer + 2));
        assert_eq!(registers.kernarg_ptr, Some(buffer + 4));
        let flat_scratch = if registers.flat_scratch_init.is_some() { 2 } else { 0 };
        assert_eq!(registers.used_user_sgprs, buffer + 6 + flat_scratch);
        let first = registers.user_sgprs;
        assert_eq!(
            (registers.workgroup_id_x, registers.workgroup_id_y, registers.workgroup_id_z),
            (Some(first), Some(first + 1), Some(first + 2))
        );
        let expected = if target.packed_work_item_ids() {
            WorkItemIds::Packed { count: 3 }
        } else {
            WorkItemIds::Separate { count: 3 }
        };
        assert_eq!(registers.work_item_ids, expected);
    }
}

#[test]
fn versions_and_features() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for version in [4, 5, 6] {
        let bytes =
            workshop.code_object(SOURCE, "gfx90a:xnack+:sramecc-", &[&format!("-mcode-object-version={version}")]);
        let object = CodeObject::parse(&bytes).expect("parses");
        assert_eq!(object.version(), version);
        assert_eq!(object.target_id(), "gfx90a:sramecc-:xnack+");
        assert_eq!(object.kernels().len(), 2);
    }
    let other = workshop.code_object(SOURCE, "gfx1030", &[]);
    let object = CodeObject::parse(&other).expect("parses");
    let target = object.target().expect("the tables have it");
    assert_eq!((target.name(), target.rewritable(), object.processor()), ("gfx1030", true, Some("gfx1030")));
}

#[test]
fn source_lines_agree_with_addr2line() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    for flags in [&["-g"][..], &["-g", "-gdwarf-4"], &["-g", "-gz=zlib"]] {
        let bytes = workshop.code_object(SOURCE, "gfx90a", flags);
        let object = CodeObject::parse(&bytes).expect("parses");
        let lines: LineTable = object.line_table().expect("reads").expect("compiled with -g");
        let mut known = 0;
        for kernel in object.kernels() {
            assert_eq!(lines.parameters(kernel.entry), Some(vec!["out".to_owned(), "n".to_owned()]), "{flags:?}");
            assert_eq!(lines.parameters(kernel.entry + 4), None, "no function begins there");
            for address in kernel.code.clone().step_by(16) {
                let file = "gfx90a.co";
                let Some((true, text)) = tool(
                    "llvm-symbolizer-19",
                    &["--no-inlines", "-e", file, &format!("{address:#x}")],
                    &workshop.path(""),
                ) else {
                    panic!("llvm-symbolizer-19 belongs to the compiler's package");
                };
                let place = text.lines().nth(1).expect("a place");
                let ours = lines
                    .location(address)
                    .map_or("??:0:0".to_owned(), |place| format!("{}:{}:{}", place.file, place.line, place.column));
                // Code of no line keeps a column of no meaning.
                let line_zero = |place: &str| place.rsplit(':').nth(1) == Some("0");
                assert!(
                    ours == place || line_zero(&ours) && line_zero(place),
                    "{address:#x} {flags:?}: {ours} {place}"
                );
                known += usize::from(lines.frames(address).first().is_some_and(|frame| frame.function.is_some()));
            }
        }
        assert!(known > 5, "functions are known");
    }
    let lines_only = workshop.code_object(SOURCE, "gfx90a", &["-gline-tables-only"]);
    let object = CodeObject::parse(&lines_only).expect("parses");
    let lines = object.line_table().expect("reads").expect("compiled with line tables");
    assert_eq!(lines.parameters(object.kernels()[0].entry), None);
    let without = workshop.code_object(SOURCE, "gfx90a", &[]);
    assert!(CodeObject::parse(&without).expect("parses").line_table().expect("reads").is_none());
}

#[test]
fn a_stripped_object_still_has_its_kernels() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    workshop.code_object(SOURCE, "gfx90a", &[]);
    workshop.run("llvm-objcopy-19", &["--strip-all", "gfx90a.co", "stripped.co"]);
    let bytes = workshop.read("stripped.co");
    let object = CodeObject::parse(&bytes).expect("parses");
    assert!(object.symbols().is_empty());
    assert_eq!(object.kernels().len(), 2);
    assert!(object.kernels().iter().all(|kernel| kernel.sized));
}

#[test]
fn truncated_and_mutated_objects_never_panic() {
    if !compiler_is_there() {
        return;
    }
    let workshop = Workshop::new();
    let whole = workshop.code_object(SOURCE, "gfx90a", &["-g"]);
    for len in (0..whole.len()).step_by(64) {
        assert!(CodeObject::parse(&whole[..len]).is_err(), "{len} of {} bytes", whole.len());
    }
    let mut random = Random::new(1);
    let mut refused = 0;
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        // Headers and tables lie at both ends; most mutations go there.
        let range = if random.below(2) == 0 { 0..0x900 } else { whole.len() - 0x900..whole.len() };
        for _ in 0..1 + random.below(4) {
            let at = range.start + random.below(range.len());
            bytes[at] = random.next() as u8;
        }
        match CodeObject::parse(&bytes) {
            Ok(object) => {
                for kernel in object.kernels() {
                    object
                        .bytes_at(kernel.code.start, kernel.code.end - kernel.code.start)
                        .expect("checked when it was parsed");
                    if let Some(target) = object.target() {
                        let _ = initial_registers(&kernel.descriptor, target);
                    }
                    if let Ok(Some(lines)) = object.line_table() {
                        let _ = (lines.location(kernel.entry), lines.frames(kernel.entry));
                    }
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 300, "only {refused} mutations were refused");
}
