//! Kernels and functions before they are analysed: what samples are matched with.

use std::ops::Range;

use crate::body::Code;
use wavetap_base::error::Result;

/// How waves come into a kernel, and whether all of them come out of what it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries {
    /// Whether what goes into a call comes out of it: all that may be called is known, and none of it ends the wave.
    pub flows: bool,
    /// Where waves may begin instead of at the entry, if they may begin elsewhere.
    pub also_begins: Option<u64>,
}

impl Entries {
    /// Waves begin at the entry, and all calls return.
    pub const PLAIN: Entries = Entries { flows: true, also_begins: None };
}

/// A kernel or function of a code object. To look at its text costs little; its [`Code`] is made when it is sliced.
pub trait Function {
    /// Mangled name.
    fn name(&self) -> &str;

    /// Whether waves begin here; else it is called.
    fn is_kernel(&self) -> bool;

    /// The processor as its vendor names it.
    fn target(&self) -> &str;

    /// The lowest and the highest address, the latter exclusive.
    fn span(&self) -> Range<u64>;

    /// The addresses of its instructions, ascending.
    fn addresses(&self) -> Vec<u64>;

    /// The instruction that begins at this address as printed.
    fn text(&self, address: u64) -> Option<String>;

    /// How waves come into it.
    fn entries(&self) -> Entries {
        Entries::PLAIN
    }

    /// Hands its code to `then`, once.
    ///
    /// # Errors
    /// If the code cannot be built: [`crate::CodeBuilder::build`].
    fn with_code(&self, then: &mut dyn FnMut(&Code<'_>)) -> Result<()>;
}

/// Code that is there already.
impl Function for Code<'_> {
    fn name(&self) -> &str {
        self.name()
    }

    fn is_kernel(&self) -> bool {
        self.is_kernel()
    }

    fn target(&self) -> &str {
        &self.properties().target
    }

    fn span(&self) -> Range<u64> {
        self.span()
    }

    fn addresses(&self) -> Vec<u64> {
        self.instructions().iter().map(|inst| inst.address).collect()
    }

    fn text(&self, address: u64) -> Option<String> {
        self.at(address).map(|id| self.inst(id).text.to_string())
    }

    fn with_code(&self, then: &mut dyn FnMut(&Code<'_>)) -> Result<()> {
        then(self);
        Ok(())
    }
}

impl<F: Function + ?Sized> Function for &F {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn is_kernel(&self) -> bool {
        (**self).is_kernel()
    }

    fn target(&self) -> &str {
        (**self).target()
    }

    fn span(&self) -> Range<u64> {
        (**self).span()
    }

    fn addresses(&self) -> Vec<u64> {
        (**self).addresses()
    }

    fn text(&self, address: u64) -> Option<String> {
        (**self).text(address)
    }

    fn entries(&self) -> Entries {
        (**self).entries()
    }

    fn with_code(&self, then: &mut dyn FnMut(&Code<'_>)) -> Result<()> {
        (**self).with_code(then)
    }
}
