//! Code of an app around the libraries: generated C, C++ and Objective-C, compiled once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// A small generator of numbers, the same each time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }
}

/// LLVM's major version in the programs' names, as Debian has it.
pub(crate) const LLVM: &str = "19";

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}\n{}", output.status, said.lines().take(12).collect::<Vec<_>>().join("\n")))
}

/// Statements that differ from function to function.
fn statements(random: &mut Random, text: &mut String, unit: u64) {
    for _ in 0..random.next(9) + 1 {
        let (a, b) = (random.next(30_000), random.next(64));
        let _ = match random.next(7) {
            0 => writeln!(text, "  if (x > {a}) x -= y * {b};"),
            1 => {
                writeln!(text, "  for (int i = 0; i < (y & 15); i++) x += table_{unit}[(x + i) & 63] ^ {a};")
            }
            2 => writeln!(text, "  x = x * {a} + (y >> {});", b % 31),
            3 => writeln!(text, "  x += note(\"unit {unit} saw {a}\", y);"),
            4 => writeln!(
                text,
                "  switch (x & 7) {{ case 1: y += {a}; break; case 2: y ^= {b}; break; case 5: y -= x; break; default: x++; }}"
            ),
            5 => writeln!(text, "  y ^= counter_{unit}++ + {b};"),
            _ => writeln!(text, "  x ^= y << {};", b % 13),
        };
    }
}

fn c_unit(unit: u64, seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(unit * 7919 + 1));
    let mut text = format!(
        "int note(const char *, int);\nstatic int table_{unit}[64] = {{1, 2, 3}};\nint counter_{unit};\n"
    );
    let count = 24;
    for function in 0..count {
        let is_static = function % 3 == 1;
        let kind = if is_static { "static __attribute__((noinline)) " } else { "" };
        let _ = writeln!(text, "{kind}int app_{unit}_{function}(int x, int y) {{");
        statements(&mut random, &mut text, unit);
        if function > 0 {
            let _ = writeln!(text, "  x += app_{unit}_{}(y, x);", random.next(function));
        }
        text.push_str("  return x;\n}\n");
    }
    let _ = writeln!(text, "int app_{unit}(int x) {{ return app_{unit}_{}(x, 1); }}", count - 1);
    text
}

fn cpp_unit(unit: u64, seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x51ed_270b).wrapping_add(unit * 104_729 + 1));
    let mut text = format!(
        "extern \"C\" int note(const char *, int);\nstatic int table_{unit}[64] = {{1, 2, 3}};\nint counter_{unit};\n\
         template <typename T> struct Box {{ T v[16]; T sum() const {{ T s = 0; for (T e : v) s += e; return s; }} \
         T peak() const {{ T m = v[0]; for (T e : v) if (e > m) m = e; return m; }} }};\n\
         struct Base {{ virtual int f(int) = 0; virtual ~Base() {{}} }};\n"
    );
    for class in 0..6 {
        let _ = writeln!(
            text,
            "struct C_{unit}_{class} : Base {{ int x, y; int f(int) override; int g(int); }};"
        );
        for method in ["f", "g"] {
            let _ = writeln!(text, "int C_{unit}_{class}::{method}(int a) {{ int x = a, y = this->y;");
            statements(&mut random, &mut text, unit);
            text.push_str("  Box<int> b; for (int i = 0; i < 16; i++) b.v[i] = x + i; return x + y + b.sum() * b.peak(); }\n");
        }
    }
    let _ = writeln!(
        text,
        "extern \"C\" int app_cpp_{unit}(int x) {{ C_{unit}_0 a; C_{unit}_3 b; a.x = b.x = x; a.y = b.y = x + 1; Base *p = x ? (Base *)&a : (Base *)&b; return p->f(x); }}"
    );
    text
}

fn objc_unit(unit: u64, seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x2545_f491).wrapping_add(unit * 15_485_863 + 1));
    let mut text = format!(
        "int note(const char *, int);\nstatic int table_{unit}[64] = {{1, 2, 3}};\nint counter_{unit};\n\
         __attribute__((objc_root_class)) @interface Root_{unit}\n- (int)value;\n@end\n@implementation Root_{unit}\n\
         - (int)value {{ return {unit}; }}\n@end\n"
    );
    for class in 0..4 {
        let name = format!("App_{unit}_{class}");
        let _ = writeln!(
            text,
            "@interface {name} : Root_{unit} {{ int _x; int _y; id _name; }}\n@property (nonatomic) int x;\n@property (nonatomic) int y;\n@end\n@implementation {name}\n@synthesize x = _x, y = _y;"
        );
        for method in 0..8 {
            let _ = writeln!(text, "- (int)run{method}With:(int)x {{ int y = _y;");
            statements(&mut random, &mut text, unit);
            if method > 0 {
                let _ = writeln!(text, "  x += [self run{}With:y];", random.next(method));
            }
            text.push_str("  return x;\n}\n");
        }
        text.push_str("+ (int)make { return 3; }\n- (id)description { return _name; }\n@end\n");
    }
    let _ = writeln!(text, "int app_objc_{unit}(int x) {{ return [App_{unit}_0 make] + x; }}");
    text
}

