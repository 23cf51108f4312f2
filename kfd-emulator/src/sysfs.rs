//! The files by which programs find the GPUs and read what they are: the tree of `sysfs` and the folder of device
//! files, as far as the emulated driver has them. What it does not have (temperatures, clocks, power, load) has no
//! file.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use wavetap_amdgpu::Target;

use crate::gpu::Gpu;
use crate::memory::VRAM;
use crate::nodes::Node;
use crate::{ip_blocks, topology};

/// Where the topology is.
pub(crate) const TOPOLOGY: &str = "sys/devices/virtual/kfd/kfd/topology";

/// AMD's number as a vendor of PCI devices.
const VENDOR: u32 = 0x1002;

/// A GPU's address on the PCI bus, which the topology has as `location_id`.
fn address(gpu: Gpu) -> String {
    format!("0000:{:02x}:00.0", topology::bus(gpu))
}

/// The folder of a GPU.
fn device(gpu: Gpu) -> String {
    format!("/sys/devices/pci0000:00/{}", address(gpu))
}

/// Folders that are of these GPUs alone, in folders that also have other devices.
pub(crate) fn folders(gpus: u32) -> impl Iterator<Item = String> {
    let nodes = |gpu| [Node::Card(gpu), Node::Render(gpu)].map(char_device);
    let of = move |gpu| [device(gpu), format!("/sys/bus/pci/devices/{}", address(gpu))].into_iter().chain(nodes(gpu));
    Gpu::all(gpus).flat_map(of).chain([char_device(Node::Kfd)])
}

/// The link by which a device is found by its number.
fn char_device(node: Node) -> String {
    let (major, minor) = node.number();
    format!("/sys/dev/char/{major}:{minor}")
}

/// What the kernel puts into the folder of a GPU that is memory in use.
pub(crate) const USED: &str = "mem_info_vram_used";
const VISIBLE_USED: &str = "mem_info_vis_vram_used";

/// The GPU of which a file says how much memory is in use.
pub(crate) fn used_memory(file: &[u8], gpus: u32) -> Option<Gpu> {
    let (folder, name) = file.split_at(file.iter().rposition(|byte| *byte == b'/')?);
    if ![USED, VISIBLE_USED].iter().any(|known| known.as_bytes() == &name[1..]) {
        return None;
    }
    let named = |gpu: &Gpu| {
        let link = |class: &str| format!("/sys/class/drm/{class}/device");
        let links = [link(&format!("card{}", gpu.number())), link(&format!("renderD{}", gpu.render_minor()))];
        let all = links.into_iter().chain([device(*gpu), format!("/sys/bus/pci/devices/{}", address(*gpu))]);
        all.into_iter().any(|path| path.as_bytes() == folder)
    };
    Gpu::all(gpus).find(named)
}

/// Writes how much of a GPU's memory is in use.
pub(crate) fn write_used(root: &Path, gpu: Gpu, used: u64) -> io::Result<()> {
    let folder = root.join(&device(gpu)[1..]);
    for name in [USED, VISIBLE_USED] {
        // In one step: others may be reading.
        let written = folder.join(format!(".{name}.{}", std::process::id()));
        fs::write(&written, format!("{used}\n"))?;
        fs::rename(written, folder.join(name))?;
    }
    Ok(())
}

/// Files of a folder that stands for `/`.
struct Tree<'r>(&'r Path);

impl Tree<'_> {
    fn folder(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.0.join(path.trim_start_matches('/')))
    }

    fn file(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap_or(self.0))?;
        fs::write(path, text)
    }

    /// A link to a folder or file, both from `/` on; it is relative, as those of `sysfs` are.
    fn link(&self, path: &str, to: &str) -> io::Result<()> {
        let at = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(at.parent().unwrap_or(self.0))?;
        let (from, to): (Vec<_>, Vec<_>) = (path.split('/').skip(1).collect(), to.split('/').skip(1).collect());
        let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
        let up = vec![".."; from.len() - common - 1];
        symlink([&up[..], &to[common..]].concat().join("/"), at)
    }
}

/// Writes the files of a machine with so many GPUs into a folder that stands for `/`.
pub(crate) fn write(root: &Path, target: Target, gpus: u32, compute_units: u32) -> io::Result<()> {
    let tree = Tree(root);
    topology::write(&root.join(TOPOLOGY), target, gpus, compute_units)?;
    tree.link("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd")?;
    tree.link("/sys/devices/virtual/kfd/kfd/subsystem", "/sys/class/kfd")?;
    node(&tree, Node::Kfd, "/sys/devices/virtual/kfd/kfd", "DEVNAME=kfd\n")?;
    tree.file("/sys/module/amdgpu/initstate", "live\n")?;
    tree.folder("/sys/module/amdgpu/holders")?;
    tree.file("/proc/modules", &modules())?;
    tree.folder("/sys/bus/pci/drivers/amdgpu")?;
    tree.link("/sys/module/amdgpu/drivers/pci:amdgpu", "/sys/bus/pci/drivers/amdgpu")?;
    tree.link("/sys/bus/pci/drivers/amdgpu/module", "/sys/module/amdgpu")?;
    // So many interfaces have the files of the graphics driver's class (`drm.rs`).
    tree.file("/sys/class/drm/version", "drm 1.1.0 20060810\n")?;
    Gpu::all(gpus).try_for_each(|gpu| of_gpu(&tree, gpu, target))
}

/// A device file, and its folder.
fn node(tree: &Tree, node: Node, folder: &str, more: &str) -> io::Result<()> {
    let (major, minor) = node.number();
    tree.file(&node.path(), "")?;
    tree.file(&format!("{folder}/dev"), &format!("{major}:{minor}\n"))?;
    tree.file(&format!("{folder}/uevent"), &format!("MAJOR={major}\nMINOR={minor}\n{more}"))?;
    tree.link(&char_device(node), folder)
}

