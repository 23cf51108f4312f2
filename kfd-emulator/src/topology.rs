//! The files in which the kernel describes the machine: a CPU node, and one for each GPU.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use wavetap_amdgpu::{MachineFact, Target};

use crate::gpu::Gpu;
use crate::memory::VRAM;

/// `capability`: 64-bit doorbells (2 in bits 12 and 13); the RAM of registers and LDS has error correction (bit 26).
const DOORBELLS_64: u32 = 2 << 12;
const SRAMECC: u32 = 1 << 26;

/// Megahertz of the compute units' clock.
pub(crate) const CLOCK_MHZ: u32 = 1700;

/// `type` of a cache: of data, of a GPU.
const GPU_DATA_CACHE: u32 = 1 | 8;

/// `AMDGPU_FAMILY_*` of the graphics driver by the generation of the processor.
pub(crate) fn family(target: Target) -> Option<u32> {
    if !target.emulated() || version(target).is_none() {
        return None;
    }
    match target.generation() {
        9 => Some(141),
        10 => Some(143),
        11 => Some(145),
        12 => Some(152),
        _ => None,
    }
}

/// `gfx_target_version`: major version, two digits of the minor one, two of the stepping. None for what is no
/// processor, such as gfx11-generic.
fn version(target: Target) -> Option<u32> {
    let digits = target.name().strip_prefix("gfx")?;
    let (rest, stepping) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    let (major, minor) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
    let number = |text: &str, radix| u32::from_str_radix(text, radix).ok();
    Some(number(major, 10)? * 10_000 + number(minor, 16)? * 100 + number(stepping, 16)?)
}

/// PCI device id of a board with the processor, or with a similar one: the runtime looks up names by it.
pub(crate) fn device_id(target: Target) -> u32 {
    match target.name() {
        "gfx900" => 0x6863,
        "gfx906" => 0x66a1,
        "gfx908" => 0x738c,
        "gfx90a" => 0x7408,
        "gfx942" => 0x74a1,
        "gfx1010" => 0x7310,
        "gfx1030" => 0x73a3,
        "gfx1100" => 0x744c,
        "gfx1201" => 0x7550,
        _ => match target.generation() {
            9 => 0x6863,
            10 => 0x73a3,
            11 => 0x744c,
            _ => 0x7550,
        },
    }
}

/// The node of the host.
const HOST: u32 = 0;

