//! The emulated GPUs of this process: equal ones, each with memory and queues of its own.

/// Most GPUs: as many as a large machine has.
pub(crate) const MOST: u32 = 16;

/// By which number the driver knows the first GPU; the others follow.
const FIRST_ID: u32 = 2;

/// The minor number of the first GPU's render node; the others follow.
const FIRST_RENDER_MINOR: u32 = 128;

/// The node of the first GPU in the topology: the host is the one before.
const FIRST_NODE: u32 = 1;

/// One of them, by its number from 0, in which HIP has them, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gpu(u32);

impl Gpu {
    /// The GPUs of a process that has so many.
    pub(crate) fn all(count: u32) -> impl Iterator<Item = Gpu> {
        (0..count.min(MOST)).map(Gpu)
    }

    /// That which the driver knows by this number, of so many.
    pub(crate) fn by_id(id: u32, count: u32) -> Option<Gpu> {
        Self::all(count).find(|gpu| gpu.id() == id)
    }

    /// That of a render node, of so many.
    pub(crate) fn by_render_minor(minor: u32, count: u32) -> Option<Gpu> {
        Self::all(count).find(|gpu| gpu.render_minor() == minor)
    }

    /// Its number, from 0.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// Its place in lists of all.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// By which number the driver knows it.
    pub(crate) fn id(self) -> u32 {
        FIRST_ID + self.0
    }

    /// The minor number of its render node.
    pub(crate) fn render_minor(self) -> u32 {
        FIRST_RENDER_MINOR + self.0
    }

    /// Its node in the topology.
    pub(crate) fn node(self) -> u32 {
        FIRST_NODE + self.0
    }
}

/// Some of the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Gpus(u32);

impl Gpus {
    /// Adds one.
    pub(crate) fn insert(&mut self, gpu: Gpu) {
        self.0 |= 1 << gpu.0;
    }

    /// Those that are also in `others`.
    pub(crate) fn intersection(self, others: Gpus) -> Gpus {
        Gpus(self.0 & others.0)
    }

    /// Those that are not in `others`.
    pub(crate) fn without(self, others: Gpus) -> Gpus {
        Gpus(self.0 & !others.0)
    }

    /// Those that are in one or the other.
    pub(crate) fn union(self, others: Gpus) -> Gpus {
        Gpus(self.0 | others.0)
    }

    /// One after the other.
    pub(crate) fn iter(self) -> impl Iterator<Item = Gpu> {
        Gpu::all(MOST).filter(move |gpu| self.0 & 1 << gpu.0 != 0)
    }
}

impl FromIterator<Gpu> for Gpus {
    fn from_iter<I: IntoIterator<Item = Gpu>>(gpus: I) -> Self {
        let mut all = Gpus::default();
        gpus.into_iter().for_each(|gpu| all.insert(gpu));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_the_gpu() {
        for gpu in Gpu::all(MOST) {
            assert_eq!(Gpu::by_id(gpu.id(), MOST), Some(gpu));
            assert_eq!(Gpu::by_render_minor(gpu.render_minor(), MOST), Some(gpu));
        }
        assert_eq!(Gpu::by_id(Gpu(1).id(), 1), None, "there is one");
        assert_eq!((Gpu::by_id(0, MOST), Gpu::by_render_minor(0, MOST)), (None, None));
    }

    #[test]
    fn sets_are_what_was_put_into_them() {
        let some = |numbers: &[u32]| numbers.iter().copied().map(Gpu).collect::<Gpus>();
        assert_eq!(some(&[0, 3]).union(some(&[1])).iter().map(Gpu::number).collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(some(&[0, 3]).without(some(&[3, 4])), some(&[0]));
        assert_eq!(some(&[0, 3]).intersection(some(&[3, 4])), some(&[3]));
    }
}
