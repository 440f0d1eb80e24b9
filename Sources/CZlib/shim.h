/* zlib, which decodes the answers of servers that compress them. */
#pragma once

#include <zlib.h>

/* inflateInit2 is a macro, which Swift cannot import. */
static inline int CZlib_inflate_init(z_stream *stream, int window_bits)
{
	return inflateInit2(stream, window_bits);
}
