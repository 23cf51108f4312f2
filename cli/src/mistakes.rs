//! What was probably meant by a command line that does something else, or nothing: options after the application, lists
//! without commas, options of other subcommands.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Parser};

use crate::args::{Cli, Command as Subcommand};

/// Options that most applications have, too: that they are meant for the application is no mistake.
const EVERYONES: [&str; 2] = ["help", "version"];

/// What to say of options that come after the application and therefore are its own. Nothing where `--` says that they
/// are meant to be.
pub fn after_application(line: &[OsString], subcommand: &Subcommand) -> Option<String> {
    let (name, app) = match subcommand {
        Subcommand::Run(args) => ("run", &args.app),
        Subcommand::Profile(args) => ("profile", &args.app),
        Subcommand::Compare(args) => ("compare", &args.app),
        Subcommand::Capture(args) => ("capture", &args.app),
        _ => return None,
    };
    let before = line.len().checked_sub(app.command.len())?;
    if line[..before].last().is_some_and(|last| last == "--") {
        return None;
    }
    let command = command();
    let options = command.find_subcommand(name)?;
    let mut found: Vec<String> = Vec::new();
    let arguments = app.command.iter().skip(1).map(|argument| argument.to_string_lossy());
    for argument in arguments.take_while(|argument| argument != "--") {
        let option = argument.split('=').next().unwrap_or_default();
        if options.get_arguments().any(|arg| is_named(arg, option)) && !found.iter().any(|known| known == option) {
            found.push(option.to_owned());
        }
    }
    let names: Vec<String> = found.iter().map(|option| format!("`{option}`")).collect();
    let (come, are) = match names.len() {
        0 => return None,
        1 => ("comes", "is"),
        _ => ("come", "are"),
    };
    let names = names.join(", ");
    Some(format!(
        "note: {names} {come} after the application and {are} passed to it; options of wavetap come before it (`--` \
            before the application says that this is meant)"
    ))
}

/// Puts a tip into a usage error whose own does not help.
pub fn add_tip(error: &mut clap::Error, line: &[OsString]) {
    let tip = match (error.kind(), error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word)), _) => in_place_of_subcommand(word, line),
        (ErrorKind::UnknownArgument, _, Some(ContextValue::String(argument))) if argument.starts_with('-') => {
            before_subcommand(argument, line)
                .or_else(|| to_a_file(argument, line))
                .or_else(|| of_another(argument, line))
        }
        (ErrorKind::UnknownArgument, _, Some(ContextValue::String(argument))) => {
            list_without_commas(line).or_else(|| without_its_option(argument, line))
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// What to say of an application or of `help` where a subcommand was expected, or of a form that is unknown.
fn in_place_of_subcommand(word: &str, line: &[OsString]) -> Option<String> {
    let command = command();
    let before = line.iter().position(|given| given == word).unwrap_or_default();
    if let Some(given) = given(&command, &line[..before]) {
        let known: Vec<&str> = given.get_subcommands().map(Command::get_name).collect();
        return Some(format!("there are {}", known.join(", ")));
    }
    if word == "help" {
        return Some("`wavetap --help` and `wavetap COMMAND --help` show help".to_owned());
    }
    let is_file = word.contains('/') || Path::new(word).is_file();
    is_file.then(|| format!("to profile an application: `wavetap profile {word}`"))
}

/// What to say of an option of a subcommand's subcommand that is before it: `export --time FILE trace`.
fn before_subcommand(option: &str, line: &[OsString]) -> Option<String> {
    let command = command();
    let given = given(&command, line)?;
    let option = option.split(['=', ' ']).next().unwrap_or_default();
    let name = given.get_bin_name()?;
    let is_nested = name.split(' ').count() > 2;
    (is_nested && given.get_arguments().any(|arg| is_named(arg, option)))
        .then(|| format!("{option} comes after the form: `{name} {option} …`"))
}

/// What to say of `-o` where only reports are written.
fn to_a_file(option: &str, line: &[OsString]) -> Option<String> {
    let command = command();
    let given = given(&command, line)?;
    let has = |name: &str| given.get_arguments().any(|arg| is_named(arg, name));
    let html = if has("--html") { ", --html OUT a page" } else { "" };
    (matches!(option, "-o" | "--output") && has("--report"))
        .then(|| format!("--report FILE writes the report to a file{html}"))
}

/// What to say of a file that is given with an option.
fn without_its_option(file: &str, line: &[OsString]) -> Option<String> {
    let command = command();
    let given = given(&command, line)?;
    let is_given =
        |arg: &Arg| line.iter().any(|word| is_named(arg, word.to_string_lossy().split('=').next().unwrap_or_default()));
    let missing = |name: &str| given.get_arguments().any(|arg| is_named(arg, name) && !is_given(arg));
    if missing("--counters") && given.get_name() != "rewrite" {
        return Some(format!("a profile is given with --counters: --counters {file}"));
    }
    (missing("-o") && given.get_name() == "rewrite").then(|| format!("the output is named with -o: -o {file}"))
}

/// The subcommand of a line: of one that has subcommands, its subcommand.
fn given<'c>(command: &'c Command, line: &[OsString]) -> Option<&'c Command> {
    let mut given = None;
    for word in line.iter().skip(1) {
        given = given.unwrap_or(command).find_subcommand(word).or(given);
    }
    given
}

