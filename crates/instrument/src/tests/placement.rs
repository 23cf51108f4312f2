//! Which counters are kept.

use super::*;

/// Where the fewest counters take too much work to find, all are kept, and it is said.
#[test]
fn placement_falls_back_to_all_counters() {
    let target = target("gfx90a");
    let (save, restore): ([Value; 2], [Value; 3]) =
        ([s(20, 2), s(22, 2)], [Value::Reg(Reg::EXEC), Value::Reg(Reg::EXEC), s(20, 2)]);
    let pair: [(&str, &[Value]); 2] = [("s_and_saveexec_b64", &save), ("s_or_b64", &restore)];
    let (bytes, kernel) = kernel(target, &[pair[0], pair[1], pair[0], pair[1]]);
    let mut image = Image::new();
    image.add_code(ENTRY, &bytes);
    let program = Program::build(target, &image, [(kernel.name.clone(), BodyKind::Kernel, ENTRY)]);
    let analysis = Analysis::new(&program, &image);
    for mode in [CounterMode::Global, CounterMode::Lds, CounterMode::Register] {
        let planned = |placement, exhausted: bool| {
            let facts = KernelFacts::of(&analysis, &kernel, &[probe::BRANCHES]).expect("analysed");
            if exhausted {
                facts.exhaust_budget();
            }
            let (per_wave, max_occupancy_loss) = (false, None);
            let request = Request { mode, placement, index: 0, control: 0x9000, per_wave, max_occupancy_loss };
            instrument(&facts, &request).expect("planned")
        };
        let code = |planned: &Instrumented| format!("{:?}", planned.edits);
        let all = planned(CounterPlacement::All, false);
        let fewest = planned(CounterPlacement::Minimal, false);
        assert_eq!((all.placement_fallback, fewest.placement_fallback), (None, None), "{mode:?}");
        // In memory fewer counters must pay.
        assert!(mode == CounterMode::Global || code(&fewest) != code(&all), "{mode:?}");
        let fallen_back = planned(CounterPlacement::Minimal, true);
        assert_eq!(fallen_back.placement_fallback, Some(CounterPlacement::All), "{mode:?}");
        assert!(code(&fallen_back) == code(&all), "{mode:?}");
    }
}