fn of_gpu(tree: &Tree, gpu: Gpu, target: Target) -> io::Result<()> {
    let (folder, address) = (device(gpu), address(gpu));
    let id = topology::device_id(target);
    let file = |name: &str, text: &str| tree.file(&format!("{folder}/{name}"), &format!("{text}\n"));
    file("vendor", &format!("{VENDOR:#06x}"))?;
    file("device", &format!("{id:#06x}"))?;
    // There is none; but without the file rocm-smi takes the card for one of another driver.
    file("vbios_version", "")?;
    // It belongs to no node of the host's memory.
    file("numa_node", "-1")?;
    file("mem_info_vram_total", &VRAM.to_string())?;
    file("mem_info_vis_vram_total", &VRAM.to_string())?;
    write_used(tree.0, gpu, 0)?;
    file("unique_id", &format!("{:016x}", topology::unique_id(gpu)))?;
    tree.file(
        &format!("{folder}/uevent"),
        &format!("DRIVER=amdgpu\nPCI_ID={VENDOR:04X}:{id:04X}\nPCI_SLOT_NAME={address}\n"),
    )?;
    tree.link(&format!("{folder}/driver"), "/sys/bus/pci/drivers/amdgpu")?;
    tree.link(&format!("{folder}/subsystem"), "/sys/bus/pci")?;
    tree.link(&format!("/sys/bus/pci/drivers/amdgpu/{address}"), &folder)?;
    tree.link(&format!("/sys/bus/pci/devices/{address}"), &folder)?;
    for device in [Node::Card(gpu), Node::Render(gpu)] {
        let path = device.path();
        let name = path.trim_start_matches("/dev/dri/");
        let at = format!("{folder}/drm/{name}");
        node(tree, device, &at, &format!("DEVNAME=dri/{name}\nDEVTYPE=drm_minor\n"))?;
        tree.link(&format!("{at}/device"), &folder)?;
        tree.link(&format!("{at}/subsystem"), "/sys/class/drm")?;
        tree.link(&format!("/sys/class/drm/{name}"), &at)?;
    }
    for block in ip_blocks::of(target) {
        let at = format!("{folder}/ip_discovery/die/0/{}/0", block.hardware_id);
        let number = |name: &str, value: u32| tree.file(&format!("{at}/{name}"), &format!("{value}\n"));
        number("hw_id", block.hardware_id)?;
        number("num_instance", 0)?;
        number("major", block.version[0])?;
        number("minor", block.version[1])?;
        number("revision", block.version[2])?;
        let named = format!("{folder}/ip_discovery/die/0/{}", block.name);
        tree.link(&named, &format!("{folder}/ip_discovery/die/0/{}", block.hardware_id))?;
    }
    Ok(())
}

/// The kernel's modules, with the graphics driver.
fn modules() -> String {
    let mut text = fs::read_to_string("/proc/modules").unwrap_or_default();
    if !text.lines().any(|line| line.starts_with("amdgpu ")) {
        // Size and users are not known.
        text.push_str("amdgpu 0 0 - Live 0x0000000000000000\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(target: &str, gpus: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), Target::by_name(target).expect("a target"), gpus, 104).expect("files");
        folder
    }

    #[test]
    fn links_lead_to_the_gpus_folder() {
        let root = machine("gfx942", 2);
        let read =
            |path: &str| fs::read_to_string(root.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        for way in [
            "class/drm/card1/device",
            "class/drm/renderD129/device",
            "bus/pci/devices/0000:04:00.0",
            "dev/char/226:1/device",
        ] {
            assert_eq!(read(&format!("sys/{way}/vendor")), "0x1002\n", "{way}");
            assert!(read(&format!("sys/{way}/uevent")).ends_with("PCI_SLOT_NAME=0000:04:00.0\n"), "{way}");
        }
        assert_eq!(read("sys/class/kfd/kfd/topology/nodes/2/gpu_id"), "3\n");
        assert_eq!(read("sys/class/drm/renderD128/device/ip_discovery/die/0/GC/0/major"), "9\n");
        let link = fs::read_link(root.path().join("sys/class/drm/card0")).expect("a link");
        assert_eq!(link, Path::new("../../devices/pci0000:00/0000:03:00.0/drm/card0"));
        let driver = fs::canonicalize(root.path().join("sys/class/drm/card0/device/driver")).expect("a folder");
        assert!(driver.ends_with("sys/bus/pci/drivers/amdgpu"), "{driver:?}");
    }

    /// Nothing of a GPU's state that is not known.
    #[test]
    fn what_the_emulator_does_not_have_has_no_file() {
        let root = machine("gfx90a", 1);
        let device = root.path().join("sys/class/drm/card0/device");
        for name in ["hwmon", "gpu_busy_percent", "pp_dpm_sclk", "ip_discovery", "current_link_speed"] {
            assert!(!device.join(name).exists(), "{name}");
        }
    }

    #[test]
    fn used_memory_is_found_by_each_of_its_paths() {
        let gpus: Vec<Gpu> = Gpu::all(2).collect();
        for (path, gpu) in [
            ("/sys/class/drm/card1/device/mem_info_vram_used", Some(gpus[1])),
            ("/sys/class/drm/renderD128/device/mem_info_vis_vram_used", Some(gpus[0])),
            ("/sys/devices/pci0000:00/0000:04:00.0/mem_info_vram_used", Some(gpus[1])),
            ("/sys/class/drm/card0/device/mem_info_vram_total", None),
        ] {
            assert_eq!(used_memory(path.as_bytes(), 2), gpu, "{path}");
        }
    }
}
