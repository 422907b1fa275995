// A program without a moment's rest: threads begin and end, allocate, throw and load libraries, until told to stop.
// Each kind of thread has a known chain of callers: NAME_deep, NAME_middle, NAME_entry.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>

static std::atomic<bool> over;
static std::string plugin;

#define DEEP extern "C" __attribute__((noinline))

// What follows the call keeps it from being a jump.
static std::atomic<long> done;

DEEP void churn_throw_deep(int depth) {
  if (depth == 0) throw std::runtime_error("as always");
  std::string local(static_cast<size_t>(depth) * 10, 'x');
  churn_throw_deep(depth - 1);
  done += static_cast<long>(local.size());
}
DEEP void churn_throw_middle() {
  try {
    churn_throw_deep(8);
  } catch (const std::exception &error) {
    done += static_cast<long>(strlen(error.what()));
  }
}
DEEP void *churn_throw_entry(void *) {
  prctl(PR_SET_NAME, "throw");
  while (!over) churn_throw_middle();
  return nullptr;
}

DEEP void churn_allocate_deep(unsigned seed) {
  void *blocks[16];
  for (auto &block : blocks) block = malloc((seed = seed * 1103515245 + 12345) >> 20);
  for (auto *block : blocks) free(block);
  done++;
}
DEEP void churn_allocate_middle(unsigned seed) {
  churn_allocate_deep(seed);
  done++;
}
DEEP void *churn_allocate_entry(void *) {
  prctl(PR_SET_NAME, "allocate");
  for (unsigned seed = 1; !over; seed++) churn_allocate_middle(seed);
  return nullptr;
}

DEEP void churn_load_deep() {
  void *library = dlopen(plugin.c_str(), RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    abort();
  }
  auto work = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "plugin_work"));
  work([] { sched_yield(); });
  dlclose(library);
  done++;
}
DEEP void churn_load_middle() {
  churn_load_deep();
  done++;
}
DEEP void *churn_load_entry(void *) {
  prctl(PR_SET_NAME, "load");
  while (!over) churn_load_middle();
  return nullptr;
}

DEEP void churn_print_deep(FILE *file) {
  fprintf(file, "%d %s\n", 12345, "text");
  rewind(file);
  done++;
}
DEEP void churn_print_middle(FILE *file) {
  churn_print_deep(file);
  done++;
}
DEEP void *churn_print_entry(void *) {
  prctl(PR_SET_NAME, "print");
  FILE *file = tmpfile();
  while (!over) churn_print_middle(file);
  fclose(file);
  return nullptr;
}

static void *brief(void *) {
  prctl(PR_SET_NAME, "brief");
  churn_allocate_middle(7);
  return nullptr;
}
DEEP void churn_start_deep() {
  pthread_t threads[3];
  for (auto &thread : threads)
    if (pthread_create(&thread, nullptr, brief, nullptr) != 0) abort();
  for (auto thread : threads) pthread_join(thread, nullptr);
  done++;
}
DEEP void churn_start_middle() {
  churn_start_deep();
  done++;
}
DEEP void *churn_start_entry(void *) {
  prctl(PR_SET_NAME, "start");
  while (!over) churn_start_middle();
  return nullptr;
}

static pthread_t all[5];
extern "C" void churn_begin(const char *path) {
  plugin = path;
  over = false;
  void *(*const entries[])(void *) = {churn_throw_entry, churn_allocate_entry, churn_load_entry, churn_print_entry,
                                      churn_start_entry};
  for (int i = 0; i < 5; i++)
    if (pthread_create(&all[i], nullptr, entries[i], nullptr) != 0) abort();
}
extern "C" long churn_end() {
  over = true;
  for (auto thread : all) pthread_join(thread, nullptr);
  return done;
}
