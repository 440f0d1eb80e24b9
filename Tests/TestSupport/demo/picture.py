#!/usr/bin/env python3
"""Shows a PNG in the terminal: picture.py FILE [ROWS]

Uses the protocol of kitty or iTerm2, or sixels, where the terminal is known to have it. Elsewhere each character is two pixels, the
upper and the lower half of a block. Reads the PNGs that the demo makes: 8 bits a sample, RGB, RGBA or a palette, not interlaced.
"""

import base64
import os
import struct
import sys
import zlib

KITTY = ("kitty", "ghostty", "wezterm")
ITERM = ("iterm.app", "wezterm")
SIXEL = ("foot", "mlterm", "contour")


def decode(data):
    """Returns the rows of a PNG as lists of (red, green, blue) (PNG specification, sections 5, 9 and 11)."""
    offset, packed, palette = 8, b"", []
    while offset < len(data):
        length, name = struct.unpack(">I4s", data[offset:offset + 8])
        body = data[offset + 8:offset + 8 + length]
        if name == b"IHDR":
            width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            samples = {2: 3, 3: 1, 6: 4}.get(kind)
            if depth != 8 or samples is None or interlaced:
                sys.exit("this PNG has a form that is not shown here")
        elif name == b"PLTE":
            palette = list(zip(body[::3], body[1::3], body[2::3]))
        elif name == b"IDAT":
            packed += body
        offset += 12 + length
    raw, rows, before = zlib.decompress(packed), [], bytes(width * samples)
    for y in range(height):
        begin = y * (width * samples + 1)
        filtered, row = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * samples])
        for x in range(len(row)):
            left, up = (row[x - samples] if x >= samples else 0), before[x]
            corner = before[x - samples] if x >= samples else 0
            if filtered == 1:
                row[x] = row[x] + left & 255
            elif filtered == 2:
                row[x] = row[x] + up & 255
            elif filtered == 3:
                row[x] = row[x] + (left + up) // 2 & 255
            elif filtered == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
                row[x] = row[x] + near & 255
        before = bytes(row)
        rows.append([palette[index] for index in row] if kind == 3 else
                    [tuple(row[x:x + 3]) for x in range(0, len(row), samples)])
    return rows


def scaled(rows, height):
    """Returns the rows with this height, by the nearest pixels in the middle of each area."""
    width = max(1, round(len(rows[0]) * height / len(rows)))
    return [[rows[(2 * y + 1) * len(rows) // (2 * height)][(2 * x + 1) * len(rows[0]) // (2 * width)] for x in range(width)]
            for y in range(height)]


def blocks(rows):
    """Returns lines of half blocks in the colours of the rows."""
    lines = []
    for upper, lower in zip(rows[::2], rows[1::2]):
        line = "".join("\x1b[38;2;%d;%d;%dm\x1b[48;2;%d;%d;%dm▀" % (*top, *bottom) for top, bottom in zip(upper, lower))
        lines.append(line + "\x1b[0m")
    return "\n".join(lines)


def sixels(rows):
    """Returns the rows as sixels in a cube of 216 colours (DEC STD 070)."""
    def colour(pixel):
        return sum(round(part / 51) * weight for part, weight in zip(pixel, (36, 6, 1)))

    indexed = [[colour(pixel) for pixel in row] for row in rows]
    used = sorted(set(index for row in indexed for index in row))
    parts = ["\x1bPq"] + ["#%d;2;%d;%d;%d" % (index, index // 36 * 20, index // 6 % 6 * 20, index % 6 * 20) for index in used]
    for band in range(0, len(indexed), 6):
        six = indexed[band:band + 6]
        for index in sorted(set(index for row in six for index in row)):
            bits = (sum((row[x] == index) << y for y, row in enumerate(six)) for x in range(len(six[0])))
            parts.append("#%d%s$" % (index, "".join(chr(63 + bit) for bit in bits)))
        parts.append("-")
    return "".join(parts) + "\x1b\\"


def kitty(data, rows):
    """Returns the file in parts of 4,096 characters, as kitty's graphics protocol wants it."""
    text = base64.b64encode(data).decode()
    parts = [text[begin:begin + 4096] for begin in range(0, len(text), 4096)]
    first = "\x1b_Ga=T,f=100,r=%d,m=%d;%s\x1b\\" % (rows, len(parts) > 1, parts[0])
    return first + "".join("\x1b_Gm=%d;%s\x1b\\" % (number < len(parts), part) for number, part in enumerate(parts[1:], 2))


def main(path, rows="20"):
    rows = int(rows)
    with open(path, "rb") as file:
        data = file.read()
    names = (os.environ.get("TERM", "") + " " + os.environ.get("TERM_PROGRAM", "")).lower()
    # tmux and screen pass none of these protocols on.
    is_direct = not any(os.environ.get(name) for name in ("TMUX", "STY"))
    if is_direct and any(name in names for name in KITTY):
        print(kitty(data, rows))
    elif is_direct and any(name in names for name in ITERM):
        print("\x1b]1337;File=inline=1;height=%d;preserveAspectRatio=1:%s\a" % (rows, base64.b64encode(data).decode()))
    elif is_direct and any(name in names for name in SIXEL):
        print(sixels(scaled(decode(data), rows * 18)))
    else:
        print(blocks(scaled(decode(data), rows * 2)))


if __name__ == "__main__":
    main(*sys.argv[1:])
