//! The text of a kernel: declarations, statements, expressions.

use std::fmt::Write as _;

use super::{ARRAY, INPUT, Plan, SUMS, WORDS};
use crate::random::Random;

/// How many statements a block inside a block has at the most.
const INNER: usize = 4;
/// How deep statements lie in one another.
const DEEPEST: usize = 4;

/// Where a statement is.
#[derive(Debug, Clone, Copy)]
struct At {
    depth: usize,
    /// All lanes of the workgroup are there together.
    together: bool,
    /// Loops around it.
    loops: usize,
    /// Inside a loop that may be left and gone on with.
    exits: bool,
    /// In a function: neither buffers nor LDS.
    function: bool,
}

pub(super) struct Writer<'p> {
    plan: &'p Plan,
    name: &'p str,
    random: Random,
    pub(super) text: String,
    indent: usize,
    /// What may be assigned to.
    variables: Vec<String>,
    /// What may only be read: counters of loops, parameters.
    constants: Vec<String>,
    /// The same for the whole workgroup.
    uniforms: Vec<String>,
    /// Functions that may be called from here.
    callable: usize,
    fresh: usize,
    /// Statements that may still be written.
    left: usize,
}

impl<'p> Writer<'p> {
    pub(super) fn new(plan: &'p Plan, name: &'p str, random: Random) -> Writer<'p> {
        Writer {
            plan,
            name,
            random,
            text: String::new(),
            indent: 0,
            variables: Vec::new(),
            constants: Vec::new(),
            uniforms: Vec::new(),
            callable: 0,
            fresh: 0,
            left: 0,
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.indent -= usize::from(line.starts_with('}'));
        writeln!(self.text, "{:1$}{line}", "", 4 * self.indent).expect("writing to a string");
        self.indent += usize::from(line.ends_with('{'));
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.fresh += 1;
        format!("{prefix}{}", self.fresh)
    }

    /// The functions that the kernel calls: each may call those before it, one may call itself.
    pub(super) fn functions(&mut self) {
        let name = self.name;
        for n in 0..self.plan.functions {
            self.line(&format!("NOINLINE u32 {name}_f{n}(u32 a, u32 b) {{"));
            self.variables = vec!["a".into(), "b".into(), "r".into()];
            self.line("u32 r = a ^ rotl(b, 9);");
            if self.random.chance(30) {
                self.line(&format!("u32 t[{ARRAY}];"));
                self.line(&format!("for (u32 k = 0; k < {ARRAY}; k++) t[k] = a * k + b;"));
                self.line(&format!("r += t[b % {ARRAY}] + t[(a >> 7) % {ARRAY}];"));
            }
            self.callable = n;
            self.left = 8;
            let statements = 1 + self.random.below(3);
            let at = At { depth: 2, together: false, loops: 1, exits: false, function: true };
            self.statements(statements, at);
            if self.random.chance(30) {
                let condition = self.condition(1);
                self.line(&format!("if ({condition}) return r * 5;"));
            }
            self.line("return r + (a ^ b);");
            self.line("}");
        }
        if self.plan.recursion {
            self.variables = vec!["x".into()];
            self.constants = vec!["d".into()];
            self.line(&format!("NOINLINE u32 {name}_deep(u32 d, u32 x) {{"));
            self.line("if (d == 0) return x * 0x9e3779b1u;");
            let step = self.expression(2);
            let (condition, again) = (self.condition(1), self.condition(1));
            self.line(&format!("if ({condition}) x ^= {step};"));
            self.line(&format!("x = {name}_deep(d - 1, x + d);"));
            if self.random.chance(50) {
                self.line(&format!("if ({again}) x += {name}_deep(d - 1, x ^ 0x55);"));
            }
            self.line("return x ^ x >> 11;");
            self.line("}");
            self.constants.clear();
        }
        self.callable = self.plan.functions;
        if self.plan.pointers {
            self.line(&format!("typedef u32 (*{name}_operation)(u32, u32);"));
            let several: Vec<String> = (0..self.plan.functions).map(|n| format!("{name}_f{n}")).collect();
            self.line(&format!("NOINLINE {name}_operation {name}_chosen(u32 x) {{"));
            for (n, function) in several.iter().enumerate().skip(1) {
                self.line(&format!("if (x % {} == {n}) return {function};", several.len()));
            }
            self.line(&format!("return {};", several[0]));
            self.line("}");
        }
        self.variables.clear();
    }

