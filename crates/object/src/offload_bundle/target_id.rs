//! The ids of bundle entries: `hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.

use std::fmt;

/// A processor with the features its code was compiled for.
///
/// A feature that is not named (`None`) means that the code runs with either setting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TargetId {
    /// `gfx90a`.
    pub processor: String,
    /// `xnack+` or `xnack-`.
    pub xnack: Option<bool>,
    /// `sramecc+` or `sramecc-`.
    pub sramecc: Option<bool>,
}

impl TargetId {
    /// Parses `gfx90a:sramecc+:xnack-`. `None` if it is not a processor with known features.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let processor = parts
            .next()
            .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))?;
        let mut id = TargetId { processor: processor.to_owned(), xnack: None, sramecc: None };
        for feature in parts {
            let place = match feature.get(..feature.len().checked_sub(1)?)? {
                "xnack" => &mut id.xnack,
                "sramecc" => &mut id.sramecc,
                _ => return None,
            };
            let value = match feature.as_bytes().last() {
                Some(b'+') => true,
                Some(b'-') => false,
                _ => return None,
            };
            if place.replace(value).is_some() {
                return None;
            }
        }
        Some(id)
    }

    /// Parses the id of a bundle entry: kind, four-part triple and target id, joined by `-`. `None` for the host's
    /// entry.
    #[must_use]
    pub fn of_entry(id: &str) -> Option<Self> {
        let mut parts = id.splitn(6, '-');
        let (_kind, architecture) = (parts.next()?, parts.next()?);
        let (_vendor, _system, _environment) = (parts.next()?, parts.next()?, parts.next()?);
        if architecture.starts_with("amdgcn") { Self::parse(parts.next()?) } else { None }
    }

    /// Whether code for `self` may run on a device whose settings are `device`.
    #[must_use]
    pub fn runs_on(&self, device: &TargetId) -> bool {
        let agrees = |mine: Option<bool>, its: Option<bool>| mine.is_none() || mine == its;
        self.processor == device.processor && agrees(self.xnack, device.xnack) && agrees(self.sramecc, device.sramecc)
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (name, value) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(value) = value {
                write!(f, ":{name}{}", if value { '+' } else { '-' })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_ids() {
        for (id, expected) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx90a", Some("gfx90a")),
            ("hip-amdgcn-amd-amdhsa--gfx906", Some("gfx906")),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", Some("gfx90a:sramecc+:xnack-")),
            ("hipv4-amdgcn-amd-amdhsa-unknown-gfx90a:xnack+", Some("gfx90a:xnack+")),
            ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", Some("gfx9-4-generic")),
            ("host-x86_64-unknown-linux-gnu", None),
            ("host-x86_64-unknown-linux--", None),
            ("host-x86_64-unknown-linux-gnu-", None),
            ("hipv4-amdgcn-amd-amdhsa--", None),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack", None),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+:xnack-", None),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:", None),
            ("", None),
        ] {
            assert_eq!(TargetId::of_entry(id).map(|id| id.to_string()).as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn what_runs_where() {
        let id = |text| TargetId::parse(text).expect(text);
        assert!(id("gfx90a").runs_on(&id("gfx90a:xnack+")));
        assert!(id("gfx90a:xnack+").runs_on(&id("gfx90a:xnack+:sramecc+")));
        assert!(!id("gfx90a:xnack-").runs_on(&id("gfx90a:xnack+")));
        assert!(!id("gfx90a").runs_on(&id("gfx906")));
    }
}
