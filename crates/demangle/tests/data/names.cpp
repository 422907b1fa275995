// What the names in itanium.tsv stand for: one of each construct that compilers mangle.
//
//   clang++ -std=c++26 -fblocks -O0 -c names.cpp && llvm-nm -j names.o
#include <cstddef>
#include <initializer_list>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

namespace backtrail {
inline namespace v1 { struct [[gnu::abi_tag("cxx20")]] Tagged {}; }
namespace { struct Hidden { virtual ~Hidden(); int touch(); }; Hidden::~Hidden() {} int Hidden::touch() { return 1; } }

// Types.
void builtin(void*, wchar_t, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
             unsigned long, long long, unsigned long long, __int128, unsigned __int128, float, double, long double,
             __float128, char8_t, char16_t, char32_t, std::nullptr_t, _Float16, __bf16, ...) {}
void bits(_BitInt(7), unsigned _BitInt(33)) {}
void wrapped(int (*)(char), int (&)[4], int (*const*)[2][3], void (Tagged::*)(int) const&, int Tagged::*,
             int (*(*)(long))(short), void (&&)() , char const (&)[6]) {}
void qualified(const volatile int* __restrict, int const* const*, _Complex double) {}
typedef float vec4 __attribute__((vector_size(16)));
void vectors(vec4, vec4*) {}
void throwing(void (*)() noexcept, void (*)(int) noexcept) {}
auto trailing() -> int (*)[5] { return nullptr; }
void standard(std::string, std::vector<std::string>, std::allocator<int>) {}
void hidden(Hidden* h) { h->touch(); }
Tagged tagged() { return {}; }
enum class Colour { Red, Green = -2 };
union Either { int a; float b; };
void unions(Either, Colour) {}

// Members.
struct Shape {
    Shape(); Shape(Shape const&); explicit Shape(int); virtual ~Shape();
    virtual Shape* clone() const; int area() &; int area() const&&; void edge() volatile;
    operator bool() const; operator int*(); template <class T> operator std::vector<T>*(); template <class T> explicit operator T() const;
    Shape operator+(Shape const&) const; Shape& operator+=(int); bool operator<=>(Shape const&) const;
    void operator()(int, int); int operator[](long); Shape* operator->(); void operator,(int); Shape& operator++(); Shape operator++(int);
    void* operator new(size_t); void operator delete[](void*);
    template <class Self> void deduced(this Self&&, int); void byvalue(this Shape);
    static int count; static thread_local int local;
};
Shape::Shape() {} Shape::Shape(Shape const&) {} Shape::Shape(int) {} Shape::~Shape() {}
Shape* Shape::clone() const { return nullptr; } int Shape::area() & { return 1; } int Shape::area() const&& { return 1; } void Shape::edge() volatile {}
Shape::operator bool() const { return true; } Shape::operator int*() { return nullptr; }
template <class T> Shape::operator std::vector<T>*() { return nullptr; } template Shape::operator std::vector<char>*();
template <class T> Shape::operator T() const { return T(); } template Shape::operator long() const; template Shape::operator std::string() const;
Shape Shape::operator+(Shape const&) const { return *this; } Shape& Shape::operator+=(int) { return *this; } bool Shape::operator<=>(Shape const&) const { return true; }
void Shape::operator()(int, int) {} int Shape::operator[](long) { return 1; } Shape* Shape::operator->() { return this; } void Shape::operator,(int) {} Shape& Shape::operator++() { return *this; } Shape Shape::operator++(int) { return *this; }
void* Shape::operator new(size_t) { return nullptr; } void Shape::operator delete[](void*) {}
template <class Self> void Shape::deduced(this Self&&, int) {} template void Shape::deduced<Shape&>(Shape&, int); void Shape::byvalue(this Shape) {}
int Shape::count = 1; thread_local int Shape::local = Shape::count;
int use() { return Shape::local; }
long operator""_miles(unsigned long long) { return 1; }
struct Left { virtual void left(); int l; }; struct Right { virtual Right* right(); int r; }; struct Base { virtual ~Base(); int b; };
struct Both : Left, Right, virtual Base { void left() override; Both* right() override; ~Both() override; };
void Left::left() {} Right* Right::right() { return this; } Base::~Base() {} void Both::left() {} Both* Both::right() { return this; } Both::~Both() {}
struct Heir : Shape { using Shape::Shape; }; Heir heir(3);

// Templates.
template <class T, int N = 3, T* P = nullptr> struct Box { template <class U> U get(U, T); };
template <class T, int N, T* P> template <class U> U Box<T, N, P>::get(U u, T) { return u; }
template long Box<int>::get(long, int);
template <class... T> void pack(T&&...) {} template void pack(); template void pack(int&, char&&, std::string const&);
template <class... T> void nested(std::tuple<T...>, std::pair<T, int>...) {} template void nested(std::tuple<char, long>, std::pair<char, int>, std::pair<long, int>);
template <class... T> auto sum(T... t) -> decltype((t + ... + 0)) { return (t + ... + 0); } template auto sum(int, long) -> decltype((1 + 2L + 0));
template <class... T> auto all(T... t) -> decltype((... && t)) { return (... && t); } template auto all(bool, bool) -> bool;
template <class... T> int howmany(char (*)[sizeof...(T) + 1]) { return 1; } template int howmany<int, char>(char (*)[3]);
template <template <class...> class C, class T> void apply(C<T>) {} template void apply<std::vector, int>(std::vector<int>);
template <auto V> void value() {} template void value<3>(); template void value<'c'>(); template void value<Colour::Green>(); template void value<&Shape::count>(); template void value<&Shape::edge>(); template void value<nullptr>(); template void value<true>(); template void value<-5LL>(); template void value<1.5>(); template void value<-0.0f>(); template void value<U'x'>();
struct Point { int x; double y[2]; bool operator==(Point const&) const = default; }; template <Point P> void at() {} template void at<Point{1, {2.5}}>();
template <size_t N> struct Text { char text[N]; constexpr Text(char const (&t)[N]) { for (size_t i = 0; i < N; ++i) text[i] = t[i]; } }; template <Text T> void named() {} template void named<"a\tb">();
template <class T> void bounded(T (&)[sizeof(T) > 2 ? 3 : 4]) {} template void bounded<int>(int (&)[3]);
template <class T> void expr(decltype(T() + 1)*, decltype(sizeof(T) * 2)**, decltype(T{} < 3 ? 1 : 2)*, decltype(const_cast<T&>(*(T*)nullptr))) {} template void expr<int>(int*, unsigned long**, int*, int&);
template <class T> void member(decltype(((T*)nullptr)->x)*, decltype((*(T*)nullptr).y)*, decltype(T::template make<int>(3))*) {} struct Made { int x; char y; template <class U> static long make(U); }; template void member<Made>(int*, char*, long*);
template <class T> concept Small = sizeof(T) <= 8; template <class T> concept Has = requires(T t) { t.x; { t.y } -> Small; typename T::type; requires sizeof(T) > 1; };
template <Small T> void limited(T) {} template void limited(int);
template <class T> requires Small<T> && (sizeof(T) > 1) void required(T) {} template void required(int);
template <class T> void behind(T) requires Small<T> {} template void behind(int);
void automatic(Small auto) {} template void automatic(char);
template <class T> struct Friendly { friend void befriend(Friendly, T) requires Small<T> {} }; void friends() { befriend(Friendly<int>(), 1); }
template <class T> T variable = T(); template int variable<int>;

// Local names.
template <class F> void call(F f) { f(); }
template <class F, class... A> auto invoke(F f, A... a) { return f(a...); }
inline int locals() {
    static int counter = Shape::count; struct Inner { int f() { struct Deep { int g() { return 2; } }; return Deep().g(); } };
    call([] {}); call([counter = counter]() mutable { return ++counter; });
    invoke([](auto a, auto... b) { return sizeof...(b) + a; }, 1, 2, 3);
    int pair[2]; [](auto f, auto& a) { f(a); }([]<class T, int N>(T (&)[N]) { return N; }, pair);
    invoke([]<Small T>(T t) requires (sizeof(T) > 1) { return t; }, 1);
    struct { int h() { return 3; } } unnamed; return unnamed.h() + Inner().f() + counter;
}
int use_locals(int n = [] { return 4; }()) { return locals() + n; }
struct Defaults { int a = [] { return 1; }(); void f(int = [](int i) { return i; }(2)); }; Defaults defaults; void use_defaults() { defaults.f(); }
auto global = [](auto x) { return x; }; int use_global() { return global(5); }
inline auto lambda_variable = [] { return 1; }; int use_variable() { return lambda_variable(); }
auto [first, second] = std::pair<int, long>(1, 2); int use_binding() { return first; }
void blocks() { void (^block)(int) = ^(int i) { ^{ (void)i; }(); }; block(1); }
const std::string& temporary = std::string("kept alive");
std::initializer_list<int> const& list = {1, 2, 3};
int enabled(int n) __attribute__((enable_if(n > 0, "positive"))) { return n; }
}
