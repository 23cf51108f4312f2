//! Chromium without a window: what a page is after its scripts ran, and what it looks like.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rewriter_tests::{Failure, command};
use serde::de::DeserializeOwned;

/// One at a time: each has several processes.
static ONE: Mutex<()> = Mutex::new(());

/// Where the result of a script of the tests begins in the page.
const RESULT: &str = "<pre id=\"probe-result\">";

/// Runs the browser on a file, or a place in it: `page.html#k1`.
fn run(folder: &Path, url: &str, options: &[String]) -> Result<String, Failure> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let state = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut args: Vec<OsString> = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        "--lang=en",
    ]
    .map(OsString::from)
    .into();
    args.push(format!("--user-data-dir={}", state.path().display()).into());
    args.extend(options.iter().map(OsString::from));
    args.push(format!("file://{}/{url}", folder.display()).into());
    let chromium = Path::new("chromium");
    let out = command::run(chromium, &args, &[], folder)
        .map_err(|error| format!("{error}\nThis test needs Debian's package `chromium`"))?;
    Ok(out.exited(0)?.out())
}

/// The page's HTML after its scripts have had this many milliseconds of their own time.
pub fn dump(folder: &Path, url: &str, milliseconds: u32, options: &[&str]) -> Result<String, Failure> {
    let mut all = vec!["--dump-dom".to_owned(), "--window-size=1440,900".to_owned()];
    // Without scripts that time would never begin.
    all.extend((milliseconds > 0).then(|| format!("--virtual-time-budget={milliseconds}")));
    all.extend(options.iter().map(|option| (*option).to_owned()));
    run(folder, url, &all)
}

/// What a script of the tests has left in the page.
pub fn result<T: DeserializeOwned>(page: &str) -> Result<T, Failure> {
    let after = page.split_once(RESULT).ok_or("the script of the test did not end")?.1;
    let json = after.split_once("</pre>").ok_or("the result has no end")?.0;
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&json).map_err(|error| format!("{error}: {json}"))
}

/// A picture of the page, as wide and high as this.
pub fn picture(folder: &Path, url: &str, (width, height): (u32, u32), to: &Path) -> Result<(), Failure> {
    let options = [
        format!("--screenshot={}", to.display()),
        format!("--window-size={width},{height}"),
        "--virtual-time-budget=2000".to_owned(),
    ];
    run(folder, url, &options)?;
    if to.is_file() { Ok(()) } else { Err(format!("{} was not made", to.display())) }
}

/// Writes a copy of a page with scripts of the tests in it: one before all of the page, one at its end.
pub fn with_scripts(page: &str, first: &str, last: &str, to: &Path) -> Result<(), Failure> {
    let script = |text: &str| format!("<script nonce=\"wavetap\">{text}</script>");
    // After the policy, which is to hold for them, too.
    let (before, after) = page.split_once("<title>").ok_or("the page has no title")?;
    let (body, end) = after.rsplit_once("</body>").ok_or("the page has no end")?;
    let copy = format!("{before}{}<title>{body}{}</body>{end}", script(first), script(last));
    fs::write(to, copy).map_err(|error| error.to_string())
}
