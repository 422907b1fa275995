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
#include <algorithm>
#include <cassert>
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
#include <variant>
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
struct Workers { std::vector<std::function<void()>> jobs; void post(std::function<void()> job) { jobs.push_back(job); } NOINLINE void drain() { for (auto &job : jobs) { job(); sink++; } } void finish() { std::thread one([this] { drain(); }); one.join(); } };
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

/// Bugs of other kinds, written before version 4 of the rules and scored once it was frozen.
pub(crate) static NEW_BUGS: &[Bug] = &[
    bug(
        "freed_in_callback",
        "struct Listener { long *count; void (*call)(Listener *); }; NOINLINE void drop_listener(Listener *l) { free(l); } NOINLINE void on_closed(Listener *l) { drop_listener(l); *l->count += 1; sink++; } NOINLINE void notify_closed(Listener *l) { l->call(l); sink++; } void entry(int) { static long n; Listener *l = (Listener *)malloc(sizeof(Listener)); l->count = &n; l->call = on_closed; notify_closed(l); sink++; }",
    ),
    bug(
        "throw_through_layers",
        "NOINLINE void read_line(long v) { if (v < 0) throw std::runtime_error(\"line\"); sink = v; } NOINLINE void read_section(long v) { try { read_line(v); sink++; } catch (std::runtime_error &) { throw std::logic_error(\"section\"); } } NOINLINE void read_profile(long v) { try { read_section(v); sink++; } catch (std::logic_error &) { throw std::invalid_argument(\"profile\"); } } void entry(int) { read_profile((long)opaque(-1)); sink++; }",
    ),
    bug(
        "thrown_again",
        "NOINLINE void send_packet(long v) { if (v < 0) throw 42; sink = v; } NOINLINE void flush_outbox(long v) { try { send_packet(v); sink++; } catch (int) { sink++; throw; } } void entry(int) { flush_outbox((long)opaque(-1)); sink++; }",
    ),
    bug(
        "throw_in_destructor",
        "struct Transaction { long n; NOINLINE ~Transaction() { if (n < 0) throw std::runtime_error(\"not committed\"); sink = n; } }; NOINLINE void book_seat(long n) { Transaction t{n}; sink++; } void entry(int) { book_seat((long)opaque(-1)); sink++; }",
    ),
    bug(
        "virtual_recursion",
        "struct Region { virtual ~Region() {} virtual long area(long d) = 0; }; template <typename T> struct Scaled : Region { Region *inner; NOINLINE long area(long d) override { char room[400]; room[0] = (char)d; sink = room[0]; long r = inner->area(d + 1); return r + room[0] + sink; } }; void entry(int) { Scaled<int> s; s.inner = (Region *)opaque((long)&s); sink = s.inner->area(0); }",
    ),
    bug(
        "pure_virtual",
        "struct Plugin { Plugin() { announce(); } virtual ~Plugin() {} NOINLINE void announce() { sink = title(); sink++; } virtual long title() = 0; }; struct Spelling : Plugin { long title() override { return 3; } }; void entry(int) { Spelling s; sink++; }",
    ),
    bug(
        "template_null",
        "template <typename T> struct Matrix { T *cells; long width; NOINLINE T sum_row(long row) { T sum = 0; for (long at = 0; at < width; at++) sum += cells[row * width + at]; sink = (long)sum; return sum; } }; void entry(int) { Matrix<double> m{(double *)opaque(0), 4}; sink = (long)m.sum_row((long)opaque(1)); }",
    ),
    bug(
        "sort_with_lambda",
        "struct Song { long plays; }; NOINLINE void sort_songs(std::vector<Song *> *songs) { std::sort(songs->begin(), songs->end(), [](const Song *a, const Song *b) { return a->plays < b->plays; }); sink++; } void entry(int) { std::vector<Song *> songs(40, (Song *)opaque(0)); sort_songs(&songs); sink++; }",
    ),
    bug(
        "qsort_prices",
        "struct Price { long cents; }; static int by_price(const void *a, const void *b) { long x = (*(Price *const *)a)->cents; long y = (*(Price *const *)b)->cents; sink = x; return x < y ? -1 : x > y; } NOINLINE void sort_offers(Price **rows, long n) { qsort(rows, (unsigned long)n, sizeof(*rows), by_price); sink++; } void entry(int) { Price *rows[40] = {(Price *)opaque(0)}; sort_offers(rows, 40); sink++; }",
    ),
    bug(
        "qsort_dates",
        "struct Date { long day; }; static int by_date(const void *a, const void *b) { long x = (*(Date *const *)a)->day; long y = (*(Date *const *)b)->day; sink = x; return x < y ? -1 : x > y; } NOINLINE void sort_diary(Date **rows, long n) { qsort(rows, (unsigned long)n, sizeof(*rows), by_date); sink++; } void entry(int) { Date *rows[40] = {(Date *)opaque(0)}; sort_diary(rows, 40); sink++; }",
    ),
    bug(
        "pool_thumbnail",
        "NOINLINE void make_thumbnail(Node *n) { sink = n->value; sink++; } void entry(int) { Workers w; w.post([] { make_thumbnail((Node *)opaque(0)); sink++; }); w.finish(); sink++; }",
    ),
    bug(
        "pool_backup",
        "NOINLINE void write_backup(Node *n) { sink = n->next->value; sink++; } void entry(int) { Workers w; w.post([] { Node n{}; n.next = (Node *)opaque(0); write_backup(&n); sink++; }); w.finish(); sink++; }",
    ),
    bug(
        "signal_handler",
        "static void on_reload(int) { sink = ((Node *)opaque(0))->value; sink++; } NOINLINE void ask_for_reload() { raise(SIGUSR1); sink++; } void entry(int) { signal(SIGUSR1, on_reload); ask_for_reload(); sink++; }",
    ),
    bug(
        "substr_out_of_range",
        "NOINLINE void shorten_title(const std::string *t, long from) { std::string s = t->substr((unsigned long)from); sink = (long)s.size(); } void entry(int) { std::string t(\"abc\"); shorten_title(&t, (long)opaque(9)); sink++; }",
    ),
    bug(
        "failed_assertion",
        "NOINLINE void seek_track(long t) { assert(t >= 0); sink = t; } void entry(int) { seek_track((long)opaque(-4)); sink++; }",
    ),
    bug(
        "at_exit",
        "static void save_window() { sink = ((Node *)opaque(0))->value; sink++; } NOINLINE void quit_program() { exit(0); } void entry(int) { atexit(save_window); quit_program(); sink++; }",
    ),
    bug(
        "variant_of_other",
        "NOINLINE void apply_option(std::variant<int, std::string> *o) { sink = std::get<int>(*o); sink++; } void entry(int) { std::variant<int, std::string> o(std::string(\"wide\")); if (!opaque(0)) apply_option(&o); sink++; }",
    ),
    bug(
        "bad_cast",
        "struct Widget { virtual ~Widget() {} }; struct Slider : Widget { long at = 3; }; NOINLINE void move_slider(Widget *w) { sink = dynamic_cast<Slider &>(*w).at; sink++; } void entry(int) { Widget w; move_slider((Widget *)opaque((long)&w)); sink++; }",
    ),
];

/// Which of the bugs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    LookedAt,
    KeptBack,
    New,
    All,
}

impl Which {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::LookedAt => "looked at",
            Self::KeptBack => "kept back",
            Self::New => "new",
            Self::All => "all",
        }
    }

    pub(crate) fn bugs(self) -> Vec<&'static Bug> {
        let half = |odd: usize| BUGS.iter().enumerate().filter(move |(at, _)| at % 2 == odd);
        match self {
            Self::LookedAt => half(0).map(|(_, bug)| bug).collect(),
            Self::KeptBack => half(1).map(|(_, bug)| bug).collect(),
            Self::New => NEW_BUGS.iter().collect(),
            Self::All => BUGS.iter().chain(NEW_BUGS).collect(),
        }
    }
}

/// The whole program of one release.
pub(crate) fn source(release: usize) -> String {
    let mut text = format!("// Release {release}.\n{}", "\n".repeat(release * 7));
    text.push_str(COMMON);
    let mut order: Vec<&Bug> = BUGS.iter().chain(NEW_BUGS).collect();
    // Releases have functions elsewhere.
    if release == 1 {
        order.reverse();
    }
    if release == 2 {
        let third = order.len() / 3;
        order.rotate_left(third);
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
