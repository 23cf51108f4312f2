//! Pages of the program that it should not use yet: what it does there all the same is remembered.
//!
//! The pages are protected. The first access of the program's own code to one is noted and ends its protection, so that
//! the program goes on as if nothing had been there. What this library does itself is not noted.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::raw;

/// The size of a page.
pub(crate) const PAGE: usize = 4096;

/// Accesses that are remembered until they are looked at.
const MOST: usize = 1000;

/// What the program may not do with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Write it.
    Write,
    /// Read or write it.
    Any,
}

/// An access of the program's own code.
#[derive(Debug, Clone)]
pub(crate) struct Touch {
    pub(crate) address: u64,
    pub(crate) write: bool,
    /// Where it is, and to where the functions return that have called it.
    pub(crate) stack: Vec<usize>,
}

/// What is protected, and what was done there.
struct Pages {
    protected: BTreeMap<usize, Use>,
    touches: Vec<Touch>,
    /// What handled such accesses before, once this library does.
    before: Option<libc::sigaction>,
}

/// A thread that holds this lock accesses no protected memory.
static PAGES: Mutex<Pages> = Mutex::new(Pages { protected: BTreeMap::new(), touches: Vec::new(), before: None });

fn pages() -> MutexGuard<'static, Pages> {
    PAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Protects these pages and no others. False if the program handles such accesses itself, so that nothing is noted.
pub(crate) fn protect(wanted: &BTreeMap<usize, Use>) -> bool {
    let mut pages = pages();
    let can = wanted.is_empty() || handle(&mut pages);
    let none = BTreeMap::new();
    let wanted = if can { wanted } else { &none };
    let ended: Vec<usize> = pages.protected.keys().filter(|page| !wanted.contains_key(page)).copied().collect();
    set_all(ended.into_iter().map(|page| (page, libc::PROT_READ | libc::PROT_WRITE)));
    let begun = wanted.iter().filter(|(page, kind)| pages.protected.get(page) != Some(kind));
    set_all(begun.map(|(page, kind)| (*page, if *kind == Use::Any { libc::PROT_NONE } else { libc::PROT_READ })));
    pages.protected.clone_from(wanted);
    can
}

/// Whether any page is protected, or anything was noted.
pub(crate) fn is_used() -> bool {
    let pages = pages();
    !pages.protected.is_empty() || !pages.touches.is_empty()
}

/// Protects nothing any more, and forgets what was done.
pub(crate) fn forget() {
    protect(&BTreeMap::new());
    take();
}

/// What the program has done since this was last asked.
pub(crate) fn take() -> Vec<Touch> {
    std::mem::take(&mut pages().touches)
}

/// Sets the protection of pages, several that follow each other at once.
fn set_all(pages: impl Iterator<Item = (usize, c_int)>) {
    let mut run: Option<(usize, usize, c_int)> = None;
    for (page, protection) in pages {
        match &mut run {
            Some((_, end, same)) if *end == page && *same == protection => *end += PAGE,
            _ => {
                run.take().into_iter().for_each(set);
                run = Some((page, page + PAGE, protection));
            }
        }
    }
    run.into_iter().for_each(set);
}

fn set((start, end, protection): (usize, usize, c_int)) {
    // SAFETY: pages that this library has allocated for the program, or that it has freed: there the call fails.
    unsafe { libc::mprotect(start as *mut c_void, end - start, protection) };
}

/// Handles accesses to protected pages from now on; false if the program has taken that over.
fn handle(pages: &mut Pages) -> bool {
    // SAFETY: all zeros is an action, and the C library fills it in.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: it only asks for the action.
    unsafe { libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut now) };
    let own = on_fault as *const () as usize;
    if now.sa_sigaction == own {
        return true;
    }
    if pages.before.is_some() {
        return false;
    }
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = own;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | (now.sa_flags & libc::SA_ONSTACK);
    pages.before = Some(now);
    // SAFETY: `on_fault` has the type that SA_SIGINFO asks for.
    unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()) == 0 }
}

/// An access that the system does not allow. The signal is that of the instruction which this thread executes, so it
/// holds none of the locks that are taken here.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives what SA_SIGINFO promises.
    let address = unsafe { (*info).si_addr() } as usize;
    let mut pages = pages();
    let page = address & !(PAGE - 1);
    let Some(kind) = pages.protected.remove(&page) else {
        let before = pages.before;
        drop(pages);
        return pass_on(before, signal, info, context);
    };
    set((page, page + PAGE, libc::PROT_READ | libc::PROT_WRITE));
    // SAFETY: as above.
    let (at, write) = unsafe { place_of(&*context.cast::<libc::ucontext_t>()) };
    let stack = raw::return_addresses();
    let known = stack.iter().position(|frame| *frame == at);
    let stack = known.map_or_else(|| vec![at], |first| stack[first..].to_vec());
    if !stack.iter().any(|frame| raw::is_own(*frame)) && pages.touches.len() < MOST {
        let write = write.unwrap_or(kind == Use::Write);
        pages.touches.push(Touch { address: address as u64, write, stack });
    }
}

/// The instruction, and whether it writes if that is known.
#[cfg(target_arch = "x86_64")]
fn place_of(context: &libc::ucontext_t) -> (usize, Option<bool>) {
    let registers = &context.uc_mcontext.gregs;
    // Bit 1 of the error code.
    (registers[libc::REG_RIP as usize] as usize, Some(registers[libc::REG_ERR as usize] & 2 != 0))
}

#[cfg(target_arch = "aarch64")]
fn place_of(context: &libc::ucontext_t) -> (usize, Option<bool>) {
    (context.uc_mcontext.pc as usize, None)
}

/// Lets the program's own handler have a signal, or the system end the program.
fn pass_on(before: Option<libc::sigaction>, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = before else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: it restores what was; the instruction is executed again, and the system acts on it.
            unsafe { libc::sigaction(signal, &raw const before, std::ptr::null_mut()) };
        }
        function if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the program gave a function of this type.
            let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(function) };
            function(signal, info, context);
        }
        function => {
            // SAFETY: as above, without SA_SIGINFO.
            let function: extern "C" fn(c_int) = unsafe { std::mem::transmute(function) };
            function(signal);
        }
    }
}
