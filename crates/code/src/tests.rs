//! Hand-made code of no vendor: guards, scoreboards, tokens, distances, units and loops. Expected links are worked out
//! by hand.

use super::*;
use wavetap_base::entity::InstId;

fn reg(first: u32, units: u32) -> Location {
    Location { file: 0, first, units }
}

fn predicate(number: u32) -> Location {
    Location { file: 1, first: number, units: 1 }
}

fn at_p0(negated: bool) -> Guard {
    Guard { predicate: predicate(0), negated }
}

/// Makes instructions of 16 bytes each.
struct Listing {
    code: CodeBuilder<'static>,
    next: u64,
}

/// What of an instruction is not said.
fn nothing(text: &str) -> Instruction {
    Instruction::new(0, 16, text)
}

impl Listing {
    fn new(counters: Vec<Counter>) -> Listing {
        Listing { code: CodeBuilder::new("k", Properties::new("hand-made", 32), counters), next: 0 }
    }

    fn scoreboards() -> Listing {
        Listing::new((0..6).map(|number| Counter::named(format!("SB{number}"))).collect())
    }

    fn push(&mut self, instruction: Instruction) -> InstId {
        let address = self.next;
        self.next += 16;
        self.code.push(Instruction { address, ..instruction })
    }

    fn end(mut self) -> Code<'static> {
        self.push(Instruction { flow: Flow::Exit { exit: Exit::End, falls_through: false }, ..nothing("EXIT") });
        self.code.build().expect("well-formed code")
    }
}

fn writes(mut inst: Instruction, location: Location) -> Instruction {
    inst.writes.push(Write { location, partial: false });
    inst
}

fn reads(mut inst: Instruction, location: Location) -> Instruction {
    inst.reads.push(Read { location, role: ReadRole::Value });
    inst
}

fn guarded(inst: Instruction, guard: Guard) -> Instruction {
    Instruction { guard: Some(guard), ..inst }
}

fn counts(mut inst: Instruction, counter: u8, event: Event, order: Option<u8>) -> Instruction {
    inst.issues.push(Issue { counter: CounterId(counter), event, order });
    inst
}

fn waits(mut inst: Instruction, counter: u8, count: u8) -> Instruction {
    inst.waits.push(WaitFor { counter: CounterId(counter), count, name: None, guarded: false });
    inst
}

fn load(to: u32, scoreboard: u8) -> Instruction {
    writes(counts(nothing("LDG"), scoreboard, Event::Result, Some(0)), reg(to, 1))
}

fn branch(target: u64, falls_through: bool) -> Instruction {
    Instruction { flow: Flow::Branch { targets: [target].into_iter().collect(), falls_through }, ..nothing("BRA") }
}

/// By wait: what it waits for, and how surely.
fn links(code: &Code<'_>) -> Vec<(u32, Vec<(Operation, WaitCertainty)>)> {
    let of = |wait: &Wait| {
        (wait.inst.0, wait.operations.iter().map(|each| (each.operation, each.certainty)).collect::<Vec<_>>())
    };
    code.waits().iter().map(of).collect()
}

use WaitCertainty::{May, Must, Unordered};

fn inst(number: u32) -> Operation {
    Operation::Inst(InstId(number))
}

#[test]
fn two_loads_on_one_scoreboard_are_both_waited_for() {
    let mut listing = Listing::scoreboards();
    listing.push(load(4, 0));
    listing.push(load(5, 0));
    listing.push(load(6, 1));
    listing.push(waits(nothing("FADD"), 0, 0));
    listing.push(waits(nothing("FADD"), 0, 0));
    listing.push(waits(nothing("FADD"), 1, 0));
    let expected = [(3, vec![(inst(0), Must), (inst(1), Must)]), (4, Vec::new()), (5, vec![(inst(2), Must)])];
    assert_eq!(links(&listing.end()), expected);
}

