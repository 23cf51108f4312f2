//! How much of a report is shown, and for which board; what a roofline needs.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use wavetap::error::{Error, Result};
use wavetap::isa::Board;
use wavetap::report::text::Details;

use super::{OutputArgs, RegionArgs, SelectArgs};

/// `--details`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DetailsChoice {
    /// Everything.
    All,
    /// The summary and the launch table.
    Launches,
    /// The summary: a dozen lines.
    Summary,
}

impl From<DetailsChoice> for Details {
    fn from(choice: DetailsChoice) -> Details {
        match choice {
            DetailsChoice::All => Details::All,
            DetailsChoice::Launches => Details::Launches,
            DetailsChoice::Summary => Details::Summary,
        }
    }
}

/// How much is shown.
#[derive(Debug, Clone, Args)]
pub struct ViewArgs {
    /// Text: how much of the report is shown after the summary. What is missing from the counts is said in any case
    #[arg(long, value_enum, default_value_t = DetailsChoice::All, value_name = "WHAT")]
    pub details: DetailsChoice,
    #[command(flatten)]
    pub board: BoardArgs,
}

/// Show the least time of what kernels executed, by resource of a board, and which resource bounds them
///
/// From the counts of basic blocks (`wavetap profile --probe blocks`): operations by type, LDS bytes and issued
/// instructions over the board's peaks. With --time also lines of L1, L2 and memory, which the timing model has moved.
/// A least time is a floor and no prediction. Every number says whether it was counted, modelled or measured.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap profile --probe blocks -o app.profile -- ./app && wavetap roofline app --counters app.profile
  wavetap run --timing --format json --report app.time -- ./app
  wavetap roofline app --counters app.profile --time app.time --board mi250x
  wavetap roofline app --counters app.profile --roofline workloads/app/MI200/roofline.csv")]
pub struct RooflineArgs {
    /// The original file
    pub file: PathBuf,
    /// Counts of blocks of a run of it
    #[arg(long, value_name = "PROFILE")]
    pub counters: PathBuf,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Modelled time of a run of it, as `wavetap run --timing --format json` writes it: bytes of caches and memory, and
    /// how far from the bound the model is
    #[arg(long, value_name = "FILE")]
    pub time: Option<PathBuf>,
    /// Roofs that were measured on your device: `roofline.csv` of rocprof-compute
    #[arg(long, value_name = "CSV")]
    pub roofline: Option<PathBuf>,
    #[command(flatten)]
    pub board: BoardArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which board.
#[derive(Debug, Clone, Args)]
pub struct BoardArgs {
    /// The board that launches, ceilings and modelled time are about; what runs on the emulator runs the code for its
    /// processor [default: the usual one of each target]
    #[arg(long, value_name = "BOARD", value_parser = boards())]
    pub board: Option<&'static Board>,
}

impl BoardArgs {
    /// Selects the code of the board's processor.
    ///
    /// # Errors
    /// Unsupported if another target is named.
    pub fn select(&self, select: &mut SelectArgs) -> Result<()> {
        let Some(board) = self.board else { return Ok(()) };
        select.target.iter().try_for_each(|target| self.check(target))?;
        if select.target.is_empty() {
            select.target.push(board.target.to_owned());
        }
        Ok(())
    }

    /// The target whose code runs: the one that is named, or the board's processor.
    ///
    /// # Errors
    /// Unsupported if these are not the same.
    pub fn target(&self, named: Option<&str>) -> Result<Option<String>> {
        named.map_or(Ok(()), |named| self.check(named))?;
        Ok(named.or(self.board.map(|board| board.target)).map(str::to_owned))
    }

    fn check(&self, target: &str) -> Result<()> {
        match self.board {
            Some(Board { name, target: processor, .. }) if target.split(':').next() != Some(processor) => {
                Err(Error::unsupported(format!("--board {name}: it is a {processor}, and --target names {target}")))
            }
            _ => Ok(()),
        }
    }

    /// What is wrong with the choice where these targets ran: it is of none of them.
    pub fn misfit<'t>(&self, targets: impl IntoIterator<Item = &'t str>) -> Option<String> {
        let board = self.board?;
        let mut ids = targets.into_iter().map(|id| id.split(':').next().unwrap_or_default()).peekable();
        ids.peek()?;
        ids.all(|processor| processor != board.target)
            .then(|| format!("--board {}: it is a {}, for which no code ran", board.name, board.target))
    }
}

fn boards() -> impl TypedValueParser<Value = &'static Board> {
    let values = Board::all().iter().map(|board| {
        PossibleValue::new(board.name)
            .help(format!("{}: {}, {} compute units", board.title, board.target, board.compute_units))
    });
    PossibleValuesParser::new(values).try_map(|name| Board::by_name(&name).ok_or_else(|| format!("no board {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_selects_its_code() {
        let board = BoardArgs { board: Board::by_name("mi300x") };
        let select = |targets: &[&str]| {
            let target = targets.iter().map(|target| (*target).to_owned()).collect();
            let mut select = SelectArgs { kernel: Vec::new(), target };
            board.select(&mut select).map(|()| select.target).map_err(|error| error.to_string())
        };
        assert_eq!(select(&[]).as_deref(), Ok(&["gfx942".to_owned()][..]));
        assert_eq!(select(&["gfx942:xnack-"]).as_deref(), Ok(&["gfx942:xnack-".to_owned()][..]));
        assert!(select(&["gfx90a"]).unwrap_err().ends_with("it is a gfx942, and --target names gfx90a"));
    }
}
