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
