//! The driver's device files.

use crate::gpu::Gpu;

/// Major number of graphics devices.
pub(crate) const DRM_MAJOR: u32 = 226;
/// A major number of those that the kernel gives to drivers without a fixed one (`CHRDEV_MAJOR_DYN_EXT_START`).
const KFD_MAJOR: u32 = 511;

/// A device file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// `/dev/kfd`.
    Kfd,
    /// `/dev/dri/cardN` of a GPU.
    Card(Gpu),
    /// `/dev/dri/renderDN` of a GPU.
    Render(Gpu),
}

impl Node {
    /// Major and minor number. The kernel gives the driver a free major number; graphics has 226.
    pub(crate) fn number(self) -> (u32, u32) {
        match self {
            Node::Kfd => (KFD_MAJOR, 0),
            Node::Card(gpu) => (DRM_MAJOR, gpu.number()),
            Node::Render(gpu) => (DRM_MAJOR, gpu.render_minor()),
        }
    }

    /// Its path.
    pub(crate) fn path(self) -> String {
        match self {
            Node::Kfd => "/dev/kfd".into(),
            Node::Card(gpu) => format!("/dev/dri/card{}", gpu.number()),
            Node::Render(gpu) => format!("/dev/dri/renderD{}", gpu.render_minor()),
        }
    }

    /// That of a path, with so many GPUs.
    pub(crate) fn of(path: &[u8], gpus: u32) -> Option<Node> {
        if path == b"/dev/kfd" {
            return Some(Node::Kfd);
        }
        let named = path.strip_prefix(b"/dev/dri/")?;
        Gpu::all(gpus)
            .flat_map(|gpu| [Node::Card(gpu), Node::Render(gpu)])
            .find(|node| node.path().as_bytes().ends_with(named) && node.path().len() == path.len())
    }

    /// Its GPU; none of the driver's own device.
    pub(crate) fn gpu(self) -> Option<Gpu> {
        match self {
            Node::Kfd => None,
            Node::Card(gpu) | Node::Render(gpu) => Some(gpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_files_are_those_of_the_gpus() {
        let second = Gpu::all(2).last().expect("a GPU");
        let of = |path: &str| Node::of(path.as_bytes(), 2);
        assert_eq!(of("/dev/kfd"), Some(Node::Kfd));
        assert_eq!(of("/dev/dri/card1"), Some(Node::Card(second)));
        assert_eq!(of("/dev/dri/renderD129"), Some(Node::Render(second)));
        assert_eq!((of("/dev/dri/renderD130"), of("/dev/dri/D129"), of("/dev/dri")), (None, None, None));
    }
}
