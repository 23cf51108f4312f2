//! The journal of a process: what it has collected, written as it is collected, so that nothing is lost however the
//! process ends.
//!
//! A file of a header and frames. The header is [`HEADER`] bytes: [`MAGIC`], one byte that says whether everything
//! could be written ([`FAILED`]), the version, and one byte that says whether more is to come ([`UNCOLLECTED`]). A
//! frame is the length of its payload (4 bytes, little endian), one byte that says what it is, and the payload. A frame
//! that is cut off at the end of the file is ignored: the process was killed while it wrote it.
//!
//! Totals are written as absolute numbers, so that a later frame of a kernel replaces an earlier one, and without what
//! does not change (names, sites), which was written when the kernel was first dispatched. Modelled time is written as
//! what each dispatch adds.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::accesses::DispatchAccesses;
use super::fidelity::FidelityProfile;
use super::file::json::{read_compact, read_kernel, write_compact, write_kernel};
use super::file::{Backend, KernelTotals, Origin, Profile, SiteTotals, WaveCounts};
use super::map::{Refused, Resources};
use super::schema::Counts;
use super::time::TimeProfile;
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_base::{bytes, leb128};

/// The first bytes of a journal.
pub const MAGIC: &[u8; 8] = b"WAVETAPJ";
/// Size of the header in bytes.
pub const HEADER: usize = 16;
/// Offset of the byte that is not 0 where something could not be written.
pub const FAILED: u64 = 8;
/// Offset of the byte that is not 0 while dispatches have begun whose counts are not in the journal yet, where counts
/// are collected later than dispatches end.
pub const UNCOLLECTED: u64 = 10;
/// Version of the format.
const VERSION: u8 = 3;
/// Offset of the version.
const VERSION_AT: usize = 9;

/// Size of a frame's length and tag.
const FRAME: usize = 5;

/// What a frame is.
mod tag {
    /// The process.
    pub const PROCESS: u8 = 1;
    /// A profile without kernels, refusals and waves.
    pub const HEAD: u8 = 2;
    /// Refusals to be added.
    pub const REFUSED: u8 = 3;
    /// A kernel.
    pub const KERNEL: u8 = 4;
    /// A kernel's numbers.
    pub const NUMBERS: u8 = 5;
    /// Waves to be added.
    pub const WAVES: u8 = 6;
    /// Modelled time to be added.
    pub const TIME: u8 = 7;
    /// The process has written all it will.
    pub const END: u8 = 8;
    /// Recorded accesses to be added.
    pub const ACCESSES: u8 = 9;
    /// The name of a kernel that runs for long and has not ended yet.
    pub const RUNS: u8 = 10;
    /// The name of one that has.
    pub const RAN: u8 = 11;
    /// A kernel in a region of the program.
    pub const REGION: u8 = 12;
    /// The numbers of one.
    pub const REGION_NUMBERS: u8 = 13;
    /// How exact a dispatch was, to be added.
    pub const FIDELITY: u8 = 14;
    /// Added to the tag of a frame of the emulator's trace.
    pub const TRACE: u8 = 0x80;
}

/// The process that wrote a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// When it started, in the system's clock ticks since boot: another process may get its id later.
    pub started: u64,
    /// The name of its executable.
    pub name: String,
    /// Its rank among those that one launcher has started (MPI, Slurm), if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// Reads a profile, or the journal that a process has left whose counts nothing has added up.
///
/// # Errors
/// Malformed if it is neither, or a journal without counts; Unsupported if it is of another version.
pub fn read_profile(data: &[u8]) -> Result<Profile> {
    if !is_journal(data) {
        return Profile::from_json(data);
    }
    let journal = Journal::read(data)?;
    journal.counters.or(journal.trace).ok_or_else(|| Error::malformed("a journal without counts"))
}

/// A journal's header.
#[must_use]
pub fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[VERSION_AT] = VERSION;
    header
}

/// Whether `data` begins as a journal does.
#[must_use]
pub fn is_journal(data: &[u8]) -> bool {
    data.starts_with(MAGIC)
}

/// Appends the frame of the process.
///
/// # Errors
/// Internal if it cannot be serialised; Limit if it is too large for a frame.
pub fn process(process: &Process, out: &mut Vec<u8>) -> Result<()> {
    frame(tag::PROCESS, out, |out| json(process, out))
}

