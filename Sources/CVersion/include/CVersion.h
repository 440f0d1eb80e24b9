#ifndef CVERSION_H
#define CVERSION_H

/// The commit of the build as text; empty if it is unknown.
const char *_Nonnull CVersion_commit(void);

#endif