/// Writes the files of a machine with so many GPUs into a folder.
pub(crate) fn write(folder: &Path, target: Target, gpus: u32, compute_units: u32) -> io::Result<()> {
    let file = |name: &str, text: &str| -> io::Result<()> {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)
    };
    file("generation_id", "1\n")?;
    file("system_properties", &lines(&[("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)]))?;
    file("nodes/0/gpu_id", "0\n")?;
    file("nodes/0/name", "\n")?;
    file("nodes/0/properties", &lines(&cpu(gpus)))?;
    file("nodes/0/mem_banks/0/properties", &bank(0, system_memory()))?;
    fs::create_dir_all(folder.join("nodes/0/caches"))?;
    for gpu in Gpu::all(gpus) {
        file(&format!("nodes/0/io_links/{}/properties", gpu.number()), &link(HOST, gpu.node()))?;
        let node = format!("nodes/{}", gpu.node());
        file(&format!("{node}/gpu_id"), &format!("{}\n", gpu.id()))?;
        file(&format!("{node}/name"), &format!("{}\n", target.name()))?;
        file(&format!("{node}/properties"), &lines(&properties(gpu, target, gpus, compute_units)))?;
        // Heap type 1: of the GPU, all of which the host can map.
        file(&format!("{node}/mem_banks/0/properties"), &bank(1, VRAM))?;
        // To the host, and to each other GPU.
        let others = Gpu::all(gpus).filter(|other| *other != gpu).map(Gpu::node);
        for (n, other) in std::iter::once(HOST).chain(others).enumerate() {
            file(&format!("{node}/io_links/{n}/properties"), &link(gpu.node(), other))?;
        }
        let l1 = (1, 16, 64);
        let l2 = (2, u64::from(target.machine(MachineFact::L2Bytes).typical) >> 10, 128);
        for (n, cache) in [l1, l2].into_iter().enumerate() {
            file(&format!("{node}/caches/{n}/properties"), &cache_file(cache))?;
        }
    }
    Ok(())
}

/// The bus of a GPU: from 3 on.
pub(crate) fn bus(gpu: Gpu) -> u32 {
    3 + gpu.number()
}

/// What tells a GPU from all others.
pub(crate) fn unique_id(gpu: Gpu) -> u64 {
    1 + u64::from(gpu.number())
}

/// A property in each line.
fn lines(properties: &[(&str, u64)]) -> String {
    properties.iter().fold(String::new(), |mut text, (name, value)| {
        // A string takes all that is written to it.
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

/// Bytes of memory that the machine has, as far as can be told.
fn system_memory() -> u64 {
    let read = || {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()?.checked_mul(1024)
    };
    read().unwrap_or(VRAM)
}

fn cpu(gpus: u32) -> Vec<(&'static str, u64)> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let mut all = vec![("cpu_cores_count", cores), ("mem_banks_count", 1), ("io_links_count", gpus.into())];
    let zero = ["simd_count", "caches_count", "p2p_links_count", "cpu_core_id_base", "simd_id_base"];
    all.extend(zero.map(|name| (name, 0)));
    let zero = ["max_waves_per_simd", "lds_size_in_kb", "gds_size_in_kb", "num_gws", "wave_front_size", "array_count"];
    all.extend(zero.map(|name| (name, 0)));
    let zero = ["simd_arrays_per_engine", "cu_per_simd_array", "simd_per_cu", "max_slots_scratch_cu"];
    all.extend(zero.map(|name| (name, 0)));
    let zero = ["gfx_target_version", "vendor_id", "device_id", "location_id", "domain", "drm_render_minor"];
    all.extend(zero.map(|name| (name, 0)));
    let zero = ["hive_id", "num_sdma_engines", "num_sdma_xgmi_engines", "num_sdma_queues_per_engine", "num_cp_queues"];
    all.extend(zero.map(|name| (name, 0)));
    all.push(("max_engine_clk_ccompute", 2500));
    all
}

fn properties(gpu: Gpu, target: Target, gpus: u32, compute_units: u32) -> Vec<(&'static str, u64)> {
    let units = u64::from(compute_units);
    let simds = u64::from(target.simds_per_cu());
    // As many shader arrays as a large GPU has, if they have equally many compute units.
    let arrays = [8, 4, 2].into_iter().find(|arrays| units.is_multiple_of(*arrays)).unwrap_or(1);
    let capability = DOORBELLS_64 | if target.supports_sramecc() { SRAMECC } else { 0 };
    vec![
        ("cpu_cores_count", 0),
        ("simd_count", units * simds),
        ("mem_banks_count", 1),
        ("caches_count", 2),
        ("io_links_count", gpus.into()),
        ("p2p_links_count", 0),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 0x8000_1000),
        ("max_waves_per_simd", target.max_waves_per_simd().into()),
        ("lds_size_in_kb", (target.lds_bytes() >> 10).into()),
        ("gds_size_in_kb", 0),
        ("num_gws", 64),
        ("wave_front_size", target.wave_size().into()),
        ("array_count", arrays),
        ("simd_arrays_per_engine", 1),
        ("cu_per_simd_array", units / arrays),
        ("simd_per_cu", simds),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", version(target).unwrap_or(0).into()),
        // AMD's.
        ("vendor_id", 0x1002),
        ("device_id", device_id(target).into()),
        ("location_id", u64::from(bus(gpu)) << 8),
        ("domain", 0),
        ("drm_render_minor", gpu.render_minor().into()),
        ("hive_id", 0),
        ("num_sdma_engines", 2),
        ("num_sdma_xgmi_engines", 0),
        ("num_sdma_queues_per_engine", 8),
        ("num_cp_queues", 24),
        ("max_engine_clk_fcompute", CLOCK_MHZ.into()),
        ("local_mem_size", 0),
        ("fw_version", 68),
        ("capability", capability.into()),
        ("debug_prop", 0),
        ("sdma_fw_version", 8),
        ("unique_id", unique_id(gpu)),
        ("num_xcc", 1),
        ("family_id", family(target).unwrap_or(0).into()),
        ("max_engine_clk_ccompute", 2500),
    ]
}

fn bank(heap: u64, size: u64) -> String {
    let width = if heap == 0 { 64 } else { 4096 };
    lines(&[("heap_type", heap), ("size_in_bytes", size), ("flags", 0), ("width", width), ("mem_clk_max", 1600)])
}

fn link(from: u32, to: u32) -> String {
    lines(&[
        // PCI Express.
        ("type", 2),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from.into()),
        ("node_to", to.into()),
        ("weight", 20),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", 312),
        ("max_bandwidth", 32_000),
        ("recommended_transfer_size", 0),
        ("flags", 1),
    ])
}

fn cache_file((level, kilobytes, line): (u64, u64, u64)) -> String {
    lines(&[
        ("processor_id_low", 0x8000_1000),
        ("level", level),
        ("size", kilobytes),
        ("cache_line_size", line),
        ("cache_lines_per_tag", 1),
        ("association", 16),
        ("latency", 0),
        ("type", GPU_DATA_CACHE.into()),
        ("sibling_map", 1),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_names() {
        for (name, expected) in [("gfx90a", 90_010), ("gfx1030", 100_300), ("gfx942", 90_402), ("gfx1151", 110_501)] {
            let target = Target::by_name(name).expect("a target");
            assert_eq!(version(target), Some(expected), "{name}");
        }
        assert_eq!(version(Target::by_name("gfx11-generic").expect("a target")), None);
    }

    #[test]
    fn all_nodes_have_the_files_that_are_looked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), Target::by_name("gfx1100").expect("a target"), 2, 96).expect("files");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
        assert!(read("nodes/1/properties").contains("wave_front_size 32\n"));
        assert!(read("nodes/1/properties").contains("gfx_target_version 110000\n"));
        assert!(read("nodes/0/io_links/0/properties").contains("node_to 1\n"));
        assert!(read("nodes/1/caches/1/properties").contains("level 2\n"));
        for name in ["gpu_id", "properties", "io_links/1/properties"] {
            assert_ne!(read(&format!("nodes/1/{name}")), read(&format!("nodes/2/{name}")), "{name} differs");
        }
        assert!(read("nodes/2/io_links/1/properties").contains("node_from 2\nnode_to 1\n"));
    }
}