#[test]
fn waits_for_some_left_are_exact_in_order_only() {
    let code = |order: [Option<u8>; 3]| {
        let mut listing = Listing::scoreboards();
        for (number, order) in order.into_iter().enumerate() {
            listing.push(writes(counts(nothing("LDG"), 0, Event::Result, order), reg(4 + number as u32, 1)));
        }
        listing.push(waits(nothing("DEPBAR.LE SB0, 0x1"), 0, 1));
        listing.push(waits(nothing("FADD"), 0, 0));
        links(&listing.end())
    };
    let in_order = [(3, vec![(inst(0), Must), (inst(1), Must)]), (4, vec![(inst(2), Must)])];
    assert_eq!(code([Some(0); 3]), in_order);
    let all = |certainty| vec![(inst(0), certainty), (inst(1), certainty), (inst(2), certainty)];
    assert_eq!(code([None; 3]), [(3, all(Unordered)), (4, all(May))]);
    assert_eq!(code([Some(0), Some(1), Some(0)])[0], (3, all(Unordered)));
}

#[test]
fn results_prove_that_operands_were_read_and_not_the_reverse() {
    let both = || counts(counts(nothing("LDG"), 0, Event::Result, None), 1, Event::Operands, None);
    let of = |first: u8, then: u8| {
        let mut listing = Listing::scoreboards();
        listing.push(both());
        listing.push(waits(nothing("x"), first, 0));
        listing.push(waits(nothing("y"), then, 0));
        links(&listing.end())
    };
    assert_eq!(of(0, 1), [(1, vec![(inst(0), Must)]), (2, Vec::new())]);
    assert_eq!(of(1, 0), [(1, vec![(inst(0), Must)]), (2, vec![(inst(0), Must)])]);
}

#[test]
fn what_is_issued_under_a_guard_or_on_one_path_may_be_there() {
    let mut listing = Listing::scoreboards();
    listing.push(guarded(load(4, 0), at_p0(false)));
    listing.push(guarded(load(4, 0), at_p0(true)));
    listing.push(branch(16 * 4, true));
    listing.push(load(5, 0));
    listing.push(waits(nothing("FADD"), 0, 0));
    let expected = [(4, vec![(inst(0), May), (inst(1), May), (inst(3), May)])];
    assert_eq!(links(&listing.end()), expected);
    // A guarded younger one proves nothing of the older.
    let mut listing = Listing::scoreboards();
    listing.push(load(4, 0));
    listing.push(guarded(load(5, 0), at_p0(false)));
    listing.push(waits(nothing("DEPBAR.LE SB0, 0x1"), 0, 1));
    listing.push(waits(nothing("FADD"), 0, 0));
    let expected = [(2, vec![(inst(0), May)]), (3, vec![(inst(0), May), (inst(1), May)])];
    assert_eq!(links(&listing.end()), expected);
}

#[test]
fn a_loop_carries_its_load_to_its_head() {
    let mut listing = Listing::scoreboards();
    listing.push(load(4, 2));
    let head = listing.push(waits(reads(nothing("FADD"), reg(4, 1)), 2, 0));
    listing.push(load(4, 2));
    listing.push(branch(16, true));
    let code = listing.end();
    assert_eq!(links(&code), [(1, vec![(inst(0), May), (inst(2), May)])]);
    assert_eq!(code.producers(head, Values::All), [InstId(0), InstId(2)]);
    let loops = code.graph().loops();
    assert_eq!((loops.all().len(), loops.irreducible()), (1, false));
    assert_eq!(loops.innermost(code.block_of(head)), Some(0));
    assert_eq!(loops.innermost(code.block_of(InstId(0))), None);
}

/// Copies in groups: the group's instruction has the scoreboard for those before it, and one group may stay in flight.
#[test]
fn units_in_order_let_one_scoreboard_stand_for_those_without() {
    let unit = |inst: Instruction| Instruction { unit: Some(3), ..inst };
    let mut listing = Listing::scoreboards();
    listing.push(unit(nothing("LDGSTS")));
    listing.push(unit(nothing("LDGSTS")));
    listing.push(unit(counts(nothing("LDGDEPBAR"), 0, Event::Result, Some(0))));
    listing.push(unit(nothing("LDGSTS")));
    listing.push(unit(counts(nothing("LDGDEPBAR"), 0, Event::Result, Some(0))));
    listing.push(waits(nothing("DEPBAR.LE SB0, 0x1"), 0, 1));
    listing.push(waits(nothing("DEPBAR.LE SB0, 0x0"), 0, 0));
    let code = listing.end();
    let expected =
        [(5, vec![(inst(0), Must), (inst(1), Must), (inst(2), Must)]), (6, vec![(inst(3), Must), (inst(4), Must)])];
    assert_eq!(links(&code), expected);
    let covered: Vec<_> = code.waits()[0].operations.iter().map(|each| each.covered_by).collect();
    assert_eq!(covered, [Some(InstId(2)), Some(InstId(2)), None]);

    // A younger one of the unit on another scoreboard proves the older one complete; of another unit it does not.
    let of = |other: u8| {
        let mut listing = Listing::scoreboards();
        listing.push(unit(load(4, 0)));
        listing.push(Instruction { unit: Some(other), ..load(5, 1) });
        listing.push(waits(nothing("FADD"), 1, 0));
        listing.push(waits(nothing("FADD"), 0, 0));
        links(&listing.end())
    };
    assert_eq!(of(3), [(2, vec![(inst(1), Must)]), (3, Vec::new())]);
    assert_eq!(of(4), [(2, vec![(inst(1), Must)]), (3, vec![(inst(0), Must)])]);
}

