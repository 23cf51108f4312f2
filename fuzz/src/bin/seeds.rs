//! Writes the inputs that a fuzzer begins with: `seeds FOLDER` fills a folder for each target in FOLDER, and prints a
//! line for each: its name and its longest input in bytes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds FOLDER");
        return ExitCode::from(2);
    };
    match write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::from(2)
        }
    }
}

fn write(folder: &std::path::Path) -> io::Result<()> {
    for target in wavetap_fuzz::TARGETS {
        let own = folder.join(target.name);
        fs::create_dir_all(&own)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(own.join(format!("seed-{number}")), seed)?;
        }
        println!("{} {}", target.name, target.max_len);
    }
    Ok(())
}