/// What options are given to: subcommands, or their subcommands.
fn leaves(command: &Command) -> Vec<&Command> {
    let leaves = |command| if Command::has_subcommands(command) { leaves(command) } else { vec![command] };
    command.get_subcommands().flat_map(leaves).collect()
}

/// What to say of a list whose values are separated by blanks, if there is one: `--modes lds global`.
pub fn list_without_commas(line: &[OsString]) -> Option<String> {
    let command = command();
    let options = given(&command, line)?;
    let lists = || options.get_arguments().filter(|arg| arg.get_value_delimiter() == Some(','));
    for (at, word) in line.iter().enumerate() {
        let word = word.to_string_lossy();
        let (option, value) = word.split_once('=').map_or((&*word, at + 1), |(option, _)| (option, at));
        let Some(list) = lists().find(|arg| is_named(arg, option)) else { continue };
        // As many values as there are: the list without the last may be one, too.
        let joined = (value + 1..line.len()).take_while(|last| !line[*last].as_encoded_bytes().starts_with(b"-"));
        let meant = joined.filter_map(|last| joined_list(line, value, last, list)).last();
        if let Some(meant) = meant {
            let meant = if value == at { meant } else { format!("{option} {meant}") };
            return Some(format!("values of {option} are separated by commas: {meant}"));
        }
    }
    None
}

/// The values from one place to another as one list, if that makes the line a command.
fn joined_list(line: &[OsString], first: usize, last: usize, list: &Arg) -> Option<String> {
    let joined = line.get(first..=last)?.join(OsStr::new(","));
    let mut meant = line.to_vec();
    meant.splice(first..=last, [joined.clone()]);
    let is_command = match Cli::try_parse_from(meant) {
        Ok(_) => true,
        // What is a value cannot be a file, where values are of a fixed set.
        Err(error) => error.kind() == ErrorKind::MissingRequiredArgument && !list.get_possible_values().is_empty(),
    };
    is_command.then(|| joined.to_string_lossy().into_owned())
}

/// What to say of an option that other subcommands have.
fn of_another(option: &str, line: &[OsString]) -> Option<String> {
    let option = option.split(['=', ' ']).next().unwrap_or_default();
    let command = command();
    let given = given(&command, line).and_then(Command::get_bin_name);
    let name = |other: &Command| other.get_bin_name().unwrap_or_default().to_owned();
    let mut others: Vec<String> = leaves(&command)
        .into_iter()
        .filter(|other| other.get_bin_name() != given && other.get_arguments().any(|arg| is_named(arg, option)))
        .map(name)
        .collect();
    // Of a form, what other forms have is what is meant.
    let siblings = given.filter(|given| given.split(' ').count() > 2).and_then(|given| given.rsplit_once(' '));
    if let Some((parent, _)) = siblings
        && others.iter().any(|other| other.starts_with(parent))
    {
        others.retain(|other| other.starts_with(parent));
    }
    let others: Vec<String> = others.into_iter().map(|other| format!("`{other}`")).collect();
    let said = match &others[..] {
        [] => return None,
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    };
    Some(format!("{option} is an option of {said}"))
}

/// Whether an option is written like this: `--seed`, `-o`.
fn is_named(arg: &Arg, option: &str) -> bool {
    if EVERYONES.contains(&arg.get_id().as_str()) {
        return false;
    }
    match (option.strip_prefix("--"), option.strip_prefix('-')) {
        (Some(long), _) => arg.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        (None, Some(short)) => arg.get_short().is_some_and(|name| short.chars().eq([name])),
        (None, None) => false,
    }
}

