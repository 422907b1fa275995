//! The program with the seeded bugs: C++, made for each release and each set of bugs.
//!
//! Each bug is reached on two ways. Releases move lines and functions, rename nothing, and change what the callers are called
//! with. Bugs are chosen for what goes wrong with grouping: helpers that many bugs crash in, the same function name in two
//! classes, two faults in one function, templates, lambdas, inlined functions, recursion, exceptions, allocation, aborts of an own
//! `check_failed`, bugs that crash in the C library.

/// A seeded bug.
pub(crate) struct Bug {
    /// Its name, which is also the argument that sets it off.
    pub(crate) name: &'static str,
    /// The code; `entry_NAME(int)` sets it off.
    code: &'static str,
}

const fn bug(name: &'static str, code: &'static str) -> Bug {
    Bug { name, code }
}

/// What all share.
const COMMON: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#define NOINLINE __attribute__((noinline))
static volatile long sink;
NOINLINE void *opaque(long value) { sink = value; return (void *)sink; }
struct Node { int pad[4]; int value; Node *next; int get() const { return value; } };
struct Buffer { char *data; long size; NOINLINE char at(long i) const { sink = i; char c = data[i]; sink += c; return c; } };
NOINLINE long text_length(const char *text) { long n = 0; while (text[n]) n++; sink = n; return n; }
[[noreturn]] NOINLINE void check_failed(const char *what) { fprintf(stderr, "check failed: %s\n", what); abort(); }
#define CHECK(condition) do { if (!(condition)) check_failed(#condition); } while (0)
NOINLINE void *xmalloc(long size) { void *p = malloc((unsigned long)size); if (!p) { abort(); } return p; }
NOINLINE void close_session(long mode) { if (mode == 1) abort(); sink = ((Node *)opaque(0))->value; sink++; }
template <typename T> struct Pool { std::vector<T> items; NOINLINE T &pick(unsigned long i) { sink = (long)i; return items.at(i); } };
"#;

