/* libqrencode 4, which draws the QR codes of QR. */
#pragma once

#include <qrencode.h>