/// Appends the frame of modelled time that a dispatch adds.
///
/// # Errors
/// Internal if it cannot be serialised; Limit if it is too large for a frame.
pub fn time(added: &TimeProfile, out: &mut Vec<u8>) -> Result<()> {
    frame(tag::TIME, out, |out| json(added, out))
}

/// Appends the frame of how exact a dispatch was.
///
/// # Errors
/// Internal if it cannot be serialised; Limit if it is too large for a frame.
pub fn fidelity(added: &FidelityProfile, out: &mut Vec<u8>) -> Result<()> {
    frame(tag::FIDELITY, out, |out| json(added, out))
}

/// Appends the frame that says that a kernel runs and has not ended yet, or that it has.
///
/// # Errors
/// Limit if its name is too large for a frame.
pub fn running(kernel: &str, runs: bool, out: &mut Vec<u8>) -> Result<()> {
    frame(if runs { tag::RUNS } else { tag::RAN }, out, |out| {
        out.extend_from_slice(kernel.as_bytes());
        Ok(())
    })
}

/// Appends the frame that says that there will be no more.
///
/// # Errors
/// None: frames have one signature.
pub fn end(out: &mut Vec<u8>) -> Result<()> {
    frame(tag::END, out, |_| Ok(()))
}

/// Writes a profile as it grows.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Added to tags.
    origin: u8,
    head: Option<Profile>,
    refused: usize,
    waves: usize,
    accesses: usize,
    kernels: Written,
    regions: Written,
    /// Dispatches and waves of each kernel in a region as they were written.
    region_numbers: Vec<(u64, u64)>,
}

/// Sites of each kernel of a list that was written.
#[derive(Debug, Default)]
struct Written(Vec<Option<usize>>);

/// The tags of a kernel, and of its numbers.
const OF_KERNELS: [u8; 2] = [tag::KERNEL, tag::NUMBERS];
const OF_REGIONS: [u8; 2] = [tag::REGION, tag::REGION_NUMBERS];

impl Encoder {
    /// Of a journal that has nothing of this profile yet.
    #[must_use]
    pub fn new(origin: Origin) -> Encoder {
        let origin = match origin {
            Origin::Counters => 0,
            Origin::Trace | Origin::Launches => tag::TRACE,
        };
        Encoder { origin, ..Encoder::default() }
    }

    /// Appends the frames of what has changed since the last call: anything, but among the kernels only the one at
    /// `place` and those in regions. The profile is the same afterwards.
    ///
    /// # Errors
    /// Internal if something cannot be serialised; Limit if it is too large for a frame.
    pub fn update(&mut self, profile: &mut Profile, place: Option<usize>, out: &mut Vec<u8>) -> Result<()> {
        self.rest(profile, out)?;
        if let Some(place) = place {
            self.kernels.write(&mut profile.kernels, place, OF_KERNELS.map(|tag| tag | self.origin), out)?;
        }
        self.regions(profile, out)
    }

    /// Kernels in regions that have changed.
    fn regions(&mut self, profile: &mut Profile, out: &mut Vec<u8>) -> Result<()> {
        for place in 0..profile.regions.len() {
            let numbers = (profile.regions[place].dispatches, profile.regions[place].waves);
            if self.region_numbers.get(place) == Some(&numbers) {
                continue;
            }
            self.regions.write(&mut profile.regions, place, OF_REGIONS.map(|tag| tag | self.origin), out)?;
            match self.region_numbers.get_mut(place) {
                Some(written) => *written = numbers,
                None => self.region_numbers.push(numbers),
            }
        }
        Ok(())
    }

    /// Appends the frames of all there is: where a new journal begins.
    ///
    /// # Errors
    /// As those of [`Encoder::update`].
    pub fn whole(&mut self, profile: &mut Profile, out: &mut Vec<u8>) -> Result<()> {
        *self = Encoder { origin: self.origin, ..Encoder::default() };
        self.rest(profile, out)?;
        let tags = OF_KERNELS.map(|tag| tag | self.origin);
        (0..profile.kernels.len()).try_for_each(|place| self.kernels.write(&mut profile.kernels, place, tags, out))?;
        self.regions(profile, out)
    }

