//! What the target leaves to software holds around inserted code.

pub(crate) mod classes;
pub(crate) mod event_hazards;
pub(crate) mod expert_scheduling;
pub(crate) mod forwarding;
mod instruction_facts;
mod matrix;
mod rule_index;
mod wait_rule;
mod wait_rules;
pub(crate) mod wait_states;
