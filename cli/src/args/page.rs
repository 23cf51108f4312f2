//! What an HTML page has besides a profile and its binary.

use std::path::PathBuf;

use clap::Args;

/// What the page of a profile has besides.
#[derive(Debug, Clone, Default, Args)]
pub struct PageArgs {
    /// Page: a profile of the same program with recorded accesses (`profile --probe memory`): findings and heat maps
    #[arg(long, value_name = "PROFILE", requires = "html", requires = "binary")]
    pub accesses: Option<PathBuf>,
    /// Page: modelled time of the same program, as `run --timing --format json --report` writes it
    #[arg(long, value_name = "JSON", requires = "html")]
    pub time: Option<PathBuf>,
    #[command(flatten)]
    pub source: PageSourceArgs,
}

/// The text of source lines.
#[derive(Debug, Clone, Default, Args)]
pub struct PageSourceArgs {
    /// Page: look for source files below this folder, too (may be given several times)
    #[arg(long, value_name = "FOLDER", requires = "html")]
    pub source_path: Vec<PathBuf>,
    /// Page: leave out the text of source lines
    #[arg(long, requires = "html", conflicts_with = "source_path")]
    pub no_source: bool,
}
