#include "CVersion.h"

// Written by Sources/CVersion/stamp, and absent in a plain `swift build`.
#if __has_include("commit.h")
#include "commit.h"
#else
#define PATCHBAY_COMMIT ""
#endif

const char *CVersion_commit(void) { return PATCHBAY_COMMIT; }