    /// All but kernels.
    fn rest(&mut self, profile: &mut Profile, out: &mut Vec<u8>) -> Result<()> {
        let kept = (
            std::mem::take(&mut profile.kernels),
            std::mem::take(&mut profile.regions),
            std::mem::take(&mut profile.refused),
            std::mem::take(&mut profile.waves),
            std::mem::take(&mut profile.accesses),
        );
        let written = if self.head.as_ref() == Some(&*profile) {
            Ok(())
        } else {
            self.head = Some(profile.clone());
            frame(tag::HEAD | self.origin, out, |out| write_compact(profile, out))
        };
        (profile.kernels, profile.regions, profile.refused, profile.waves, profile.accesses) = kept;
        written?;
        if let Some(new) = profile.refused.get(self.refused..).filter(|new| !new.is_empty()) {
            frame(tag::REFUSED | self.origin, out, |out| json(new, out))?;
            self.refused = profile.refused.len();
        }
        if let Some(new) = profile.waves.get(self.waves..).filter(|new| !new.is_empty()) {
            frame(tag::WAVES | self.origin, out, |out| json(new, out))?;
            self.waves = profile.waves.len();
        }
        if let Some(new) = profile.accesses.get(self.accesses..).filter(|new| !new.is_empty()) {
            frame(tag::ACCESSES | self.origin, out, |out| json(new, out))?;
            self.accesses = profile.accesses.len();
        }
        Ok(())
    }
}

impl Written {
    /// Appends the frame of a kernel of a list.
    fn write(&mut self, kernels: &mut [KernelTotals], place: usize, tags: [u8; 2], out: &mut Vec<u8>) -> Result<()> {
        let Written(sites) = self;
        let [tag, numbers_tag] = tags;
        let number = u32::try_from(place).map_err(|_| Error::limit("too many kernels for a journal"))?;
        if sites.len() <= place {
            // Those before it, of which no dispatch has ended yet.
            for earlier in sites.len()..place {
                self.0.push(None);
                self.write(kernels, earlier, tags, out)?;
            }
            self.0.push(None);
        }
        let Written(sites) = self;
        let Some(kernel) = kernels.get_mut(place) else { return Ok(()) };
        if sites[place] != Some(kernel.sites.len()) {
            frame(tag, out, |out| {
                out.extend_from_slice(&number.to_le_bytes());
                write_kernel(kernel, out)
            })?;
            sites[place] = Some(kernel.sites.len());
            return Ok(());
        }
        frame(numbers_tag, out, |out| numbers(kernel, number, out))
    }
}

/// The payload of a kernel's numbers: its place, the length of the JSON, JSON of all but what does not change, and the
/// counters.
fn numbers(kernel: &mut KernelTotals, place: u32, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&place.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    let constant = Constant::take(kernel);
    let made = write_kernel(kernel, out);
    constant.put_back(kernel);
    made?;
    let length =
        u32::try_from(out.len() - length_at - 4).map_err(|_| Error::limit("a kernel is too large for a journal"))?;
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    for site in &kernel.sites {
        for value in site.counts.values() {
            leb128::put(out, *value);
        }
    }
    Ok(())
}

/// What does not change between the dispatches of a kernel. Sites are here, too: their counters are written by
/// themselves.
struct Constant {
    names: [String; 4],
    uncounted_callees: Vec<String>,
    resources: [Option<Resources>; 2],
    sites: Vec<SiteTotals>,
}

impl Constant {
    fn take(kernel: &mut KernelTotals) -> Constant {
        Constant {
            names: [&mut kernel.name, &mut kernel.demangled, &mut kernel.target, &mut kernel.object]
                .map(std::mem::take),
            uncounted_callees: std::mem::take(&mut kernel.uncounted_callees),
            resources: [kernel.before.take(), kernel.after.take()],
            sites: std::mem::take(&mut kernel.sites),
        }
    }

    fn put_back(self, kernel: &mut KernelTotals) {
        [kernel.name, kernel.demangled, kernel.target, kernel.object] = self.names;
        kernel.uncounted_callees = self.uncounted_callees;
        [kernel.before, kernel.after] = self.resources;
        kernel.sites = self.sites;
    }
}

fn json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, value).map_err(|error| Error::internal(format!("journal: {error}")))
}

/// Appends a frame whose payload `write` appends.
fn frame(tag: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(tag);
    let length = write(out).and_then(|()| {
        u32::try_from(out.len() - start - FRAME)
            .map_err(|_| Error::limit("more than 4 GiB of counts at once do not fit a journal"))
    });
    match length {
        Ok(length) => out[start..start + 4].copy_from_slice(&length.to_le_bytes()),
        Err(_) => out.truncate(start),
    }
    length.map(drop)
}

