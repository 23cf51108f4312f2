//! Findings of several orders of workgroups and waves.

use wavetap_profile::check::{Finding, FoundIn};

/// Each place once, as the first order found it, with how many had it. The orders come with their seeds.
#[must_use]
pub fn merge(orders: Vec<(u64, Vec<Finding>)>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for (seed, findings) in orders {
        for mut finding in findings {
            let known = all.iter_mut().find(|known| known.place() == finding.place());
            match known.and_then(|known| known.schedules.as_mut()) {
                Some(found) => found.count += 1,
                None => {
                    finding.schedules = Some(FoundIn { count: 1, first: seed });
                    all.push(finding);
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::{Class, HostCall};

    #[test]
    fn places_are_counted_by_order() {
        let found = |function: &str| {
            let mut finding = Finding::new(Class::Leak, function);
            finding.call = Some(HostCall { function: function.to_owned(), stack: Vec::new() });
            finding
        };
        let merged = merge(vec![(0, vec![found("a")]), (1, vec![found("b"), found("a")]), (2, vec![found("b")])]);
        let counts: Vec<_> =
            merged.iter().map(|it| (it.message.as_str(), it.schedules.map(|it| (it.count, it.first)))).collect();
        assert_eq!(counts, [("a", Some((2, 0))), ("b", Some((2, 1)))]);
    }
}
