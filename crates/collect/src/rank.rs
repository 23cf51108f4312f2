//! The rank of a process: its number among those that one launcher (MPI, Slurm) has started.

use wavetap_profile::file::{Backend, Origin, Profile};

/// Variables in which launchers tell a process its rank, in the order in which they are looked at: Open MPI, PMIx, PMI
/// (MPICH and its relatives), MVAPICH2, Slurm. Slurm is the last because a batch script has its variable, too, and
/// passes it on to what `mpirun` starts there.
pub const VARIABLES: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"];

/// The rank that the first of [`VARIABLES`] says which is set to a number; none if none is.
pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    VARIABLES.iter().find_map(|name| variable(name)?.parse().ok())
}

/// The rank of this process.
#[must_use]
pub fn of_process() -> Option<u32> {
    of(|name| std::env::var(name).ok())
}

/// An empty profile of this process: with its rank and the host's name, if it has a rank.
#[must_use]
pub fn profile(origin: Origin, backend: Backend) -> Profile {
    let rank = of_process();
    let hostname = rank.map(|_| rustix::system::uname().nodename().to_string_lossy().into_owned());
    Profile { rank, hostname, ..Profile::new(origin, backend) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_variables(set: &[(&str, &str)]) -> Option<u32> {
        of(|name| set.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn an_mpi_launcher_comes_before_the_batch_system() {
        assert_eq!(of_variables(&[("SLURM_PROCID", "0"), ("PMI_RANK", "7")]), Some(7));
        for name in VARIABLES {
            assert_eq!(of_variables(&[(name, "12")]), Some(12), "{name}");
        }
    }

    #[test]
    fn what_is_no_number_is_no_rank() {
        for value in ["", "-1", "one", "../../etc", "4294967296"] {
            assert_eq!(of_variables(&[("PMI_RANK", value)]), None, "{value}");
        }
        assert_eq!(of_variables(&[("PMI_RANK", ""), ("SLURM_PROCID", "2")]), Some(2));
    }
}
