//! Samples that `rocprofv3` took, as JSON and as tables.

use wavetap::profile::pc_samples;

use crate::read;

/// Reads a file of samples.
///
/// # Panics
/// If what is read contradicts itself.
pub fn run(data: &[u8]) {
    let Some(samples) = read(pc_samples::read(data)) else { return };
    for object in &samples.objects {
        let _ = (object.file_size(), object.is_identified(), object.samples());
        for place in object.places.values() {
            assert!(place.issued <= place.samples, "more samples issued than were taken");
            let _ = place.waiting();
        }
    }
}

/// One of each kind.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let json = br#"{"rocprofiler-sdk-tool":[{"metadata":{"pid":1},
"strings":{"pc_sample_instructions":["s_waitcnt vmcnt(0)"]},
"code_objects":[{"code_object_id":1,"uri":"file:///app#offset=4096&size=512","load_size":512}],
"kernel_symbols":[{"code_object_id":1,"kernel_name":"k.kd"}],
"buffer_records":{"pc_sample_host_trap":[{"record":{"pc":{"code_object_id":1,"code_object_offset":64}},"inst_index":0}],
"pc_sample_stochastic":[{"record":{"pc":{"code_object_id":1,"code_object_offset":64},"wave_issued":0,
"snapshot":{"stall_reason":"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT",
"arb_state_issue_valu":1,"arb_state_stall_valu":0}},"inst_index":0}]}}]}"#;
    let trace = b"CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source
1,4096,s_endpgm,2,32,0,0,
1,4100,\"; k\",0,0,0,0,a.hip:7
";
    let table = b"Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,Correlation_Id
1,2,3,s_endpgm,a.hip:7,4
";
    let stochastic = b"Dispatch_Id,Instruction,Instruction_Comment,Wave_Issued_Instruction,Stall_Reason
1,s_nop 0,a.hip:7,0,WAITCNT
1,s_nop 0,a.hip:8,1,NONE
";
    let viewer =
        br#"{"header":"ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle","version":"3.0.0",
"code":[["; k",0,0,"",1,4096,0,0,0,0],["s_endpgm",0,1,"a.hip:7",1,4096,2,32,8,0]]}"#;
    vec![json.to_vec(), trace.to_vec(), table.to_vec(), stochastic.to_vec(), viewer.to_vec()]
}