/// What a process left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    /// The process.
    pub process: Process,
    /// Whether it said that there would be no more.
    pub ended: bool,
    /// Whether something could not be written.
    pub failed: bool,
    /// Whether dispatches have begun whose counts it does not have.
    pub uncollected: bool,
    /// What instrumented kernels counted.
    pub counters: Option<Profile>,
    /// The emulator's trace.
    pub trace: Option<Profile>,
    /// Modelled time.
    pub time: Option<TimeProfile>,
    /// How exact the emulator was.
    pub fidelity: Option<FidelityProfile>,
    /// Mangled names of kernels that had not ended, of those that ran for long.
    pub running: Vec<String>,
}

impl Journal {
    /// Reads a journal, also one that ends in the middle of a frame.
    ///
    /// # Errors
    /// Malformed if it is none, Unsupported if it is of another version.
    pub fn read(data: &[u8]) -> Result<Journal> {
        let version = data
            .get(VERSION_AT)
            .filter(|_| is_journal(data))
            .ok_or_else(|| Error::malformed("not a journal of counts"))?;
        if *version != VERSION {
            return Err(Error::unsupported(format!("journal of version {version}, this program knows {VERSION}")));
        }
        let is_set = |at: u64| data.get(at as usize).is_some_and(|byte| *byte != 0);
        let (failed, uncollected) = (is_set(FAILED), is_set(UNCOLLECTED));
        let mut journal = Journal { failed, uncollected, ..Journal::default() };
        let mut at = HEADER;
        while let Some((tag, payload, end)) = next(data, at) {
            if journal.add(tag, payload).map_err(|error| error.at(at as u64))?.is_break() {
                break;
            }
            at = end;
        }
        for profile in [&mut journal.counters, &mut journal.trace].into_iter().flatten() {
            profile.set_ended(journal.ended);
        }
        if let Some(time) = &mut journal.time {
            time.complete = journal.ended;
        }
        if let Some(fidelity) = &mut journal.fidelity {
            fidelity.complete = journal.ended;
        }
        Ok(journal)
    }

