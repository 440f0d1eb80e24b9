import CQRencode
import Glibc

/// A QR code (ISO/IEC 18004) of a short text: a pairing string that a camera can read.
package struct QRCode: Sendable, Equatable {
    /// The light frame that a reader needs around it (section 9.1), in modules.
    static let frame = 4

    /// Modules along one side, without the frame.
    package let size: Int
    private let darkness: [Bool]

    /// - Throws: `QRError`, which does not repeat the text: it may be a secret.
    package init(_ text: String) throws(QRError) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { throw .empty }
        // The least redundancy (L) gives the smallest code: a screen has no scratches, and a terminal few lines.
        guard let code = QRcode_encodeData(CInt(bytes.count), bytes, 0, QR_ECLEVEL_L) else {
            throw errno == ERANGE ? .tooLong(bytes: bytes.count) : .failed(errno: errno)
        }
        defer { QRcode_free(code) }
        let size = Int(code.pointee.width)
        guard let modules = code.pointee.data else { throw .failed(errno: EINVAL) }
        self.size = size
        // qrencode.h: the lowest bit of each byte is its colour, the others say what the module is for.
        darkness = (0..<size * size).map { modules[$0] & 1 == 1 }
    }

    /// Columns or rows of modules with the frame.
    package var fullSize: Int { size + 2 * Self.frame }

    /// Whether a module is dark, counted from the frame's upper left corner; everything outside of the code is light.
    func isDark(_ column: Int, _ row: Int) -> Bool {
        let (x, y) = (column - Self.frame, row - Self.frame)
        guard (0..<size).contains(x), (0..<size).contains(y) else { return false }
        return darkness[y * size + x]
    }
}

/// Why there is no QR code of a text.
package enum QRError: Error, Equatable {
    case empty
    case tooLong(bytes: Int)
    case failed(errno: CInt)
}

extension QRError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "there is no QR code of an empty text; give it one"
        case .tooLong(let bytes): "\(bytes) bytes are more than a QR code holds, which is 2953; shorten the text"
        case .failed(let errno): "libqrencode made no QR code (errno \(errno)); copy the text instead"
        }
    }
}

extension QRCode {
    /// The code and its frame in lines of half blocks, two rows of modules in each.
    ///
    /// - Parameter isColoured: Whether black on white may be asked for (ECMA-48 SGR), which is right on every terminal.
    ///   Without colours the light modules are drawn, as nearly every terminal writes light on dark.
    /// - Returns: The lines, from the top, without their ends.
    package func halfBlocks(isColoured: Bool) -> [String] {
        stride(from: 0, to: fullSize, by: 2).map { row in
            let line = (0..<fullSize).map { column in
                Self.block(
                    upper: isDark(column, row) == isColoured,
                    lower: isDark(column, row + 1) == isColoured
                )
            }
            // Black and white of the 256 colours: the first sixteen are whatever the theme makes of them.
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
    /// The code and its frame as an SVG image, one unit for each module; it scales to any size, and has no script in it.
    package func svg() -> String {
        let path = (0..<fullSize).map(runs).joined()
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(fullSize) \(fullSize)" shape-rendering="crispEdges">\
            <rect width="\(fullSize)" height="\(fullSize)" fill="#fff"/><path d="\(path)" fill="#000"/></svg>
            """
    }

    /// The dark runs of one row as rectangles.
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