/// Functions as small as functions are: some are called, some are in tables, some are neither.
fn tiny_sources(units: u64) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for unit in 0..units {
        let mut c = String::new();
        for number in 0..300 {
            let _ = writeln!(c, "int tiny_{unit}_{number}(void) {{ return {number}; }}");
        }
        for field in 0..40 {
            let _ = writeln!(c, "void empty_{unit}_{field}(void) {{}}");
            let _ = writeln!(c, "long get_{unit}_{field}(long *p) {{ return p[{field}]; }}");
            let _ = writeln!(c, "void set_{unit}_{field}(long *p, long v) {{ p[{field}] = v; }}");
            let _ = writeln!(c, "static int hidden_{unit}_{field}(void) {{ return {field}; }}");
            let _ = writeln!(c, "int call_{unit}_{field}(void) {{ return tiny_{unit}_{field}() + 1; }}");
        }
        let _ = writeln!(c, "int (*const tiny_table_{unit}[])(void) = {{");
        for field in 0..40 {
            let _ = writeln!(c, "hidden_{unit}_{field}, tiny_{unit}_{},", field * 3);
        }
        c.push_str("};\n");
        sources.push((format!("tiny{unit}.c"), c));
        let mut cpp = String::new();
        for class in 0..30 {
            let name = format!("Tiny_{unit}_{class}");
            let _ = writeln!(
                cpp,
                "struct {name} {{ virtual bool no() {{ return false; }} virtual bool yes() {{ return true; }} virtual void nothing() {{}} \
                 virtual int number() {{ return {class}; }} virtual {name} *self() {{ return this; }} virtual ~{name}() {{}} }};\n\
                 {name} *make_{name}() {{ return new {name}; }}"
            );
        }
        sources.push((format!("tiny{unit}.cpp"), cpp));
    }
    sources
}

/// Categories on others' classes, four in a source.
pub(crate) fn extension_sources(classes: &[&str]) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for (unit, classes) in (30_000u64..).zip(classes.chunks(4)) {
        let mut random = Random(unit);
        let mut text = format!(
            "int note(const char *, int);\nstatic int table_{unit}[64] = {{1, 2, 3}};\nint counter_{unit};\n"
        );
        for class in classes {
            let _ = writeln!(
                text,
                "__attribute__((objc_root_class)) @interface {class}\n@end\n@implementation {class} (AppExtension)"
            );
            for method in 0..3 {
                let _ = writeln!(text, "- (int)appExtra{method}With:(int)x {{ int y = x;");
                statements(&mut random, &mut text, unit);
                text.push_str("  return x;\n}\n");
            }
            text.push_str("@end\n");
        }
        sources.push((format!("x{unit}.m"), text));
    }
    sources
}

/// The objects of further code of an app: very many small functions.
pub(crate) fn tiny_objects(cache: &Path, target: &str) -> Result<Vec<PathBuf>> {
    compile(cache, target, &[], &format!("{target}-tiny"), tiny_sources(4))
}

/// The objects of an app of `units` sources of each language, with an entry point.
pub(crate) fn objects(
    cache: &Path,
    target: &str,
    flags: &[&str],
    units: u64,
    seed: u64,
) -> Result<Vec<PathBuf>> {
    let is_apple = target.contains("apple");
    let key = format!("{target}-{}-{units}-{seed}", flags.join("").replace(['/', '='], "_"));
    let mut sources: Vec<(String, String)> = Vec::new();
    let mut main = "int note(const char *s, int x) { return s[0] + x; }\n".to_owned();
    for unit in 0..units {
        sources.push((format!("c{unit}.c"), c_unit(unit, seed)));
        sources.push((format!("p{unit}.cpp"), cpp_unit(10_000 + unit, seed)));
        let _ = writeln!(main, "int app_{unit}(int); int app_cpp_{}(int);", 10_000 + unit);
        if is_apple {
            sources.push((format!("o{unit}.m"), objc_unit(20_000 + unit, seed)));
            let _ = writeln!(main, "int app_objc_{}(int);", 20_000 + unit);
        }
    }
    main.push_str("int main(int c, char **v) { (void)v; int x = c;\n");
    for unit in 0..units {
        let _ = writeln!(main, "  x += app_{unit}(x) + app_cpp_{}(x);", 10_000 + unit);
        if is_apple {
            let _ = writeln!(main, "  x += app_objc_{}(x);", 20_000 + unit);
        }
    }
    main.push_str("  return x; }\n");
    sources.push(("main.c".to_owned(), main));
    compile(cache, target, flags, &key, sources)
}

/// Compiles what is not compiled already.
pub(crate) fn compile(
    cache: &Path,
    target: &str,
    flags: &[&str],
    key: &str,
    sources: Vec<(String, String)>,
) -> Result<Vec<PathBuf>> {
    let directory = cache.join("app").join(key);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let mut objects = Vec::new();
    for (name, text) in sources {
        let (source, object) = (directory.join(&name), directory.join(format!("{name}.o")));
        objects.push(object.clone());
        if object.exists() && std::fs::read_to_string(&source).is_ok_and(|known| known == text) {
            continue;
        }
        std::fs::write(&source, text).map_err(|error| error.to_string())?;
        let mut command = Command::new(format!("clang-{LLVM}"));
        command.args(["-target", target, "-w", "-O2", "-fno-exceptions", "-fno-rtti"]).args(flags);
        run(command.arg("-c").arg(&source).arg("-o").arg(&object))?;
    }
    Ok(objects)
}