/// The bugs. Those whose position is even may be looked at while the rules are made; the others are kept back.
pub(crate) static BUGS: &[Bug] = &[
    bug(
        "null_member",
        "NOINLINE int read_value(Node *n) { int v = n->value; sink = v; return v + 1; } void entry(int a) { sink = read_value((Node *)opaque(a * 0)); }",
    ),
    bug(
        "null_write",
        "NOINLINE void store_result(Node *n, int v) { n->value = v; sink = v; } void entry(int a) { store_result((Node *)opaque(0), a); }",
    ),
    bug(
        "wild_pointer",
        "NOINLINE int follow_link(Node *n) { int v = n->next->value; sink = v; return v; } void entry(int a) { Node n{}; n.next = (Node *)opaque(0x1234560); sink = a + follow_link(&n); }",
    ),
    bug(
        "helper_from_cart",
        "NOINLINE void price_cart(const char *t) { sink = text_length(t) + 1; } void entry(int) { price_cart((const char *)opaque(0)); }",
    ),
    bug(
        "helper_from_login",
        "NOINLINE void greet_user(const char *t) { sink = text_length(t) + 2; } void entry(int) { greet_user((const char *)opaque(0)); }",
    ),
    bug(
        "buffer_in_header",
        "NOINLINE void parse_header(Buffer *b) { sink = b->at(3); sink++; } void entry(int) { Buffer b{(char *)opaque(0), 4}; parse_header(&b); }",
    ),
    bug(
        "buffer_in_footer",
        "NOINLINE void parse_footer(Buffer *b) { sink = b->at(3); sink++; } void entry(int) { Buffer b{(char *)opaque(0), 4}; parse_footer(&b); }",
    ),
    bug(
        "check_width",
        "NOINLINE void resize_image(long w) { CHECK(w > 0); sink = w; } void entry(int a) { resize_image((long)opaque(a) * 0 - 1); }",
    ),
    bug(
        "check_height",
        "NOINLINE void crop_image(long h) { CHECK(h > 0); sink = h; } void entry(int a) { crop_image((long)opaque(a) * 0 - 1); }",
    ),
    bug(
        "abort_direct",
        "NOINLINE void give_up() { fprintf(stderr, \"no way on\\n\"); abort(); } void entry(int) { give_up(); sink++; }",
    ),
    bug("session_abort", "void entry(int) { close_session((long)opaque(1)); sink++; }"),
    bug("session_null", "void entry(int) { close_session((long)opaque(2)); sink++; }"),
    bug(
        "throw_uncaught",
        "NOINLINE void decode_frame(long v) { if (v < 0) throw std::runtime_error(\"bad frame\"); sink = v; } void entry(int) { decode_frame((long)opaque(-5)); sink++; }",
    ),
    bug(
        "throw_other",
        "NOINLINE void decode_audio(long v) { if (v < 0) throw std::logic_error(\"bad audio\"); sink = v; } void entry(int) { decode_audio((long)opaque(-5)); sink++; }",
    ),
    bug(
        "at_out_of_range",
        "NOINLINE void pick_colour(std::vector<int> *c, long i) { sink = c->at((unsigned long)i); sink++; } void entry(int) { std::vector<int> c(3); pick_colour(&c, (long)opaque(77)); }",
    ),
    bug(
        "map_at",
        "NOINLINE void find_setting(std::map<std::string, int> *m, const char *k) { sink = m->at(k); sink++; } void entry(int) { std::map<std::string, int> m; find_setting(&m, \"none\"); }",
    ),
    bug(
        "pool_of_ints",
        "NOINLINE void draw_sprites(Pool<int> *p, long i) { sink = p->pick((unsigned long)i); sink++; } void entry(int) { Pool<int> p; draw_sprites(&p, (long)opaque(9)); }",
    ),
    bug(
        "pool_of_longs",
        "NOINLINE void play_sounds(Pool<long> *p, long i) { sink = p->pick((unsigned long)i); sink++; } void entry(int) { Pool<long> p; play_sounds(&p, (long)opaque(9)); }",
    ),
    bug(
        "recursion",
        "NOINLINE long walk_tree(Node *n, long d) { char room[512]; room[0] = (char)d; sink = room[0]; long r = walk_tree(n, d + 1); return r + room[0] + sink; } void entry(int) { Node n{}; sink = walk_tree(&n, 0); }",
    ),
    bug(
        "mutual_recursion",
        "NOINLINE long layout_child(long d); NOINLINE long layout_parent(long d) { char room[512]; room[0] = (char)d; sink = room[0]; long r = layout_child(d + 1); return r + sink; } NOINLINE long layout_child(long d) { char room[256]; room[0] = (char)d; sink = room[0]; long r = layout_parent(d + 1); return r + sink; } void entry(int a) { sink = a ? layout_parent(0) : layout_child(0); }",
    ),
    bug(
        "lambda_body",
        "NOINLINE void each_row(const std::function<void(long)> &f) { for (long i = 0; i < 3; i++) { f(i); sink++; } } NOINLINE void export_rows() { each_row([](long i) { sink = ((Node *)opaque(i * 0))->value; sink++; }); sink++; } void entry(int) { export_rows(); sink++; }",
    ),
    bug(
        "lambda_elsewhere",
        "NOINLINE void each_cell(const std::function<void(long)> &f) { for (long i = 0; i < 3; i++) { f(i); sink++; } } NOINLINE void export_cells() { each_cell([](long i) { sink = ((Node *)opaque(i * 0))->value; sink++; }); sink++; } void entry(int) { export_cells(); sink++; }",
    ),
    bug(
        "virtual_call",
        "struct Shape { virtual ~Shape() {} virtual long area() = 0; }; struct Circle : Shape { Node *n; NOINLINE long area() override { long v = n->value; sink = v; return v; } }; NOINLINE long sum_areas(Shape *s) { long a = s->area(); sink = a; return a; } void entry(int) { Circle c; c.n = (Node *)opaque(0); sink = sum_areas(&c); }",
    ),
    bug(
        "virtual_other",
        "struct Solid { virtual ~Solid() {} virtual long area() = 0; }; struct Cube : Solid { Node *n; NOINLINE long area() override { long v = n->value; sink = v; return v; } }; NOINLINE long sum_solids(Solid *s) { long a = s->area(); sink = a; return a; } void entry(int) { Cube c; c.n = (Node *)opaque(0); sink = sum_solids(&c); }",
    ),
    bug(
        "double_free",
        "NOINLINE void drop_texture(void *p) { free(p); sink++; free(p); sink++; } void entry(int) { drop_texture(xmalloc(64)); sink++; }",
    ),
    bug(
        "bad_free",
        "NOINLINE void drop_sound(char *p) { free(p + 8); sink++; } void entry(int) { drop_sound((char *)xmalloc(64)); sink++; }",
    ),
    bug(
        "allocation_too_large",
        "NOINLINE void load_level(long n) { char *p = (char *)xmalloc(n); p[0] = 1; sink = p[0]; } void entry(int) { load_level((long)opaque(-1)); sink++; }",
    ),
    bug(
        "allocation_elsewhere",
        "NOINLINE void load_music(long n) { char *p = (char *)xmalloc(n); p[0] = 1; sink = p[0]; } void entry(int) { load_music((long)opaque(-1)); sink++; }",
    ),
    bug(
        "memcpy_null",
        "NOINLINE void copy_pixels(char *to, const char *from, long n) { memcpy(to, from, (unsigned long)n); sink = to[0]; } void entry(int) { char room[64]; copy_pixels(room, (const char *)opaque(0), (long)opaque(40)); }",
    ),
    bug(
        "memcpy_elsewhere",
        "NOINLINE void copy_samples(char *to, const char *from, long n) { memcpy(to, from, (unsigned long)n); sink = to[0]; } void entry(int) { char room[64]; copy_samples(room, (const char *)opaque(0), (long)opaque(40)); }",
    ),
    bug(
        "strlen_null",
        "NOINLINE void print_name(const char *t) { sink = (long)strlen(t); sink++; } void entry(int) { print_name((const char *)opaque(0)); sink++; }",
    ),
    bug(
        "in_thread",
        "NOINLINE void poll_server(Node *n) { sink = n->value; sink++; } void entry(int) { std::thread t([] { poll_server((Node *)opaque(0)); sink++; }); t.join(); }",
    ),
    bug(
        "in_other_thread",
        "NOINLINE void write_cache(Node *n) { n->value = 3; sink++; } void entry(int) { std::thread t([] { write_cache((Node *)opaque(0)); sink++; }); t.join(); }",
    ),
    bug(
        "init_of_camera",
        "struct Camera { static NOINLINE void init(Node *n) { sink = n->value; sink++; } }; NOINLINE void open_camera() { Camera::init((Node *)opaque(0)); sink++; } void entry(int) { open_camera(); sink++; }",
    ),
    bug(
        "init_of_microphone",
        "struct Microphone { static NOINLINE void init(Node *n) { n->value = 1; sink++; } }; NOINLINE void open_microphone() { Microphone::init((Node *)opaque(0)); sink++; } void entry(int) { open_microphone(); sink++; }",
    ),
    bug(
        "illegal_instruction",
        "NOINLINE void run_shader() { sink++; __builtin_trap(); } void entry(int) { run_shader(); sink++; }",
    ),
    bug(
        "other_trap",
        "NOINLINE void run_kernel() { sink++; __builtin_trap(); } void entry(int) { run_kernel(); sink++; }",
    ),
    bug(
        "read_only_write",
        "NOINLINE void rename_track(char *t) { t[0] = 'x'; sink++; } void entry(int) { rename_track((char *)opaque((long)\"title\")); sink++; }",
    ),
    bug(
        "unique_ptr_null",
        "NOINLINE void save_game(std::unique_ptr<Node> &n) { sink = n->get(); sink++; } void entry(int) { std::unique_ptr<Node> n((Node *)opaque(0)); save_game(n); n.release(); }",
    ),
    bug(
        "unique_ptr_elsewhere",
        "NOINLINE void load_game(std::unique_ptr<Node> &n) { sink = n->get(); sink++; } void entry(int) { std::unique_ptr<Node> n((Node *)opaque(0)); load_game(n); n.release(); }",
    ),
    bug(
        "string_from_null",
        "NOINLINE void set_title(const char *t) { std::string s(t); sink = (long)s.size(); } void entry(int) { set_title((const char *)opaque(0)); sink++; }",
    ),
    bug(
        "callback_null",
        "typedef void (*Callback)(long); NOINLINE void fire_event(Callback c) { c(3); sink++; } void entry(int) { fire_event((Callback)opaque(0)); sink++; }",
    ),
    bug(
        "callback_wild",
        "typedef void (*Callback)(long); NOINLINE void fire_timer(Callback c) { c(3); sink++; } void entry(int) { fire_timer((Callback)opaque(0)); sink++; }",
    ),
    bug(
        "inlined_bug",
        "static inline __attribute__((always_inline)) long sum_list(Node *n) { long s = 0; while (s < 3) { s += n->value; n = n->next; } return s; } NOINLINE void show_total(Node *n) { sink = sum_list(n); sink++; } void entry(int) { show_total((Node *)opaque(0)); sink++; }",
    ),
    bug(
        "inlined_elsewhere",
        "static inline __attribute__((always_inline)) long count_list(Node *n) { long s = 0; while (s < 3) { s += n->value; n = n->next; } return s; } NOINLINE void show_count(Node *n) { sink = count_list(n); sink++; } void entry(int) { show_count((Node *)opaque(0)); sink++; }",
    ),
];

