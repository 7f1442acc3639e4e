/* CUDA's driver for a test: it hands each launch to a function of the test. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Launch)(const char* code, const char* function, unsigned x, unsigned y, unsigned z,
                      unsigned threads, unsigned shared, void* stream, void** arguments);

struct Function {
  char *code, *name;
  int shared; /* what cuFuncSetAttribute allowed */
};

static Launch launch_of_test;
static int capability = 90;

void fake_set(Launch launch, int capability_of_device) {
  launch_of_test = launch;
  capability = capability_of_device;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  if (attribute == 75) *value = capability / 10;
  if (attribute == 76) *value = capability % 10;
  if (attribute == 97) *value = 227 << 10;
  return attribute == 75 || attribute == 76 || attribute == 97 ? 0 : 1;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static int contexts[8];
  *context = &contexts[device];
  return 0;
}
int cuCtxSetCurrent(void* context) { return context == NULL; }
int cuModuleLoadData(void** module, const void* image) {
  *module = strdup(image); /* the code of a test is its name, a string */
  return *module == NULL;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  struct Function* made = malloc(sizeof *made);
  made->code = module;
  made->name = strdup(name);
  made->shared = 48 << 10;
  *function = made;
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != 8) return 1;
  ((struct Function*)function)->shared = value;
  return 0;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void* stream,
                   void** arguments, void** extra) {
  const struct Function* made = function;
  if ((int)shared > made->shared || threads_y != 1 || threads_z != 1 || extra != NULL) return 1;
  return launch_of_test(made->code, made->name, x, y, z, threads, shared, stream, arguments);
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 1 ? "invalid value" : "of the test";
  return 0;
}
