#include "CDashboard.h"

// SwiftPM compiles C11, in which clang knows #embed as an extension.
#pragma clang diagnostic ignored "-Wc23-extensions"

// Each file of Page/ has an array and a line in the table. A test compares the table with the folder.

static const unsigned char index_html[] = {
#embed "Page/index.html"
};

#define FILE(name, bytes) {name, bytes, sizeof(bytes)}

static const CDashboardFile files[] = {
    FILE("index.html", index_html),
};

const CDashboardFile *CDashboard_files(size_t *count) {
    *count = sizeof(files) / sizeof(files[0]);
    return files;
}