    fn add(&mut self, tag: u8, payload: &[u8]) -> Result<ControlFlow<()>> {
        let (origin, place) = match tag & tag::TRACE {
            0 => (Origin::Counters, &mut self.counters),
            _ => (Origin::Trace, &mut self.trace),
        };
        let of_profile =
            matches!(tag & !tag::TRACE, tag::HEAD..=tag::WAVES | tag::ACCESSES | tag::REGION | tag::REGION_NUMBERS);
        if of_profile {
            let profile = place.get_or_insert_with(|| Profile::new(origin, Backend::Emulator));
            return add_to(profile, tag & !tag::TRACE, payload).map(ControlFlow::Continue);
        }
        match tag {
            tag::PROCESS => self.process = parse(payload)?,
            tag::TIME => {
                let added: TimeProfile = parse(payload)?;
                match &mut self.time {
                    Some(time) => time.merge(&added),
                    None => self.time = Some(added),
                }
            }
            tag::FIDELITY => self.fidelity.get_or_insert_default().merge(&parse(payload)?),
            tag::RUNS => self.running.push(String::from_utf8_lossy(payload).into_owned()),
            tag::RAN => {
                let name = String::from_utf8_lossy(payload);
                if let Some(place) = self.running.iter().position(|running| *running == name) {
                    self.running.remove(place);
                }
            }
            tag::END => {
                self.ended = true;
                return Ok(ControlFlow::Break(()));
            }
            other => return Err(Error::malformed(format!("journal: a frame of unknown kind {other}"))),
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Adds a frame of a profile.
fn add_to(profile: &mut Profile, tag: u8, payload: &[u8]) -> Result<()> {
    match tag {
        tag::HEAD => {
            let kept = std::mem::replace(profile, read_compact(payload).map_err(|error| error.within("journal"))?);
            (profile.kernels, profile.regions, profile.refused) = (kept.kernels, kept.regions, kept.refused);
            (profile.waves, profile.accesses) = (kept.waves, kept.accesses);
        }
        tag::REFUSED => profile.refused.extend(parse::<Vec<Refused>>(payload)?),
        tag::WAVES => profile.waves.extend(parse::<Vec<WaveCounts>>(payload)?),
        tag::ACCESSES => profile.accesses.extend(parse::<Vec<DispatchAccesses>>(payload)?),
        tag::KERNEL | tag::REGION => {
            let kernels = if tag == tag::KERNEL { &mut profile.kernels } else { &mut profile.regions };
            let (place, text) = place(payload)?;
            let (kernel, count) = (read_kernel(text).map_err(|error| error.within("journal"))?, kernels.len());
            match kernels.get_mut(place) {
                Some(old) => *old = kernel,
                None if place == count => kernels.push(kernel),
                None => return Err(Error::malformed(format!("journal: kernel {place} comes after {count} kernels"))),
            }
        }
        _ => {
            let (place, rest) = place(payload)?;
            let kernels = if tag == tag::NUMBERS { &mut profile.kernels } else { &mut profile.regions };
            let kernel = kernels.get_mut(place);
            read_numbers(
                kernel.ok_or_else(|| {
                    Error::malformed(format!("journal: numbers of kernel {place}, which is not there"))
                })?,
                rest,
            )?;
        }
    }
    Ok(())
}

/// The tag, the payload and the end of the frame at `at`, if it is whole.
fn next(data: &[u8], at: usize) -> Option<(u8, &[u8], usize)> {
    let length = bytes::u32_at(data, at as u64, "frame").ok()? as usize;
    let tag = *data.get(at + FRAME - 1)?;
    let end = (at + FRAME).checked_add(length)?;
    Some((tag, data.get(at + FRAME..end)?, end))
}

fn parse<'d, T: Deserialize<'d>>(payload: &'d [u8]) -> Result<T> {
    serde_json::from_slice(payload).map_err(|error| Error::malformed(format!("journal: {error}")))
}

/// A kernel's place, and the rest.
fn place(payload: &[u8]) -> Result<(usize, &[u8])> {
    let place = bytes::u32_at(payload, 0, "place of a kernel")?;
    Ok((place as usize, &payload[4..]))
}

fn read_numbers(kernel: &mut KernelTotals, payload: &[u8]) -> Result<()> {
    let length = bytes::u32_at(payload, 0, "length of a kernel's numbers")?;
    let json = bytes::slice(payload, 4, length.into(), "a kernel's numbers")?;
    let mut totals = read_kernel(json).map_err(|error| error.within("journal"))?;
    let mut rest = payload.get(4 + length as usize..).unwrap_or_default();
    Constant::take(kernel).put_back(&mut totals);
    for site in &mut totals.sites {
        let kind = Arc::clone(site.counts.kind());
        let values = kind.fields.iter().map(|_| leb128::take(&mut rest)).collect::<Result<Vec<u64>>>();
        let values = values.map_err(|error| error.within("journal: a site's counters"))?;
        site.counts = Counts::new(&kind, values).within(|| format!("journal: site {:#x}", site.address))?;
    }
    *kernel = totals;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Work;
    use crate::probes::branches::{ExecCounts, ScalarCounts};
    use crate::time::{DispatchTime, KernelTime, MemoryTime};

    fn site(address: u64, counts: Counts) -> SiteTotals {
        SiteTotals { address, instruction: "s_cbranch_scc1 4".to_owned(), source: None, counts }
    }

    fn kernel(name: &str) -> KernelTotals {
        KernelTotals {
            name: name.to_owned(),
            demangled: format!("{name}()"),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            uncounted_callees: vec!["f".to_owned()],
            sites: vec![site(0x1000, ScalarCounts::default().into()), site(0x1010, ExecCounts::default().into())],
            ..KernelTotals::default()
        }
    }

    fn dispatch(kernel: &mut KernelTotals, values: [u64; 7]) {
        kernel.dispatches += 1;
        kernel.work.get_or_insert(Work::default()).instructions += 9;
        kernel.sites[0].counts.add(&values[..2]).unwrap();
        kernel.sites[1].counts.add(&values[2..]).unwrap();
    }

    #[test]
    fn a_journal_is_the_profile_after_every_dispatch() {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        let mut encoder = Encoder::new(Origin::Counters);
        let mut file = header().to_vec();
        let who = Process { pid: 7, started: 99, name: "app".to_owned(), rank: Some(3) };
        process(&who, &mut file).unwrap();
        for (round, place) in [0, 1, 0, 0, 1].into_iter().enumerate() {
            if profile.kernels.len() <= place {
                profile.kernels.push(kernel(&format!("k{place}")));
            }
            dispatch(&mut profile.kernels[place], [1, 0, 127, 128, u64::MAX >> (round + 4), 5, 6]);
            if round > 1 {
                if round == 2 {
                    profile.regions.push(KernelTotals { region: Some("step".to_owned()), ..kernel("k0") });
                }
                dispatch(&mut profile.regions[0], [2; 7]);
            }
            profile.waves.push(WaveCounts {
                kernel: place as u32,
                dispatch: Some(round as u32),
                region: None,
                workgroup: [0; 3],
                wave: 0,
                counters: vec![1],
            });
            let before = profile.clone();
            let whole = file.len();
            encoder.update(&mut profile, Some(place), &mut file).unwrap();
            assert_eq!(profile, before, "writing changes nothing");
            let read = Journal::read(&file).unwrap();
            assert_eq!((read.counters.as_ref(), &read.process, read.trace), (Some(&profile), &who, None));
            // Killed while it wrote: what was there before is still there.
            for cut in whole..file.len() {
                assert!(Journal::read(&file[..cut]).is_ok(), "{cut}");
            }
        }
        // A new journal that begins with all there is.
        let mut second = header().to_vec();
        encoder.whole(&mut profile, &mut second).unwrap();
        dispatch(&mut profile.kernels[1], [1; 7]);
        encoder.update(&mut profile, Some(1), &mut second).unwrap();
        end(&mut second).unwrap();
        profile.end();
        assert_eq!(Journal::read(&second).unwrap().counters, Some(profile));
    }

    #[test]
    fn a_trace_whose_sites_appear_one_by_one() {
        let mut trace = Profile::new(Origin::Trace, Backend::Emulator);
        let mut encoder = Encoder::new(Origin::Trace);
        let mut file = header().to_vec();
        trace.kernels.push(kernel("k"));
        encoder.update(&mut trace, Some(0), &mut file).unwrap();
        trace.kernels[0].sites.insert(1, site(0x1008, ScalarCounts { executions: 3, taken: 1 }.into()));
        encoder.update(&mut trace, Some(0), &mut file).unwrap();
        let read = Journal::read(&file).unwrap();
        assert_eq!((read.trace, read.counters), (Some(trace), None));
    }

    #[test]
    fn modelled_time_adds_up() {
        let mut file = header().to_vec();
        let mut added = TimeProfile::new(Vec::new());
        for dispatch in 0..3 {
            added.kernels = vec![KernelTime {
                name: "k".to_owned(),
                demangled: "k".to_owned(),
                target: "gfx90a".to_owned(),
                object: "00".to_owned(),
                waves: 1,
                most_waves_per_simd: 1,
                modelled_cycles: 10,
                modelled_wave_cycles: 10,
                modelled_added_cycles: 0,
                dispatches: vec![DispatchTime {
                    dispatch,
                    modelled_cycles: 10,
                    modelled_start: None,
                    region: None,
                    extrapolated: None,
                }],
                memory: MemoryTime::default(),
                traced: None,
                resources: Vec::new(),
                instructions: Vec::new(),
            }];
            time(&added, &mut file).unwrap();
        }
        let read = Journal::read(&file).unwrap().time.unwrap();
        assert_eq!((read.kernels.len(), read.kernels[0].dispatches.len(), read.kernels[0].modelled_cycles), (1, 3, 30));
    }

    #[test]
    fn damage_is_found() {
        assert!(Journal::read(b"").is_err() && Journal::read(MAGIC).is_err());
        let mut other = header();
        other[VERSION_AT] = 1;
        assert!(Journal::read(&other).unwrap_err().to_string().contains("version 1"));
        let mut file = header().to_vec();
        frame(tag::NUMBERS, &mut file, |out| {
            out.extend_from_slice(&[0; 8]);
            Ok(())
        })
        .unwrap();
        assert!(Journal::read(&file).unwrap_err().to_string().contains("kernel 0, which is not there"));
        let mut file = header().to_vec();
        frame(99, &mut file, |_| Ok(())).unwrap();
        assert!(Journal::read(&file).unwrap_err().to_string().contains("unknown kind 99"));
    }
}
