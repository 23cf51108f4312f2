//! The graph that slicers see is the one that the analyses work on.

use crate::build::graph;
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::kernel::random::{Random, random_kernel};

#[test]
fn graphs_have_the_same_order_and_loops() {
    let mut random = Random::new(7);
    let (mut nested, mut irreducible) = (0, 0);
    for _ in 0..500 {
        let body = random_kernel(&mut random, 24);
        let cfg = Cfg::build(&body);
        let graph = graph(&cfg);
        assert_eq!((graph.len(), graph.entry()), (cfg.len(), cfg.entry()));
        assert_eq!(graph.reverse_postorder(), cfg.reverse_postorder());
        let (loops, expected) = (graph.loops(), cfg.loops());
        assert_eq!(loops.irreducible(), expected.irreducible());
        assert_eq!(loops.all().len(), expected.all().len());
        for (found, expected) in loops.all().iter().zip(expected.all()) {
            assert_eq!((found.header, &found.blocks), (expected.header, &expected.blocks));
            assert_eq!(found.parent, expected.parent);
            nested += usize::from(found.parent.is_some());
        }
        irreducible += usize::from(loops.irreducible());
        for block in cfg.ids() {
            assert_eq!(loops.innermost(block), expected.innermost(block));
            let ends = |edges: &[wavetap_analysis::cfg::Edge]| edges.iter().map(|edge| edge.block).collect::<Vec<_>>();
            let of_graph = |edges: &[wavetap_code::Edge]| edges.iter().map(|edge| edge.block).collect::<Vec<_>>();
            assert_eq!(of_graph(&graph.block(block).predecessors), ends(&cfg.block(block).predecessors));
            assert_eq!(of_graph(&graph.block(block).successors), ends(&cfg.block(block).successors));
        }
        for id in body.ids() {
            assert_eq!(graph.block_of(id), cfg.block_of(id));
        }
    }
    assert!(nested > 50 && irreducible > 50, "{nested} {irreducible}");
}
