import CQRencode
import Glibc

/// A QR code (ISO/IEC 18004) of a short text, such as a pairing string.
package struct QRCode: Sendable, Equatable {
    /// The width of the light border that a scanner needs (section 9.1), in modules.
    static let border = 4

    /// The number of modules per side, without the border.
    package let size: Int
    private let darkness: [Bool]

    /// Encodes a text.
    ///
    /// - Throws: `QRError`. The error does not repeat the text, which may be a secret.
    package init(_ text: String) throws(QRError) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { throw .empty }
        // The lowest error correction level (L) gives the smallest code. A screen has no scratches, and a terminal has
        // few lines.
        guard let code = QRcode_encodeData(CInt(bytes.count), bytes, 0, QR_ECLEVEL_L) else {
            throw errno == ERANGE ? .tooLong(bytes: bytes.count) : .failed(errno: errno)
        }
        defer { QRcode_free(code) }
        let size = Int(code.pointee.width)
        guard let modules = code.pointee.data else { throw .failed(errno: EINVAL) }
        self.size = size
        // qrencode.h: the lowest bit of each byte is the colour; the other bits are the role of the module.
        darkness = (0..<size * size).map { modules[$0] & 1 == 1 }
    }

    /// The number of modules per side, with the border.
    package var fullSize: Int { size + 2 * Self.border }

    /// Returns whether a module is dark. The coordinates start at the upper left corner of the border. Outside of the
    /// code, all modules are light.
    func isDark(_ column: Int, _ row: Int) -> Bool {
        let (x, y) = (column - Self.border, row - Self.border)
        guard (0..<size).contains(x), (0..<size).contains(y) else { return false }
        return darkness[y * size + x]
    }
}

/// The reason why a text cannot be encoded.
package enum QRError: Error, Equatable {
    case empty
    case tooLong(bytes: Int)
    case failed(errno: CInt)
}

extension QRError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "an empty text cannot be a QR code; pass a text"
        case .tooLong(let bytes):
            "\(bytes) bytes are too many for a QR code, which holds at most 2953; shorten the text"
        case .failed(let errno): "libqrencode made no QR code (errno \(errno)); copy the text instead"
        }
    }
}

extension QRCode {
    /// Returns the code with its border as lines of half blocks, two rows of modules per line.
    ///
    /// - Parameter isColoured: True to print black on white (ECMA-48 SGR), which is correct on every terminal. Without
    ///   colours, the light modules are drawn, because nearly every terminal prints light on dark.
    /// - Returns: The lines from the top, without line ends.
    package func halfBlocks(isColoured: Bool) -> [String] {
        stride(from: 0, to: fullSize, by: 2).map { row in
            let line = (0..<fullSize).map { column in
                Self.block(
                    upper: isDark(column, row) == isColoured,
                    lower: isDark(column, row + 1) == isColoured
                )
            }
            // Uses black and white of the 256 colours, because a theme may change the first 16 colours.
            return isColoured ? "\u{1B}[38;5;16;48;5;231m\(String(line))\u{1B}[0m" : String(line)
        }
    }

    private static func block(upper: Bool, lower: Bool) -> Character {
        switch (upper, lower) {
        case (true, true): "█"
        case (true, false): "▀"
        case (false, true): "▄"
        case (false, false): " "
        }
    }
}

extension QRCode {
    /// The rows of modules without the border, `1` for a dark one.
    package var rows: [String] {
        (Self.border..<Self.border + size).map { row in
            String((Self.border..<Self.border + size).map { isDark($0, row) ? "1" : "0" })
        }
    }

    /// Returns the code with its border as an SVG image, with one unit per module. The image scales to any size and
    /// contains no script.
    package func svg() -> String {
        let path = (0..<fullSize).map(runs).joined()
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(fullSize) \(fullSize)" shape-rendering="crispEdges">\
            <rect width="\(fullSize)" height="\(fullSize)" fill="#fff"/><path d="\(path)" fill="#000"/></svg>
            """
    }

    /// Returns the SVG path of the dark runs of one row, as rectangles.
    private func runs(in row: Int) -> String {
        var path = ""
        var column = 0
        while column < fullSize {
            let start = column
            while isDark(column, row) { column += 1 }
            if column > start { path += "M\(start) \(row)h\(column - start)v1h-\(column - start)z" }
            column += 1
        }
        return path
    }
}