/// The whole program of one release.
pub(crate) fn source(release: usize) -> String {
    let mut text = format!("// Release {release}.\n{}", "\n".repeat(release * 7));
    text.push_str(COMMON);
    let mut order: Vec<&Bug> = BUGS.iter().collect();
    // Releases have functions elsewhere.
    if release == 1 {
        order.reverse();
    }
    if release == 2 {
        order.rotate_left(BUGS.len() / 3);
    }
    for bug in &order {
        let filler = (0..release).map(|at| {
            format!("NOINLINE int extra{at}_{}(int a) {{ return a * {at} + (int)sink; }}\n", bug.name)
        });
        text.extend(filler);
        let name = bug.name;
        let lines = ["\n", "\n\n", "\n  "].get(release).unwrap_or(&"\n");
        text.push_str(
            &bug.code
                .replace("void entry(", &format!("void entry_{name}("))
                .replace("; ", &format!(";{lines}")),
        );
        text.push_str(&format!(
            "\nNOINLINE void from_menu_{name}(int a) {{ entry_{name}(a); sink++; }}\nNOINLINE void on_key_{name}(int a) {{ entry_{name}(a); sink++; }}\nNOINLINE void from_script_{name}(int a) {{ on_key_{name}(a); sink++; }}\n"
        ));
    }
    text.push_str("int main(int argc, char **argv) {\n  const char *bug = argc > 1 ? argv[1] : \"\";\n  bool menu = argc > 2 && argv[2][0] == 'm';\n");
    for bug in &order {
        let name = bug.name;
        text.push_str(&format!(
            "  if (!strcmp(bug, \"{name}\")) {{ if (menu) from_menu_{name}(1); else from_script_{name}(2); sink++; return 0; }}\n"
        ));
    }
    text.push_str("  return 1;\n}\n");
    text
}
