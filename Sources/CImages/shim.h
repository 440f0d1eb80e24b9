/* The codecs of Images: libpng's simplified API (png.h, section 5), TurboJPEG (turbojpeg.h) and libyuv's scaler. */
#pragma once

#include <libyuv/planar_functions.h>
#include <libyuv/scale_argb.h>
#include <png.h>
#include <turbojpeg.h>

/* Macros that Swift's Clang importer cannot read. libyuv's "ARGB" is a little-endian word: blue comes first in memory. */
static const png_uint_32 CImages_bgra = PNG_FORMAT_BGRA;
static const png_uint_32 CImages_bgr = PNG_FORMAT_BGR;
