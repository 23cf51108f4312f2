//! Frameworks of Python that may be built for other GPUs. Only their files are read: no interpreter is started.

use std::path::PathBuf;

use super::System;
use wavetap_report::doctor::{Check, Subject};

/// Environments of Python, by the variable that names them.
const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];
/// Where interpreters of the system look.
const PREFIXES: [&str; 2] = ["/usr/local", "/usr"];
/// Folders of packages below `lib/python3…`.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// What there is to say of PyTorch, if it is installed.
pub(super) fn checks(system: &System) -> Vec<Check> {
    const NAME: &str = "pytorch";
    let environments = ENVIRONMENTS.iter().filter_map(|name| system.variable(name)).map(PathBuf::from);
    let prefixes: Vec<PathBuf> = environments.chain(PREFIXES.iter().map(PathBuf::from)).collect();
    let mut checks = Vec::new();
    for prefix in prefixes {
        let library = prefix.join("lib");
        for python in system.names(&library).into_iter().filter(|name| name.starts_with("python3")) {
            for packages in PACKAGES {
                let folder = library.join(&python).join(packages).join("torch");
                let Some(text) = system.text(folder.join("version.py")) else { continue };
                let version = value(&text, "__version__").unwrap_or_else(|| "unknown".to_owned());
                let found = format!("PyTorch {version} in {}", folder.display());
                checks.push(match (value(&text, "hip"), value(&text, "cuda")) {
                    (Some(hip), _) => Check::ok(Subject::Frameworks, NAME, format!("{found}, for HIP {hip}")),
                    (None, cuda) => Check::note(
                        Subject::Frameworks,
                        NAME,
                        match cuda {
                            Some(cuda) => format!("{found}, for CUDA {cuda}"),
                            None => format!("{found}, for CPUs"),
                        },
                        "it launches no kernel on AMD GPUs, so there is nothing to count: install a build for ROCm",
                    ),
                });
            }
        }
    }
    checks
}

/// The text that a line `name = 'text'` or `name: type = 'text'` of Python assigns; none of other values.
fn value(text: &str, name: &str) -> Option<String> {
    text.lines().rev().find_map(|line| {
        let rest = line.trim().strip_prefix(name)?;
        let (declared, value) = rest.split_once('=')?;
        let declared = declared.trim();
        if !declared.is_empty() && !declared.starts_with(':') {
            return None;
        }
        let value = value.trim();
        let quote = value.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        value[1..].split(quote).next().filter(|value| !value.is_empty()).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn assignments_of_text_are_read() {
        let text =
            "__all__ = ['a']\n__version__ = '2.4.0+rocm6.1'\nhip: Optional[str] = '6.1.4'\ncuda = None\nhipster = 'x'";
        assert_eq!(value(text, "__version__").as_deref(), Some("2.4.0+rocm6.1"));
        assert_eq!(value(text, "hip").as_deref(), Some("6.1.4"));
        assert_eq!(value(text, "cuda"), None);
        assert_eq!(value("hip = \"\"", "hip"), None);
    }
}