/// A pipe of which the last seven instructions have names: `F@2` waits for the one before the last and those before it.
#[test]
fn distances_count_back_in_a_pipe() {
    let pipe = || counts(nothing("mad"), 0, Event::Result, Some(0));
    let mut listing = Listing::new(vec![Counter { name: "F".into(), depth: Some(7) }]);
    for _ in 0..9 {
        listing.push(pipe());
    }
    let distance = |n: u8| {
        let mut inst = nothing("send");
        let name = Some(format!("F@{n}").into());
        inst.waits.push(WaitFor { counter: CounterId(0), count: n - 1, name, guarded: false });
        inst
    };
    listing.push(distance(2));
    listing.push(distance(1));
    let code = listing.end();
    // The two oldest cannot be named any more.
    assert_eq!(links(&code), [(9, (2..8).map(|id| (inst(id), Must)).collect()), (10, vec![(inst(8), Must)])]);
    assert_eq!(code.waits()[0].name.as_deref(), Some("F@2"));
}

#[test]
fn calls_leave_complete_or_clear() {
    let of = |effect: CallEffect| {
        let mut listing = Listing::scoreboards();
        listing.push(load(4, 0));
        listing.push(Instruction { flow: Flow::Call(effect), ..nothing("CALL") });
        listing.push(waits(nothing("FADD"), 0, 0));
        links(&listing.end())
    };
    let clears = CallEffect { may_write_anything: true, completes: true, leaves: false };
    assert_eq!(of(clears), [(2, Vec::new())]);
    let callee = Operation::Callee(InstId(1));
    assert_eq!(of(CallEffect::UNKNOWN), [(2, vec![(inst(0), May), (callee, May)])]);
    let mut listing = Listing::scoreboards();
    listing.code = listing.code.function();
    listing.push(waits(nothing("FADD"), 0, 0));
    assert_eq!(links(&listing.end()), [(0, vec![(Operation::Caller, May)])]);
}

#[test]
fn guarded_writes_keep_the_old_value() {
    let set = || writes(nothing("ISETP"), predicate(0));
    let write = || writes(nothing("MOV"), reg(4, 1));
    let read = || reads(nothing("FADD"), reg(4, 1));
    let of = |between: Vec<Instruction>, reader: Instruction| {
        let mut listing = Listing::scoreboards();
        listing.push(write());
        listing.push(set());
        between.into_iter().for_each(|inst| {
            listing.push(inst);
        });
        let reader = listing.push(reader);
        listing.end().producers(reader, Values::All).into_iter().map(|id| id.0).collect::<Vec<_>>()
    };
    let (holds, fails) = (at_p0(false), at_p0(true));
    assert_eq!(of(vec![write()], read()), [2]);
    assert_eq!(of(vec![guarded(write(), holds)], read()), [0, 2]);
    // The guard is the same value at both, or not.
    assert_eq!(of(vec![guarded(write(), holds)], guarded(read(), holds)), [2]);
    assert_eq!(of(vec![guarded(write(), holds)], guarded(read(), fails)), [0]);
    assert_eq!(of(vec![guarded(write(), holds), set()], guarded(read(), holds)), [0, 2]);
    assert_eq!(of(vec![guarded(write(), holds), set()], guarded(read(), fails)), [0, 2]);
    // A predicate that is written under itself: the guard of the use is the new value.
    let branch = || guarded(reads(nothing("BRA"), predicate(0)), fails);
    assert_eq!(of(vec![guarded(set(), holds)], branch()), [1, 2]);
    // What reads other lanes reads those for which the guard does not hold, too.
    let shuffle = || Instruction { crosses_lanes: true, ..guarded(read(), fails) };
    assert_eq!(of(vec![guarded(write(), holds)], shuffle()), [0, 2]);
    // Both halves are there: nothing older is read. One of two registers is written.
    let wide = || reads(nothing("DADD"), reg(4, 2));
    assert_eq!(of(vec![write()], wide()), [2]);
    let mut partial = write();
    partial.writes[0].partial = true;
    assert_eq!(of(vec![partial], read()), [0, 2]);
}

