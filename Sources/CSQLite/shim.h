/* SQLite 3, which keeps what pairing must not lose. */
#pragma once

#include <sqlite3.h>

/* SQLITE_TRANSIENT, a cast of -1 that Swift cannot import: SQLite takes a copy. */
static inline int CSQLite_bind_text(sqlite3_stmt *statement, int place, const char *text, int length)
{
	return sqlite3_bind_text(statement, place, text, length, SQLITE_TRANSIENT);
}

/* Of no bytes there is no address, and a blob at no address is NULL. */
static inline int CSQLite_bind_blob(sqlite3_stmt *statement, int place, const void *bytes, int length)
{
	return length ? sqlite3_bind_blob(statement, place, bytes, length, SQLITE_TRANSIENT)
		      : sqlite3_bind_zeroblob(statement, place, 0);
}