    /// What is between the braces of the kernel.
    pub(super) fn body(&mut self) {
        let plan = self.plan;
        let [x, y, _] = plan.grid;
        let items: u32 = plan.group.iter().product();
        self.line(&format!("u32 i = global_id(0) + {x} * (global_id(1) + {y} * global_id(2));"));
        let [gx, gy, _] = plan.group;
        self.line(&format!("u32 l = local_id(0) + {gx} * (local_id(1) + {gy} * local_id(2));"));
        self.line("u32 g = group_id(0) + 3 * group_id(1) + 5 * group_id(2);");
        if plan.shared {
            self.line(&format!("SHARED u32 shared[{items}];"));
        }
        if plan.dynamic {
            self.line("DYNAMIC_SHARED(u32, dynamic);");
        }
        for n in 0..plan.uniforms {
            let (name, step) = (format!("s{n}"), 1 + self.random.below(13));
            self.line(&format!("u32 {name} = in[(g * {step} + {n}) % {INPUT}];"));
            self.uniforms.push(name);
        }
        for n in 0..plan.live {
            let (name, step) = (format!("v{n}"), 1 + 2 * self.random.below(50));
            self.line(&format!("u32 {name} = in[(i * {step} + {}) % {INPUT}];", n * 7));
            self.variables.push(name);
        }
        if plan.array {
            self.line(&format!("u32 a[{ARRAY}];"));
            self.line(&format!("for (u32 k = 0; k < {ARRAY}; k++) a[k] = in[(i + 3 * k) % {INPUT}];"));
        }
        self.constants = ["i", "l", "g"].map(str::to_owned).to_vec();
        let at = At { depth: 0, together: true, loops: 0, exits: false, function: false };
        let half = plan.statements / 2;
        self.block(half, at);
        self.stir();
        self.block(half, at);
        // After the last barrier lanes may leave for good.
        self.block(8, At { together: false, ..at });
        let all: Vec<String> = self.variables.iter().chain(&self.uniforms).cloned().collect();
        if self.random.chance(40) {
            let (condition, value) = (self.condition(2), self.expression(2));
            self.line(&format!("if ({condition}) {{"));
            self.line(&format!("out[{WORDS} * i] = {value};"));
            self.line("return;");
            self.line("}");
        }
        self.line("u32 r = l;");
        for name in all {
            self.line(&format!("r = rotl(r, 5) ^ {name};"));
        }
        if plan.array {
            self.line(&format!("for (u32 k = 0; k < {ARRAY}; k++) r = r * 31 + a[k];"));
        }
        self.line(&format!("out[{WORDS} * i] = r;"));
    }

    /// Every value is changed by another in a loop, so that all of them live at the same time.
    fn stir(&mut self) {
        let counter = self.fresh("k");
        self.line(&format!("for (u32 {counter} = 0; {counter} < 2; {counter}++) {{"));
        for names in [self.uniforms.clone(), self.variables.clone()] {
            for (n, name) in names.iter().enumerate() {
                let other = &names[(n * 7 + 3) % names.len()];
                let operation = self.random.of(&["+", "^", "-"]);
                self.line(&format!("{name} = ({name} << 3 | {name} >> 29) {operation} {other};"));
            }
        }
        self.line("}");
    }

