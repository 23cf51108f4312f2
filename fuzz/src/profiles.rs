//! Files of ours that are read again: profiles, site tables, journals, modelled time, origins, control blocks and
//! records. The first byte says which the others are.

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::OnceLock;

use flate2::write::ZlibEncoder;
use wavetap::collect::collector::{Collector, CountedKernel};
use wavetap::error::Error;
use wavetap::pipeline::{Counters, Options, probe, rewrite};
use wavetap::profile::control::Control;
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::profile::journal::{self, Encoder, Journal, Process};
use wavetap::profile::map::ObjectMap;
use wavetap::profile::origins::OriginsFile;
use wavetap::profile::record;
use wavetap::profile::time::TimeProfile;

use crate::read;
use crate::seeds::samples;

/// Kinds of files, as the first byte has them.
const PROFILE: u8 = 0;
const MAP: u8 = 1;
const JOURNAL: u8 = 2;
const TIME: u8 = 3;
const ORIGINS: u8 = 4;
const BLOCK: u8 = 5;
const RECORDS: u8 = 6;
const KINDS: u8 = 7;

/// Reads a file, writes it and reads it again.
///
/// # Panics
/// If that changes what is read.
pub fn run(data: &[u8]) {
    let Some((&kind, content)) = data.split_first() else { return };
    match kind % KINDS {
        PROFILE => {
            if let Some(profile) = again(content, Profile::from_json, Profile::to_json) {
                let mut sum = profile.clone();
                let _ = read(sum.merge(&profile));
            }
        }
        MAP => {
            // Compressed here: changed compressed bytes do not decompress.
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            let packed = encoder.write_all(content).and_then(|()| encoder.finish()).expect("memory can be written");
            let _ = read(ObjectMap::unpack(content));
            again(&packed, ObjectMap::unpack, ObjectMap::pack);
        }
        JOURNAL => {
            let _ = read(Journal::read(content));
        }
        TIME => {
            again(content, TimeProfile::from_json, TimeProfile::to_json);
        }
        ORIGINS => {
            again(content, OriginsFile::from_json, OriginsFile::to_json);
        }
        BLOCK => {
            if let Some(control) = read(Control::from_bytes(content)) {
                let bytes = control.to_bytes();
                assert_eq!(Control::from_bytes(&bytes).expect("a control block that was written"), control);
            }
        }
        _ => drained(content),
    }
}

/// What was read, if writing it and reading that gives the same.
fn again<T: PartialEq + Debug>(
    content: &[u8],
    from: impl Fn(&[u8]) -> Result<T, Error>,
    to: impl Fn(&T) -> Result<Vec<u8>, Error>,
) -> Option<T> {
    let value = read(from(content))?;
    let written = to(&value).expect("what was read is written");
    assert_eq!(from(&written).as_ref(), Ok(&value), "it changes when it is written");
    Some(value)
}

/// A map of a sample.
fn map() -> ObjectMap {
    let options = Options { probes: vec![probe::BRANCHES], counters: Counters::Global, ..Options::default() };
    let sample = samples(&["divergence"]).remove(0);
    rewrite(&sample, &options).expect("the sample is rewritten").maps.remove(0)
}

/// Records of a kernel, with any contents.
fn drained(content: &[u8]) {
    static MAP: OnceLock<ObjectMap> = OnceLock::new();
    let map = MAP.get_or_init(map);
    let _ = read(record::Header::from_bytes(content));
    let mut collector = Collector::new(Backend::Emulator, true);
    for record in content.chunks(map.stride as usize) {
        let _ = read(collector.fold(CountedKernel { map, kernel: 0, region: None }, record, None, false));
    }
    let _ = read(collector.finish().to_json().map(|_| ()));
}

/// One of each kind, of a sample.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let map = map();
    let mut collector = Collector::new(Backend::Emulator, true);
    collector.kernel(&map, 0).expect("the first kernel");
    let mut profile = collector.finish();
    let mut journal = journal::header().to_vec();
    let process = Process { pid: 7, started: 9, name: "app".into(), rank: None };
    journal::process(&process, &mut journal).expect("memory can be written");
    Encoder::new(Origin::Counters).whole(&mut profile, &mut journal).expect("memory can be written");
    let time = TimeProfile::new(vec!["global_load=500".into()]);
    journal::time(&time, &mut journal).expect("memory can be written");
    journal::end(&mut journal).expect("memory can be written");
    let json = serde_json::to_vec(&map).expect("a map is JSON");
    let block = Control { buffer: 0x1000, capacity: 4, stride: map.stride, ..Control::default() }.to_bytes();
    let of = |kind: u8, content: &[u8]| [&[kind], content].concat();
    vec![
        of(PROFILE, &profile.to_json().expect("a profile is JSON")),
        of(MAP, &json),
        of(JOURNAL, &journal),
        of(TIME, &time.to_json().expect("it is JSON")),
        of(ORIGINS, br#"{"schema":"wavetap.origins/1","objects":[]}"#),
        of(BLOCK, &block),
        of(RECORDS, &vec![0; 4 * map.stride as usize]),
    ]
}
