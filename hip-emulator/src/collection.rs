//! What is collected.

use std::time::{Duration, Instant};

use wavetap::collect::collector::Collector;
use wavetap::collect::journals::Journals;
use wavetap::collect::selected::Selected;
use wavetap::collect::session::Session;
use wavetap::profile::file::{Backend, Origin};
use wavetap::profile::host::{HostActivity, HostOperation, LaunchSize};

use crate::fidelity::FidelityCollector;
use crate::images::Image;
use crate::kernarg::Shape;
use crate::origins::OriginCollector;
use crate::settings::Settings;
use crate::time::Timer;
use crate::trace::Tracer;
use crate::uncounted::Uncounted;

/// What is collected of the dispatches of one process, and when its files were written.
pub(crate) struct Collection {
    pub(crate) session: Session,
    pub(crate) selected: Selected,
    pub(crate) uncounted: Uncounted,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) origins: Option<OriginCollector>,
    pub(crate) timer: Option<Timer>,
    pub(crate) fidelity: Option<FidelityCollector>,
    pub(crate) journals: Journals,
    /// The process whose counts these are.
    pub(crate) process: u32,
    pub(crate) written: Option<Instant>,
    /// How long writing took then.
    pub(crate) writing: Duration,
}

impl Collection {
    pub(crate) fn new(settings: &Settings) -> Self {
        let session = Session::new(Collector::new(Backend::Emulator, settings.per_wave), settings.session);
        let origin = match (settings.wants_trace(), settings.wants_launches()) {
            (true, _) => Some(Origin::Trace),
            (false, true) => Some(Origin::Launches),
            (false, false) => None,
        };
        let tracer = origin.map(Tracer::new);
        let journals =
            Journals::new(settings.journal.as_deref(), settings.profile.as_deref(), settings.trace.as_deref());
        let origins = settings.origins.is_some().then(OriginCollector::default);
        let timer = settings.timing.as_ref().map(Timer::new);
        Collection {
            session,
            selected: settings.selected.clone(),
            uncounted: Uncounted::default(),
            tracer,
            origins,
            timer,
            fidelity: settings.collect.fidelity.then(FidelityCollector::default),
            journals,
            process: std::process::id(),
            written: None,
            writing: Duration::ZERO,
        }
    }
}

impl Collection {
    /// Whether the emulator's own numbers of dispatches are collected.
    pub(crate) fn looks_at_dispatches(&self) -> bool {
        self.tracer.is_some() || self.timer.is_some() || self.fidelity.is_some()
    }

    /// Whether the emulator is to count what each instruction does.
    pub(crate) fn traces(&self) -> bool {
        self.tracer.as_ref().is_some_and(Tracer::traces)
    }

    /// Records a copy or a fill that the program has the device do, where anything is collected that says so.
    pub(crate) fn host(&mut self, settings: &Settings, operation: HostOperation, bytes: u64) {
        self.hosts(settings, |host| host.add(operation, bytes));
    }

    /// The same of a launch.
    pub(crate) fn host_launch(&mut self, settings: &Settings, kernel: &str, shape: &Shape) {
        if let Some(size) = LaunchSize::of(&shape.launched()) {
            self.hosts(settings, |host| host.add_launch(kernel, size));
        }
    }

    fn hosts(&mut self, settings: &Settings, add: impl Fn(&mut HostActivity)) {
        if settings.wants_counters() {
            add(&mut self.session.collector_mut().profile_mut().host);
        }
        if let Some(tracer) = &mut self.tracer {
            add(&mut tracer.profile_mut().host);
        }
    }
    /// After `fork` the child has the parent's counts: it begins with none.
    pub(crate) fn follow_fork(&mut self, settings: &Settings, images: &[Option<Image>]) {
        if self.process == std::process::id() {
            return;
        }
        let fresh = Collection::new(settings);
        (self.tracer, self.origins, self.timer) = (fresh.tracer, fresh.origins, fresh.timer);
        self.fidelity = fresh.fidelity;
        (self.journals, self.process, self.written) = (fresh.journals, fresh.process, None);
        self.selected = fresh.selected;
        self.session.restart();
        if settings.wants_counters() {
            let loaded = images.iter().flatten().filter_map(|image| image.loaded.as_ref());
            loaded.for_each(|loaded| self.session.collector_mut().add_refused(loaded.refused()));
        }
    }
}