    fn statements(&mut self, count: usize, at: At) {
        for _ in 0..count {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                return self.assignment();
            }
            self.statement(at);
        }
    }

    /// So many statements, those inside others counted.
    fn block(&mut self, count: usize, at: At) {
        self.left = count;
        while self.left > 0 {
            self.statements(1, at);
        }
    }

    fn inner(&mut self, at: At) {
        let count = 1 + self.random.below(INNER);
        self.statements(count, At { depth: at.depth + 1, ..at });
    }

    fn statement(&mut self, at: At) {
        let simple = at.depth >= DEEPEST;
        match self.random.below(20) {
            0..=2 if !simple => self.branch(at),
            3 | 4 if !simple => self.uniform_branch(at),
            5..=7 if !simple && at.loops < 3 => self.counted_loop(at),
            8 if !simple && at.loops < 2 => self.while_loop(at),
            9 if !simple => self.switch(at),
            10 if self.callable > 0 && at.loops < 3 => self.call(at),
            11 if !at.function => self.memory(),
            12 if at.together => self.cooperation(),
            13 if at.exits => {
                let condition = self.condition(1);
                let way = self.random.of(&["break", "continue"]);
                self.line(&format!("if ({condition}) {way};"));
            }
            14 if self.plan.array && !at.function => {
                let (index, value) = (self.expression(1), self.expression(1));
                self.line(&format!("a[({index}) % {ARRAY}] ^= {value};"));
            }
            15 => self.wide(),
            _ => self.assignment(),
        }
    }

    fn target(&mut self) -> String {
        let n = self.random.below(self.variables.len());
        self.variables[n].clone()
    }

    fn assignment(&mut self) {
        let (target, value) = (self.target(), self.expression(3));
        let operation = self.random.of(&["=", "+=", "^=", "-=", "*=", "|="]);
        self.line(&format!("{target} {operation} {value};"));
    }

    fn branch(&mut self, at: At) {
        let at = At { together: false, ..at };
        let condition = self.condition(2);
        let others = self.random.below(3);
        self.if_else(&condition, others, at);
    }

    /// All lanes of a workgroup go one way.
    fn uniform_branch(&mut self, at: At) {
        let condition = match self.uniforms.len() {
            0 if at.function => self.condition(1),
            0 => format!("g % 3 == {}", self.random.below(3)),
            n => format!("{} % 5 < {}", self.uniforms[self.random.below(n)].clone(), 1 + self.random.below(4)),
        };
        let at = At { together: at.together && !at.function, ..at };
        self.if_else(&condition, 0, at);
    }

    /// An `if`, so many `else if`, and sometimes an `else`.
    fn if_else(&mut self, condition: &str, others: usize, at: At) {
        self.line(&format!("if ({condition}) {{"));
        self.inner(at);
        for _ in 0..others {
            let condition = self.condition(1);
            self.line("}");
            self.line(&format!("else if ({condition}) {{"));
            self.inner(at);
        }
        if self.random.chance(50) {
            self.line("}");
            self.line("else {");
            self.inner(at);
        }
        self.line("}");
    }

    fn counted_loop(&mut self, at: At) {
        let counter = self.fresh("k");
        let uniform = self.random.chance(35);
        let most = 2 + self.random.below(if at.loops == 0 { 4 } else { 2 });
        let bound = if uniform { most.to_string() } else { format!("({}) % {}", self.expression(1), most + 1) };
        // A uniform loop that lanes leave early is none.
        let exits = !uniform || !at.together || self.random.chance(50);
        let at = At { together: at.together && uniform && !exits, loops: at.loops + 1, exits, ..at };
        let end = self.fresh("e");
        self.line(&format!("u32 {end} = {bound};"));
        self.line(&format!("for (u32 {counter} = 0; {counter} < {end}; {counter}++) {{"));
        self.constants.push(counter);
        self.inner(at);
        self.constants.pop();
        self.line("}");
    }

    fn while_loop(&mut self, at: At) {
        let left = self.fresh("w");
        let (start, most, condition) = (self.expression(1), 3 + self.random.below(3), self.condition(1));
        let at = At { together: false, loops: at.loops + 1, exits: true, ..at };
        self.line(&format!("u32 {left} = ({start}) % {most};"));
        let test_last = self.random.chance(40);
        if test_last {
            self.line("do {");
        } else {
            self.line(&format!("while ({left} != 0 && !({condition})) {{"));
        }
        // First, so that going on does not last forever.
        self.line(&format!("if ({left}-- == 0) break;"));
        self.constants.push(left);
        self.inner(at);
        self.constants.pop();
        self.line(if test_last { "} while (true);" } else { "}" });
    }

    fn switch(&mut self, at: At) {
        let (value, cases) = (self.expression(2), 3 + self.random.below(6));
        // A table of jumps, or a search.
        let apart = if self.random.chance(50) { 1 } else { 3 };
        // `break` belongs to the switch here, and `continue` skips what is after it as anywhere.
        let at = At { together: false, exits: false, depth: at.depth + 1, ..at };
        self.line(&format!("switch (({value}) % {}) {{", cases * apart + 1));
        for case in 0..cases {
            self.line(&format!("case {}: {{", case * apart));
            let count = 1 + self.random.below(2);
            self.statements(count, at);
            if self.random.chance(75) {
                self.line("break;");
            }
            self.line("}");
        }
        self.line("default: {");
        self.statements(1, at);
        self.line("}");
        self.line("}");
    }

    fn call(&mut self, at: At) {
        let name = self.name;
        let (target, first, second) = (self.target(), self.expression(2), self.expression(1));
        let which = self.random.below(self.callable);
        match self.random.below(3) {
            0 if self.plan.recursion && !at.function && at.loops < 2 => {
                self.line(&format!("{target} ^= {name}_deep(({first}) % 4, {second});"));
            }
            1 if self.plan.pointers && !at.function => {
                let chooser = if self.random.chance(40) { "g".to_owned() } else { self.expression(1) };
                self.line(&format!("{target} += {name}_chosen({chooser})({first}, {second});"));
            }
            _ => self.line(&format!("{target} = {name}_f{which}({first}, {second});")),
        }
    }

    fn memory(&mut self) {
        let (target, index, value) = (self.target(), self.expression(1), self.expression(2));
        match self.random.below(4) {
            0 => self.line(&format!("out[{WORDS} * i + 1] = {value};")),
            1 => self.line(&format!("atomic_add(&out[{} + ({index}) % {SUMS}], {value});", self.plan.items() * WORDS)),
            2 => {
                self.line(&format!("out[{WORDS} * i + 2] = {value};"));
                self.line(&format!("{target} += out[{WORDS} * i + 2];"));
            }
            _ => self.line(&format!("{target} ^= in[({index}) % {INPUT}];")),
        }
    }

    /// What only lanes that are all there can do.
    fn cooperation(&mut self) {
        let items: u32 = self.plan.group.iter().product();
        let (target, value, from) = (self.target(), self.expression(2), self.expression(1));
        if self.plan.lanes && self.random.chance(60) {
            match self.random.below(4) {
                0 => self.line(&format!("{target} += shuffle32({value}, {from});")),
                1 => {
                    let condition = self.condition(1);
                    self.line(&format!("{target} ^= bits_below(ballot({condition}));"));
                }
                2 => self.line(&format!("{target} += first_lane({value});")),
                _ => {
                    let condition = self.condition(1);
                    self.line(&format!("if (ballot({condition}) == 0) {{"));
                    let at = At { depth: DEEPEST - 1, together: false, loops: 1, exits: false, function: false };
                    self.statements(2, at);
                    self.line("}");
                }
            }
            return;
        }
        let place = match (self.plan.shared, self.plan.dynamic) {
            (true, true) => self.random.of(&["shared", "dynamic"]),
            (true, false) => "shared",
            (false, true) => "dynamic",
            (false, false) => {
                self.line("barrier();");
                return;
            }
        };
        // What a partial workgroup has not written is not read.
        self.line("barrier();");
        self.line(&format!("if (l == 0) for (u32 k = 0; k < {items}; k++) {place}[k] = k * 77;"));
        self.line("barrier();");
        if self.random.chance(50) {
            self.line(&format!("{place}[l] = {value};"));
        } else {
            self.line(&format!("atomic_add_shared(&{place}[({from}) % {items}], {value});"));
        }
        self.line("barrier();");
        self.line(&format!("{target} ^= {place}[({from}) % {items}];"));
    }

    /// Arithmetic on 64 and on 8 bits, and with signs.
    fn wide(&mut self) {
        let (target, a, b) = (self.target(), self.expression(1), self.expression(1));
        let by = 1 + self.random.below(60);
        let text = match self.random.below(6) {
            0 => format!("(u32)(((u64)({a}) * ({b})) >> {by})"),
            1 => format!("(u32)(((i64)(i32)({a}) << 7) >> {})", by % 40),
            2 => format!("(u32)((i32)({a}) / {}) ^ ({b}) % {}", 3 + by, 5 + by),
            3 => format!("({a}) / (({b}) % 1000 + 1)"),
            4 => format!("(u32)__builtin_popcount({a}) + (u8)({b})"),
            _ => format!("(u32)__builtin_clz(({a}) | 1) * 3 + (u32)((i32)({b}) >> {})", by % 31),
        };
        self.line(&format!("{target} = {text};"));
    }

    fn leaf(&mut self) -> String {
        let names = match self.random.below(5) {
            0 if !self.uniforms.is_empty() => &self.uniforms,
            1 if !self.constants.is_empty() => &self.constants,
            2 => return format!("{}u", self.random.bits() as u32 >> self.random.below(32)),
            _ => &self.variables,
        };
        names[self.random.below(names.len())].clone()
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.chance(25) {
            return self.leaf();
        }
        let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
        let by = 1 + self.random.below(31);
        match self.random.below(11) {
            0 | 1 => format!("({a} + {b})"),
            2 => format!("({a} - {b})"),
            3 => format!("({a} * {b})"),
            4 => format!("({a} ^ {b})"),
            5 => format!("({a} & {b})"),
            6 => format!("({a} | {b})"),
            7 => format!("({a} >> {by})"),
            8 => format!("rotl({a}, {by})"),
            9 => format!("({a} < {b} ? {b} : {a})"),
            _ => {
                let condition = self.condition(0);
                format!("({condition} ? {a} : {b})")
            }
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let (a, b) = (self.expression(1), self.expression(1));
        let most = 2 + self.random.below(9);
        let one = match self.random.below(6) {
            0 => format!("({a}) % {most} == {}", self.random.below(most)),
            1 => format!("({a}) % {most} < {}", 1 + self.random.below(most)),
            2 => format!("({a}) < ({b})"),
            3 => format!("(i32)({a}) > (i32)({b})"),
            4 => format!("(({a}) & {}) != 0", 1 << self.random.below(32)),
            _ => format!("({a}) != ({b})"),
        };
        if depth > 0 && self.random.chance(40) {
            let operation = self.random.of(&["&&", "||"]);
            let other = self.condition(depth - 1);
            return format!("({one} {operation} {other})");
        }
        format!("({one})")
    }
}