#[test]
fn stored_data_are_told_from_the_address() {
    let mut listing = Listing::scoreboards();
    listing.push(writes(nothing("address"), reg(2, 2)));
    listing.push(writes(nothing("data"), reg(4, 1)));
    let mut store = nothing("STG");
    store.reads.push(Read { location: reg(2, 2), role: ReadRole::Address });
    store.reads.push(Read { location: reg(4, 1), role: ReadRole::Data });
    let store = listing.push(store);
    let code = listing.end();
    assert_eq!(code.producers(store, Values::All), [InstId(0), InstId(1)]);
    assert_eq!(code.producers(store, Values::Stored), [InstId(1)]);
}

#[test]
fn calls_may_have_written_what_they_say() {
    let mut listing = Listing::scoreboards();
    listing.push(writes(nothing("MOV"), reg(4, 1)));
    listing.push(Instruction { flow: Flow::Call(CallEffect::UNKNOWN), ..nothing("CALL") });
    let add = listing.push(reads(nothing("FADD"), reg(4, 1)));
    let code = listing.end();
    let expected = [Definition::Inst(InstId(0)), Definition::Call(InstId(1))];
    assert_eq!(reaching(&code, add, reg(4, 1)), expected);
    assert_eq!(reaching(&code, add, reg(5, 1)), [Definition::Entry, Definition::Call(InstId(1))]);
}

#[test]
fn padding_after_the_end_makes_no_loop_of_the_code() {
    let mut listing = Listing::scoreboards();
    listing.push(Instruction { flow: Flow::Exit { exit: Exit::End, falls_through: false }, ..nothing("EXIT") });
    listing.push(branch(16, false));
    listing.push(waits(nothing("NOP"), 0, 0));
    let code = listing.end();
    assert!(!code.graph().loops().irreducible());
    assert_eq!(code.waits(), [], "no wave comes there");
}

#[test]
fn malformed_code_is_refused() {
    let refused = |instructions: Vec<Instruction>| {
        let mut code = CodeBuilder::new("k", Properties::new("hand-made", 32), vec![Counter::named("SB0")]);
        for inst in instructions {
            code.push(inst);
        }
        code.build().expect_err("malformed").to_string()
    };
    let end = || Instruction { flow: Flow::Exit { exit: Exit::End, falls_through: false }, ..nothing("EXIT") };
    assert!(refused(Vec::new()).contains("without instructions"));
    assert!(refused(vec![nothing("NOP"), end()]).contains("out of order"));
    assert!(refused(vec![nothing("NOP")]).contains("no end"));
    assert!(refused(vec![branch(8, false), Instruction { address: 16, ..end() }]).contains("no instruction begins"));
    assert!(refused(vec![waits(end(), 1, 0)]).contains("counter"));
}

/// A cycle with two entries is no loop; nested loops have parents.
#[test]
fn loops_and_irreducible_cycles() {
    let mut listing = Listing::scoreboards();
    listing.push(branch(16 * 2, true));
    listing.push(nothing("a"));
    listing.push(nothing("b"));
    listing.push(branch(16, true));
    assert!(listing.end().graph().loops().irreducible());
    let mut listing = Listing::scoreboards();
    listing.push(nothing("outer"));
    listing.push(nothing("inner"));
    listing.push(branch(16, true));
    listing.push(branch(0, true));
    let code = listing.end();
    let loops = code.graph().loops();
    assert!(!loops.irreducible());
    assert_eq!(loops.all().iter().map(|each| each.parent).collect::<Vec<_>>(), [None, Some(0)]);
    assert_eq!(loops.around(code.block_of(InstId(1))).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(loops.around(code.block_of(InstId(0))).collect::<Vec<_>>(), [0]);
}