/// The definitions, with what subcommands have of the whole command.
fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn said_after(line: &str) -> Option<String> {
        let line = words(line);
        after_application(&line, &Cli::try_parse_from(&line).expect("a command").command)
    }

    #[test]
    fn options_after_the_application_are_mentioned() {
        for line in ["wavetap profile ./app --timing", "wavetap profile --seed 1 ./app in --timing x"] {
            let note = said_after(line).expect(line);
            assert!(note.starts_with("note: `--timing` comes after the application and is passed to it"), "{note}");
        }
        let note = said_after("wavetap run ./app -o x --seed=3 --seed 4 --color always").expect("a note");
        assert!(note.starts_with("note: `-o`, `--seed`, `--color` come after"), "{note}");
        let note = said_after("wavetap compare ./app --arch gfx90a").expect("another name of --target");
        assert!(note.contains("`--arch`"), "{note}");
    }

    #[test]
    fn the_applications_own_options_are_not_mentioned() {
        for line in [
            "wavetap profile -- ./app --timing",
            "wavetap profile --timing ./app --its-own -n 5 -output timing --timings",
            "wavetap profile ./app --help -h --version -V",
            "wavetap run ./app -- --timing",
            "wavetap run ./app --probe blocks",
            "wavetap inspect app --bytes-not-there",
        ] {
            let line = words(line);
            if let Ok(cli) = Cli::try_parse_from(&line) {
                assert_eq!(after_application(&line, &cli.command), None, "{line:?}");
            }
        }
    }

    #[test]
    fn lists_with_blanks_are_recognised() {
        for (line, meant) in [
            ("wavetap compare --modes lds global -- app", Some("--modes lds,global")),
            ("wavetap compare --modes lds global register app", Some("--modes lds,global,register")),
            ("wavetap compare --modes lds global", Some("--modes lds,global")),
            ("wavetap compare --modes=lds global app", Some("--modes=lds,global")),
            ("wavetap profile --probe branches blocks ./app", Some("--probe branches,blocks")),
            ("wavetap rewrite --target gfx90a gfx942 app -o out", Some("--target gfx90a,gfx942")),
            ("wavetap disasm app --hide arrows waits", Some("--hide arrows,waits")),
            ("wavetap disasm app --entry 0.1 0.2", Some("--entry 0.1,0.2")),
            ("wavetap compare --modes lds app", None),
            ("wavetap compare --modes lds,global app", None),
            ("wavetap profile --target gfx90a ./app gfx942", None),
            ("wavetap disasm --entry 0.1 app", None),
            ("wavetap", None),
        ] {
            let said = list_without_commas(&words(line));
            let found = said.as_deref().and_then(|said| said.rsplit_once("commas: ")).map(|(_, meant)| meant);
            assert_eq!(found, meant, "{line}");
        }
    }

    #[test]
    fn usage_errors_say_what_helps() {
        let tip = |line: &str| {
            let line = words(line);
            let mut error = Cli::try_parse_from(&line).expect_err("wrong");
            add_tip(&mut error, &line);
            error.to_string()
        };
        let text = tip("wavetap run --probe blocks ./app");
        assert!(
            text.contains("--probe is an option of `wavetap rewrite`, `wavetap profile` and `wavetap replay`"),
            "{text}"
        );
        assert!(!text.contains("as a value"), "{text}");
        let text = tip("wavetap disasm app --hide arrows waits");
        assert!(text.contains("separated by commas: --hide arrows,waits"), "{text}");
        for (line, said) in [
            ("wavetap ./app", "to profile an application: `wavetap profile ./app`"),
            ("wavetap help", "`wavetap COMMAND --help`"),
            ("wavetap report p -o x", "--report FILE writes the report to a file, --html OUT a page"),
            ("wavetap mix app p", "--counters p"),
            ("wavetap rewrite app out", "the output is named with -o: -o out"),
            ("wavetap export csv app p", "--counters p"),
            ("wavetap export csv app --counters p --count lanes", "--count is an option of `wavetap export lcov`"),
            ("wavetap export lcov app --time t", "--time is an option of `wavetap export trace`, "),
            ("wavetap export --time t trace", "--time comes after the form: `wavetap export trace --time …`"),
            ("wavetap export tape app", "there are trace, folded, csv, "),
            ("wavetap ./tape export", "to profile an application: `wavetap profile ./tape`"),
        ] {
            let text = tip(line);
            assert!(text.contains(said), "{line}: {text}");
        }
        let text = tip("wavetap run --no-such-option ./app");
        assert!(!text.contains("is an option of"), "{text}");
    }
}
