//! The entry points for graphs as a whole: making, looking at, instantiating, launching.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::fs;

use crate::entry_point::entry_points;
use crate::graphs::{Difference, UserObject};
use crate::handles::handle;
use crate::lock::runtime;
use crate::node_types::{NodeType, type_of};
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::{HostFunction, StreamOp};
use crate::submit::{name_nodes, submit};
use crate::tasks::wait_for_all;

/// `hipGraphExecUpdateResult`.
const UPDATE_SUCCESS: c_int = 0;
const UPDATE_TOPOLOGY_CHANGED: c_int = 2;
const UPDATE_TYPE_CHANGED: c_int = 3;

/// `hipGraphUserObjectMove`: the caller's references become the graph's.
const MOVE_REFERENCES: c_uint = 1;

/// Stores as many elements as there is room for, and how many there are. Without an array only their number is asked
/// for.
fn store_list<T: Copy + Default>(out: *mut T, count: *mut usize, list: &[T]) -> Outcome {
    let room = if out.is_null() { 0 } else { raw::load(count)? };
    for at in 0..room {
        raw::store(out.wrapping_add(at), list.get(at).copied().unwrap_or_default())?;
    }
    raw::store(count, if out.is_null() { list.len() } else { list.len().min(room) })
}

/// Waits until nothing uses memory that a graph frees, if there is any.
fn wait_for_memory(allocations: usize) -> Outcome {
    if allocations == 0 { Ok(()) } else { wait_for_all() }
}

/// Calls the destructors of user objects without references.
fn destroy_objects(objects: Vec<UserObject>) {
    for object in objects {
        (object.destroy)(object.data as *mut c_void);
    }
}

impl Runtime {
    /// Gives references to a user object back; the object comes out when they were the last.
    fn release(&mut self, object: usize, count: u32) -> Outcome<Option<UserObject>> {
        let entry = self.graphs.objects.get_mut(&object).ok_or(INVALID_VALUE)?;
        entry.references = entry.references.checked_sub(count).ok_or(INVALID_VALUE)?;
        Ok(if entry.references == 0 { self.graphs.objects.remove(&object) } else { None })
    }

    fn release_all(&mut self, objects: &HashMap<usize, u32>) -> Vec<UserObject> {
        objects.iter().filter_map(|(object, count)| self.release(*object, *count).ok().flatten()).collect()
    }

    fn instantiate(&mut self, graph: usize, flags: u64) -> Outcome<usize> {
        let youngest = self.settings.strict;
        let executable = self.graphs.instantiate(graph, flags, youngest)?;
        for (object, count) in self.graphs.executable(executable)?.objects.clone() {
            if let Some(object) = self.graphs.objects.get_mut(&object) {
                object.references += count;
            }
        }
        Ok(executable)
    }
}

fn instantiate(out: *mut usize, graph: usize, flags: u64) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let executable = runtime().instantiate(graph, flags)?;
    raw::store(out, executable)
}

/// `hipGraphInstantiateParams`.
#[repr(C)]
#[derive(Clone, Copy)]
struct InstantiateParameters {
    error_node: usize,
    flags: u64,
    result: c_int,
    upload_stream: usize,
}

/// Pairs of nodes that two arrays list.
fn pairs(from: *const usize, to: *const usize, count: usize) -> Outcome<Vec<(usize, usize)>> {
    Ok(raw::array(from, count)?.into_iter().zip(raw::array(to, count)?).collect())
}

fn dot(runtime: &Runtime, graph: usize) -> Outcome<String> {
    let mut text = String::from("digraph graph_1 {\n");
    let nodes = &runtime.graphs.graph(graph)?.nodes;
    let number = |node: usize| nodes.iter().position(|other| *other == node).unwrap_or(0);
    for node in nodes {
        let operation = &runtime.graphs.node(*node)?.operation;
        let label = match operation {
            StreamOp::Kernel(launch) => wavetap::code_object::demangle(&launch.kernel.name).into_owned(),
            other => format!("{:?}", type_of(other)),
        };
        let _ = writeln!(text, "  node_{} [label={label:?}];", number(*node));
    }
    for (from, to) in runtime.graphs.edges(graph)? {
        let _ = writeln!(text, "  node_{} -> node_{};", number(from), number(to));
    }
    text.push_str("}\n");
    Ok(text)
}

