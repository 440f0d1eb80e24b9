import Model
import QR

/// What a person sees while a pairing window is open: the QR code, the string, and how to use them.
enum PairingInstructions {
    /// - Parameters:
    ///   - issued: The invite.
    ///   - string: What to scan or paste.
    ///   - width: The terminal's; nil where there is none, and then there is no code either.
    ///   - isColoured: Whether the code is drawn black on white.
    /// - Returns: Lines without a final line break.
    /// - Throws: `QRError` when no code can be made of the string.
    static func text(_ issued: IssuedInvite, string: String, width: Int?, isColoured: Bool) throws -> String {
        var lines: [String] = []
        if let width {
            let code = try QRCode(string)
            if code.fullSize <= width {
                lines += code.halfBlocks(isColoured: isColoured)
            } else {
                lines.append("The terminal has \(width) columns, and the QR code needs \(code.fullSize).")
            }
        }
        let permissions = issued.invite.permissions
        lines += [
            string, "",
            "Scan it, or type `patchbay join -` on the other side and paste it there.",
            "It gives \(Formatting.scopes(permissions)) on \(Formatting.selector(permissions.selector)).",
        ]
        return lines.joined(separator: "\n")
    }
}
