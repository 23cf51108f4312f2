//! The solver beside an iteration that visits nodes in no particular order.

use super::{Analysis, Edges, Graph, Lattice, iterate, solve};
use crate::cfg::Cfg;
use crate::kernel::Instructions;
use crate::kernel::random::{Random, random_kernel};

/// Two numbers that are joined differently: bits by union, and a constant that is lost where paths differ.
#[derive(Debug, Clone, PartialEq)]
struct State {
    bits: u64,
    constant: Option<u64>,
}

impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        self.bits |= other.bits;
        if self.constant != other.constant {
            self.constant = None;
        }
        *self != before
    }
}

/// What each node does.
#[derive(Debug, Clone)]
struct Effect {
    sets: u64,
    clears: u64,
    constant: Option<Option<u64>>,
}

impl Effect {
    fn random(random: &mut Random) -> Effect {
        let constant = match random.below(6) {
            0 => Some(None),
            1 | 2 => Some(Some(random.below(2))),
            _ => None,
        };
        Effect { sets: random.bits() & random.bits() & random.bits(), clears: random.bits() & random.bits(), constant }
    }

    fn apply(&self, state: &mut State) {
        state.bits = state.bits & !self.clears | self.sets;
        state.constant = self.constant.unwrap_or(state.constant);
    }
}

struct Effects {
    effects: Vec<Effect>,
    /// Of each node, the state of its last visit.
    last: Vec<Option<State>>,
    /// Nodes whose states are not kept.
    moved: Vec<bool>,
}

/// What the edges of even numbers from nodes of even numbers do besides.
fn on_edge(from: usize, number: usize, state: &State) -> Option<State> {
    (from % 2 == 0 && number % 2 == 0).then(|| State { bits: state.bits | 1 << (from % 64), ..state.clone() })
}

impl Effects {
    fn of(effects: &[Effect]) -> Effects {
        let moved = vec![false; effects.len()];
        Effects { effects: effects.to_vec(), last: vec![None; effects.len()], moved }
    }
}

impl Analysis for Effects {
    type Node = usize;
    type State = State;

    fn transfer(&mut self, node: usize, state: &mut State) {
        self.last[node] = Some(state.clone());
        self.effects[node].apply(state);
    }

    fn join(&mut self, _: usize, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }

    fn on_edge(&mut self, from: usize, number: usize, output: &State) -> Option<State> {
        on_edge(from, number, output)
    }

    fn keeps(&self, node: usize) -> bool {
        !self.moved[node]
    }
}

/// The equations, solved by going over all edges in a random order until one whole round changes nothing; joined by
/// itself, bit by bit.
fn chaotic(
    random: &mut Random,
    edges: &[Vec<usize>],
    effects: &[Effect],
    boundary: &[(usize, State)],
) -> Vec<Option<State>> {
    let mut inputs: Vec<Option<State>> = vec![None; edges.len()];
    boundary.iter().for_each(|(node, state)| inputs[*node] = Some(state.clone()));
    let numbered = |(from, to): (usize, &Vec<usize>)| -> Vec<(usize, usize, usize)> {
        to.iter().enumerate().map(|(number, to)| (from, number, *to)).collect()
    };
    let mut all: Vec<(usize, usize, usize)> = edges.iter().enumerate().flat_map(numbered).collect();
    loop {
        for place in (1..all.len()).rev() {
            all.swap(place, random.below(place as u64 + 1) as usize);
        }
        let mut holds = true;
        for &(from, number, to) in &all {
            let Some(mut out) = inputs[from].clone() else { continue };
            effects[from].apply(&mut out);
            let out = on_edge(from, number, &out).unwrap_or(out);
            let joined = match &inputs[to] {
                None => out,
                Some(old) => State {
                    bits: (0..64).filter(|bit| (old.bits | out.bits) >> bit & 1 == 1).map(|bit| 1 << bit).sum(),
                    constant: old.constant.filter(|_| old.constant == out.constant),
                },
            };
            holds &= inputs[to].as_ref() == Some(&joined);
            inputs[to] = Some(joined);
        }
        if holds {
            return inputs;
        }
    }
}

fn random_graph(random: &mut Random) -> Vec<Vec<usize>> {
    let nodes = 1 + random.below(90) as usize;
    // Chains, trees and tangles.
    let most = 1 + random.below(3);
    (0..nodes).map(|_| (0..random.below(most + 1)).map(|_| random.below(nodes as u64) as usize).collect()).collect()
}