entry_points! {
    /// Creates an empty graph.
    fn hipGraphCreate(out: *mut usize, flags: c_uint) {
        if out.is_null() || flags != 0 {
            return Err(INVALID_VALUE);
        }
        let graph = runtime().graphs.create();
        raw::store(out, graph)
    }

    /// Ends a graph. What was instantiated from it stays.
    fn hipGraphDestroy(graph: usize) {
        let memory = runtime().graphs.graph(graph)?.memory.len();
        wait_for_memory(memory)?;
        let mut locked = runtime();
        let removed = locked.graphs.remove(graph)?;
        let objects = locked.release_all(&removed.objects);
        locked.give_back(removed.memory);
        drop(locked);
        destroy_objects(objects);
        Ok(())
    }

    /// Copies a graph.
    fn hipGraphClone(out: *mut usize, graph: usize) {
        let copy = runtime().graphs.copy(graph)?;
        raw::store(out, copy)
    }

    /// The node of a copied graph that was copied from a node.
    fn hipGraphNodeFindInClone(out: *mut usize, original: usize, clone: usize) {
        let node = runtime().graphs.find_in_clone(clone, original)?;
        raw::store(out, node)
    }

    /// The nodes of a graph.
    fn hipGraphGetNodes(graph: usize, out: *mut usize, count: *mut usize) {
        let nodes = runtime().graphs.graph(graph)?.nodes.clone();
        store_list(out, count, &nodes)
    }

    /// The nodes of a graph that come after no other.
    fn hipGraphGetRootNodes(graph: usize, out: *mut usize, count: *mut usize) {
        let runtime = runtime();
        let mut roots = Vec::new();
        for node in &runtime.graphs.graph(graph)?.nodes {
            if runtime.graphs.node(*node)?.after.is_empty() {
                roots.push(*node);
            }
        }
        store_list(out, count, &roots)
    }

    /// The edges of a graph.
    fn hipGraphGetEdges(graph: usize, from: *mut usize, to: *mut usize, count: *mut usize) {
        let edges = runtime().graphs.edges(graph)?;
        if from.is_null() != to.is_null() {
            return Err(INVALID_VALUE);
        }
        let (starts, ends): (Vec<usize>, Vec<usize>) = edges.into_iter().unzip();
        if !from.is_null() {
            let room = raw::load(count)?;
            store_list(from, count, &starts)?;
            raw::store(count, room)?;
        }
        store_list(to, count, &ends)
    }

    /// Adds edges.
    fn hipGraphAddDependencies(graph: usize, from: *const usize, to: *const usize, count: usize) {
        let edges = pairs(from, to, count)?;
        runtime().graphs.connect(graph, &edges, true)
    }

    /// Removes edges.
    fn hipGraphRemoveDependencies(graph: usize, from: *const usize, to: *const usize, count: usize) {
        let edges = pairs(from, to, count)?;
        runtime().graphs.connect(graph, &edges, false)
    }

    /// The nodes that a node comes directly after.
    fn hipGraphNodeGetDependencies(node: usize, out: *mut usize, count: *mut usize) {
        let after = runtime().graphs.node(node)?.after.clone();
        store_list(out, count, &after)
    }

    /// The nodes that come directly after a node.
    fn hipGraphNodeGetDependentNodes(node: usize, out: *mut usize, count: *mut usize) {
        let runtime = runtime();
        let edges = runtime.graphs.edges(runtime.graphs.node(node)?.graph)?;
        let later: Vec<usize> = edges.into_iter().filter(|(from, _)| *from == node).map(|(_, to)| to).collect();
        store_list(out, count, &later)
    }

    /// What sort of node a node is.
    fn hipGraphNodeGetType(node: usize, out: *mut c_int) {
        let kind = type_of(&runtime().graphs.node(node)?.operation);
        raw::store(out, kind.number())
    }

    /// Removes a node.
    fn hipGraphDestroyNode(node: usize) {
        runtime().graphs.remove_node(node)
    }

    /// Writes a graph in the language of Graphviz.
    fn hipGraphDebugDotPrint(graph: usize, path: *const c_char, _flags: c_uint) {
        let text = dot(&runtime(), graph)?;
        fs::write(raw::string(path)?, text).map_err(|_| OPERATING_SYSTEM)
    }

    /// Instantiates a graph.
    fn hipGraphInstantiate(out: *mut usize, graph: usize, error_node: *mut usize, log: *mut c_char, size: usize) {
        raw::store_optional(error_node, 0);
        if size > 0 {
            raw::store_optional(log, 0);
        }
        instantiate(out, graph, 0)
    }

    /// Instantiates a graph.
    fn hipGraphInstantiateWithFlags(out: *mut usize, graph: usize, flags: u64) {
        instantiate(out, graph, flags)
    }

    /// Instantiates a graph.
    fn hipGraphInstantiateWithParams(out: *mut usize, graph: usize, parameters: *mut c_void) {
        let parameters = parameters.cast::<InstantiateParameters>();
        let of = raw::load(parameters)?;
        let result = instantiate(out, graph, of.flags);
        // `hipGraphInstantiateSuccess` and `hipGraphInstantiateInvalidStructure`.
        let code = if result.is_ok() { 0 } else { 2 };
        raw::store(parameters, InstantiateParameters { error_node: 0, result: code, ..of })?;
        result
    }

    /// Runs an instantiated graph.
    fn hipGraphLaunch / hipGraphLaunch_spt(executable: usize, stream: *mut c_void) {
        let steps = {
            let mut runtime = runtime();
            let mut steps = runtime.steps_of_launch(executable)?;
            let number = runtime.graphs.executable(executable)?.number;
            if runtime.settings.graph_nodes {
                name_nodes(&mut steps, &format!("graph {number}"));
            }
            steps
        };
        submit(stream, StreamOp::Steps(steps))
    }

    /// Prepares an instantiated graph; nothing needs to be done.
    fn hipGraphUpload(executable: usize, stream: *mut c_void) {
        let mut runtime = runtime();
        runtime.graphs.executable(executable)?;
        runtime.streams.stream(stream).map(|_| ())
    }

    /// Ends an instantiated graph.
    fn hipGraphExecDestroy(executable: usize) {
        let memory = runtime().graphs.executable(executable)?.memory.len();
        wait_for_memory(memory)?;
        let mut locked = runtime();
        let removed = locked.graphs.remove_executable(executable)?;
        let objects = locked.release_all(&removed.objects);
        locked.give_back(removed.memory);
        drop(locked);
        destroy_objects(objects);
        Ok(())
    }

    /// The flags a graph was instantiated with.
    fn hipGraphExecGetFlags(executable: usize, out: *mut u64) {
        let flags = runtime().graphs.executable(executable)?.flags;
        raw::store(out, flags)
    }

    /// Gives an instantiated graph the operations of a graph of the same shape.
    fn hipGraphExecUpdate(executable: usize, graph: usize, error_node: *mut usize, result: *mut c_int) {
        let mut runtime = runtime();
        let youngest = runtime.settings.strict;
        let outcome = runtime.graphs.update(executable, graph, youngest)?;
        let (node, code) = match outcome {
            Ok(()) => (0, UPDATE_SUCCESS),
            Err((node, Difference::Topology)) => (node, UPDATE_TOPOLOGY_CHANGED),
            Err((node, Difference::Kind)) => (node, UPDATE_TYPE_CHANGED),
        };
        raw::store_optional(error_node, node);
        raw::store_optional(result, code);
        if code == UPDATE_SUCCESS { Ok(()) } else { Err(GRAPH_EXEC_UPDATE_FAILURE) }
    }

    /// Switches a kernel, copy or fill of an instantiated graph on or off.
    fn hipGraphNodeSetEnabled(executable: usize, node: usize, enabled: c_uint) {
        let mut runtime = runtime();
        let step = runtime.graphs.step(executable, node)?;
        if !matches!(type_of(&step.operation), NodeType::Kernel | NodeType::Copy | NodeType::Fill) {
            return Err(INVALID_VALUE);
        }
        step.enabled = enabled != 0;
        Ok(())
    }

    /// Whether an operation of an instantiated graph is on.
    fn hipGraphNodeGetEnabled(executable: usize, node: usize, out: *mut c_uint) {
        let enabled = runtime().graphs.step(executable, node)?.enabled;
        raw::store(out, enabled.into())
    }

    /// Creates an object that graphs keep alive; a function of the program ends it.
    fn hipUserObjectCreate(
        out: *mut usize, data: *mut c_void, destroy: Option<HostFunction>, references: c_uint, _flags: c_uint
    ) {
        let destroy = destroy.ok_or(INVALID_VALUE)?;
        if out.is_null() || references == 0 {
            return Err(INVALID_VALUE);
        }
        let object = handle();
        runtime().graphs.objects.insert(object, UserObject { data: data as usize, destroy, references });
        raw::store(out, object)
    }

    /// Gives references to an object back.
    fn hipUserObjectRelease(object: usize, count: c_uint) {
        let destroyed = runtime().release(object, count)?;
        destroy_objects(destroyed.into_iter().collect());
        Ok(())
    }

    /// Takes more references to an object.
    fn hipUserObjectRetain(object: usize, count: c_uint) {
        let mut runtime = runtime();
        let object = runtime.graphs.objects.get_mut(&object).ok_or(INVALID_VALUE)?;
        object.references = object.references.checked_add(count).ok_or(INVALID_VALUE)?;
        Ok(())
    }

    /// Lets a graph keep an object alive.
    fn hipGraphRetainUserObject(graph: usize, object: usize, count: c_uint, flags: c_uint) {
        let mut runtime = runtime();
        runtime.graphs.graph(graph)?;
        let of = runtime.graphs.objects.get_mut(&object).ok_or(INVALID_VALUE)?;
        if flags & MOVE_REFERENCES == 0 {
            of.references = of.references.checked_add(count).ok_or(INVALID_VALUE)?;
        } else if of.references < count {
            return Err(INVALID_VALUE);
        }
        *runtime.graphs.graph_mut(graph)?.objects.entry(object).or_default() += count;
        Ok(())
    }

    /// Ends what [`hipGraphRetainUserObject`] began.
    fn hipGraphReleaseUserObject(graph: usize, object: usize, count: c_uint) {
        let mut locked = runtime();
        let held = locked.graphs.graph_mut(graph)?.objects.get_mut(&object).ok_or(INVALID_VALUE)?;
        *held = held.checked_sub(count).ok_or(INVALID_VALUE)?;
        let destroyed = locked.release(object, count)?;
        drop(locked);
        destroy_objects(destroyed.into_iter().collect());
        Ok(())
    }
}
