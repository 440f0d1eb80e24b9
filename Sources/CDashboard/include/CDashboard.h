#ifndef CDASHBOARD_H
#define CDASHBOARD_H

#include <stddef.h>

/// A file of the dashboard's page, whose bytes are part of the program.
typedef struct {
    const char *_Nonnull name;
    const unsigned char *_Nonnull bytes;
    size_t count;
} CDashboardFile;

/// Returns the first file of the page, and their number.
const CDashboardFile *_Nonnull CDashboard_files(size_t *_Nonnull count);

#endif
