// A library that is loaded and unloaded all the time; `plugin_hold`, where it is set, keeps its constructor.
#include <stdlib.h>

static volatile int loaded;
__attribute__((constructor)) static void plugin_begin(void) {
  const char *address = getenv("BACKTRAIL_PLUGIN_HOLD");
  if (address != NULL) ((void (*)(void))strtoull(address, NULL, 16))();
  loaded++;
}
__attribute__((noinline)) void plugin_work(void (*call)(void)) {
  call();
  loaded++;
}
