//! Signals that end the command: while the application runs they are passed on to it, for there is a report to write;
//! at any other time they end the command as they would without a handler, after its temporary files are removed.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::exfiltrator::origin::{Origin, WithOrigin};
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::Cause;

const SIGNALS: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

/// What a signal has to know.
#[derive(Debug, Default)]
struct State {
    /// Files and folders that must not outlive the command.
    temporary: Vec<PathBuf>,
    /// The application, while it runs.
    application: Option<OwnedFd>,
    /// The handler, and the signals that the command was started with to be ignored.
    handler: Option<(Handle, Vec<i32>)>,
    /// Whether signals are held.
    holds: bool,
    /// The first one that arrived while they are.
    held: Option<i32>,
}

fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file or folder if a signal ends the command, should it be there then.
pub fn remove_at_end(path: &Path) {
    let mut state = state();
    state.temporary.push(path.to_owned());
    // Without a handler only this is missing.
    let _ = handle_signals(&mut state);
}

/// While this exists, the first signal that would end the command is noted, besides being passed on to the application
/// that runs, or that is started next.
#[derive(Debug)]
pub struct Held(());

impl Held {
    /// The signal that has arrived.
    pub fn arrived(&self) -> Option<i32> {
        state().held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = state();
        (state.holds, state.held) = (false, None);
    }
}

/// From now on signals do not end the command: who runs an application several times ends by itself.
pub fn hold() -> std::io::Result<Held> {
    let mut state = state();
    handle_signals(&mut state)?;
    (state.holds, state.held) = (true, None);
    Ok(Held(()))
}

/// The application has ended: from now on signals end the command.
pub fn ended() {
    state().application = None;
}

/// Starts the application, and passes on to it what would end the command, until [`ended`]: Ctrl-C from the terminal
/// goes to both.
pub fn start(command: &mut Command) -> std::io::Result<Child> {
    // A signal waits until it can be passed on.
    let mut state = state();
    let child = command.spawn()?;
    state.application = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
    handle_signals(&mut state)?;
    // The application may not ignore what the command does.
    if let Some((handler, ignored)) = &state.handler {
        ignored.iter().try_for_each(|signal| handler.add_signal(*signal))?;
    }
    if let (Some(signal), Some(application)) = (state.held, &state.application) {
        // It arrived when none ran, and this one may have ended already.
        let _ = pidfd_send_signal(application, passed_on(signal));
    }
    Ok(child)
}

/// Begins to handle signals, but for those that are ignored: they have to be for the application, too.
fn handle_signals(state: &mut State) -> std::io::Result<()> {
    if state.handler.is_some() {
        return Ok(());
    }
    let (ignored, ending): (Vec<i32>, Vec<i32>) = SIGNALS.into_iter().partition(|signal| is_ignored(*signal));
    let mut signals = SignalsInfo::<WithOrigin>::new(ending)?;
    state.handler = Some((signals.handle(), ignored));
    std::thread::spawn(move || signals.forever().for_each(|origin| arrived(&origin)));
    Ok(())
}

/// Whether a signal is ignored, by what the kernel says of the process.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn passed_on(signal: i32) -> Signal {
    match signal {
        SIGTERM => Signal::TERM,
        SIGHUP => Signal::HUP,
        SIGINT => Signal::INT,
        _ => Signal::QUIT,
    }
}

fn arrived(origin: &Origin) {
    let mut state = state();
    let is_ignored = state.handler.as_ref().is_some_and(|(_, ignored)| ignored.contains(&origin.signal));
    if state.holds && !is_ignored {
        state.held.get_or_insert(origin.signal);
    }
    if let Some(application) = &state.application {
        // The terminal has sent these to the application, too.
        let by_terminal = matches!(origin.signal, SIGINT | SIGQUIT) && matches!(origin.cause, Cause::Kernel);
        if !by_terminal {
            // It may have ended in between.
            let _ = pidfd_send_signal(application, passed_on(origin.signal));
        }
        return;
    }
    if is_ignored || state.holds {
        return;
    }
    for path in &state.temporary {
        // Most are gone already.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    // What was written meanwhile.
    for folder in state.temporary.iter().filter(|path| path.is_dir()) {
        let _ = std::fs::remove_dir_all(folder);
    }
    let _ = emulate_default_handler(origin.signal);
}
