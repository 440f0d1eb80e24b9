import FoundationEssentials

/// The value of the header `Patchbay-Caller`: JSON in base64url (RFC 4648, section 5), without padding.
extension TeamCaller {
    /// The maximum size of the value in bytes.
    package static let headerLimit = 4 << 10
    /// The maximum size of `holder` in bytes.
    private static let holderLimit = 256

    /// The value; nil if it would be larger than the limit, because the grant names too many endpoints or tools.
    package var headerValue: String? {
        guard let json = try? JSONCoding.encoder().encode(self) else { return nil }
        let value = json.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
        return value.utf8.count <= Self.headerLimit ? value : nil
    }

    /// Returns nil unless the text is a valid value.
    package init?(headerValue text: String) {
        guard text.utf8.count <= Self.headerLimit, text.utf8.allSatisfy(Self.isBase64URL) else { return nil }
        let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard let json = Data(base64Encoded: base64 + padding),
            let caller = try? JSONCoding.decoder().decode(TeamCaller.self, from: json),
            (1...Self.holderLimit).contains(caller.holder.utf8.count), !caller.name.text.isEmpty,
            caller.holder.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return nil }
        self = caller
    }

    private static func isBase64URL(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || "-_".utf8.contains(byte) }
}