#[test]
fn solutions_are_those_of_a_chaotic_iteration() {
    let mut random = Random::new(71);
    let mut merged = 0;
    for _ in 0..300 {
        let edges = random_graph(&mut random);
        let effects: Vec<Effect> = edges.iter().map(|_| Effect::random(&mut random)).collect();
        let entries = 1 + random.below(3);
        let mut boundary: Vec<(usize, State)> = Vec::new();
        for _ in 0..entries {
            let node = random.below(edges.len() as u64) as usize;
            if boundary.iter().all(|(other, _)| *other != node) {
                boundary.push((node, State { bits: random.bits(), constant: Some(random.below(2)) }));
            }
        }
        let expected = chaotic(&mut random, &edges, &effects, &boundary);
        let graph = Edges::new(edges.clone(), boundary.iter().map(|(node, _)| *node));
        let mut analysis = Effects::of(&effects);
        let solution = solve(&graph, &mut analysis, boundary.iter().cloned());
        assert_eq!(solution, expected, "{edges:?}");
        assert_eq!(analysis.last, expected, "the last visit has the state of the solution");
        merged += expected.iter().flatten().filter(|state| state.constant.is_none()).count();

        // States that are moved are not in the solution; the others are what they were.
        let mut analysis = Effects::of(&effects);
        for node in 0..edges.len() {
            let predecessors = edges.iter().flatten().filter(|to| **to == node).count();
            analysis.moved[node] = predecessors == 1 && boundary.iter().all(|(other, _)| *other != node);
        }
        let solution = solve(&graph, &mut analysis, boundary.iter().cloned());
        assert_eq!(analysis.last, expected);
        for node in (0..edges.len()).filter(|node| !analysis.moved[*node]) {
            assert_eq!(solution[node], expected[node]);
        }
    }
    assert!(merged > 1000, "{merged}");
}

#[test]
fn values_of_equations_are_those_of_a_chaotic_iteration() {
    let mut random = Random::new(72);
    for _ in 0..100 {
        let dependents = random_graph(&mut random);
        let own: Vec<u64> = dependents.iter().map(|_| 1 << random.below(64)).collect();
        let value_of = |node: usize, values: &[u64]| {
            let from = (0..dependents.len()).filter(|from| dependents[*from].contains(&node));
            from.fold(own[node], |all, from| all | values[from])
        };
        let mut expected = vec![0; own.len()];
        let mut holds = false;
        while !holds {
            for _ in 0..own.len() {
                let node = random.below(own.len() as u64) as usize;
                expected[node] = value_of(node, &expected);
            }
            holds = (0..own.len()).all(|node| expected[node] == value_of(node, &expected));
        }
        let mut values = vec![0; own.len()];
        iterate(&Edges::new(dependents.clone(), []), |node| {
            let value = value_of(node, &values);
            std::mem::replace(&mut values[node], value) != value
        });
        assert_eq!(values, expected);
    }
}

/// What holds of the order of every graph: each node once, by its rank; and without going back only if every
/// predecessor is before.
fn check_order<G: Graph>(graph: &G, nodes: usize) {
    let mut seen = vec![false; nodes];
    for (rank, node) in graph.order().iter().enumerate() {
        assert_eq!(graph.rank(*node), rank);
        assert!(!std::mem::replace(&mut seen[graph.index(*node)], true));
    }
    assert!(seen.iter().all(|seen| *seen));
    // A retreating edge is in a cycle.
    for node in graph.order() {
        for next in graph.successors(*node).filter(|next| graph.rank(*next) <= graph.rank(*node)) {
            let (mut reached, mut work) = (vec![false; nodes], vec![next]);
            while let Some(at) = work.pop() {
                if !std::mem::replace(&mut reached[graph.index(at)], true) {
                    work.extend(graph.successors(at));
                }
            }
            assert!(reached[graph.index(*node)]);
        }
    }
}

#[test]
fn predecessors_come_first_but_in_loops() {
    let mut random = Random::new(73);
    for _ in 0..300 {
        let edges = random_graph(&mut random);
        check_order(&Edges::new(edges.clone(), [0]), edges.len());
        let body = random_kernel(&mut random, 20);
        let cfg = Cfg::build(&body);
        check_order(&cfg.forward(), cfg.len());
        check_order(&cfg.backward(), cfg.len());
        check_order(&Instructions::of(&body), body.len());
    }
}
