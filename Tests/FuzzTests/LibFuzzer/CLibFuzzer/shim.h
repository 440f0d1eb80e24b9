// libFuzzer as a library (https://llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a library"); LLVM installs no header for it.
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));
