//! Where what was collected goes: into the journal of the process, or into files that are written as a whole.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wavetap::collect::journals::{Changes, replace};
use wavetap::collect::selected::unseen_ranges;
use wavetap::error::Result;
use wavetap::profile::fidelity::FidelityProfile;
use wavetap::profile::time::TimeProfile;
use wavetap::stderr_line;

use crate::check::Check;
use crate::lock::{WAITING, try_runtime};
use crate::messages::complain;
use crate::runtime::Runtime;

/// Files of modelled time are rewritten at most this often while kernels run, so that many small launches do not wait
/// for them.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);
/// Writing them takes at most one part in so many of the time.
const WRITE_SHARE: u32 = 10;

impl Runtime {
    /// Writes the files that are written as a whole, when it is time: never for more than a small part of the time.
    pub(crate) fn write_now_and_then(&mut self) {
        let interval = WRITE_INTERVAL.max(self.collection.writing * WRITE_SHARE);
        if self.collection.written.is_none_or(|last| last.elapsed() >= interval) {
            let start = Instant::now();
            if let Err(error) = self.write_time() {
                // The program has nothing to do with it and goes on.
                complain("the counts could not be written", &error);
            }
            (self.collection.written, self.collection.writing) = (Some(Instant::now()), start.elapsed());
        }
    }

    /// Writes the files that were asked for, of a run that ends here.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.write_profiles()?;
        self.write_time()
    }

    fn write_profiles(&self) -> Result<()> {
        if let Some(path) = &self.settings.profile {
            replace(path, &self.collection.session.collector().profile().to_json()?)?;
        }
        if let (Some(path), Some(tracer)) = (&self.settings.trace, &self.collection.tracer) {
            replace(path, &tracer.profile().to_json()?)?;
        }
        Ok(())
    }

    /// Writes modelled time and its samples.
    pub(crate) fn write_time(&mut self) -> Result<()> {
        let Some(timer) = &self.collection.timer else { return Ok(()) };
        if let Some(path) = &self.settings.time {
            replace(path, &timer.time().to_json()?)?;
        }
        let Some(samples) = timer.samples() else { return Ok(()) };
        match (&self.settings.samples, self.collection.journals.of_process()) {
            (Some(path), _) => replace(path, &samples.to_json()?),
            (None, Some(journal)) => {
                let written = journal.beside("samples").and_then(|path| replace(&path, &samples.to_json()?));
                if let Err(error) = written {
                    journal.fail(&error);
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Writes the files for the last time.
    pub(crate) fn finish(&mut self) {
        if self.collection.process != std::process::id() {
            // A child of `fork` that did nothing: what there is is the parent's.
            return;
        }
        if self.dispatches > 0
            && let Some(unseen) = unseen_ranges()
        {
            stderr_line!("wavetap: {unseen}");
        }
        self.findings.finish(&self.settings.findings);
        self.begin_use();
        self.check.iter_mut().for_each(Check::finish);
        if let Some(captures) = &self.captures {
            captures.finish();
        }
        let mut result = Ok(());
        if let (Some(path), Some(tracer)) = (&self.settings.trace, &mut self.collection.tracer) {
            tracer.finish();
            result = result.and(tracer.profile().to_json().and_then(|json| replace(path, &json)));
        }
        if let (Some(path), Some(origins)) = (&self.settings.origins, &self.collection.origins) {
            result = result.and(origins.file().to_json().and_then(|json| replace(path, &json)));
        }
        if let Some(timer) = &mut self.collection.timer {
            timer.finish();
        }
        result = result.and(self.write_time());
        if let Some(journal) = self.collection.journals.of_process() {
            // What has dispatched nothing has collected something, too: nothing.
            let counters =
                self.settings.wants_counters().then(|| (self.collection.session.collector_mut().profile_mut(), None));
            let trace = self.collection.tracer.as_mut().map(|tracer| (tracer.profile_mut(), None));
            let empty = self.collection.timer.as_ref().map(|timer| TimeProfile::new(timer.time().latencies.clone()));
            let time = empty.as_ref().zip(self.collection.timer.as_ref()).map(|(empty, timer)| (empty, timer.time()));
            let nothing = FidelityProfile::default();
            let fidelity = self.collection.fidelity.as_ref().map(|fidelity| (&nothing, fidelity.all()));
            journal.add(Changes { counters, trace, time, fidelity });
            journal.end();
        }
        if let Some(path) = &self.settings.profile {
            result = result.and(self.collection.session.finish().to_json().and_then(|json| replace(path, &json)));
        }
        if let Err(error) = result {
            complain("the counts could not be written", &error);
        }
    }
}

/// How often, and after which time, it is tried to write the files when the program ends.
const MOST_TRIES: u32 = 1000;
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// Runs when the program exits or unloads this library, after its own exit handlers.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        // What runs in the background gives the lock up soon. A thread that is inside a launch, or this one if a signal
        // stopped it there, does not: what had been collected was written as it went.
        WAITING.fetch_add(1, Ordering::Relaxed);
        for _ in 0..MOST_TRIES {
            if let Some(mut runtime) = try_runtime() {
                runtime.finish();
                return;
            }
            std::thread::sleep(TRY_AGAIN);
        }
    }
    at_exit
};
