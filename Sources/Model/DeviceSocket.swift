/// A socket on a phone to which streams lead.
package enum DeviceSocket: Hashable, Sendable {
    /// A TCP port on the phone's loopback.
    case port(UInt16)
    /// An abstract unix socket of an Android phone, such as that of a WebView's debugger.
    case abstract(AbstractSocketName)

    /// The TCP port; nil for an abstract socket.
    package var port: UInt16? {
        if case .port(let port) = self { port } else { nil }
    }
}

/// The display form, which is adb's for an abstract socket: `9876`, `localabstract:chrome_devtools_remote`.
extension DeviceSocket: CustomStringConvertible {
    package var description: String {
        switch self {
        case .port(let port): "\(port)"
        case .abstract(let name): "\(AbstractSocketName.adbPrefix)\(name)"
        }
    }
}

/// The name of an abstract unix socket, without the NUL that begins its address (unix(7)).
///
/// The name becomes part of a request to the adb server, in which `:` and `;` separate parts. Names with these characters
/// are therefore not accepted.
package struct AbstractSocketName: Hashable, Sendable, CustomStringConvertible {
    /// The prefix of adb for an abstract socket.
    package static let adbPrefix = "localabstract:"
    /// `sun_path` of sockaddr_un holds 108 bytes including the first NUL.
    private static let lengthLimit = 107

    package let text: String

    /// Returns nil unless the text has 1 to 107 letters, digits, `.`, `_`, `-` and `/`.
    package init?(_ text: some StringProtocol) {
        let isAllowed = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "-")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isAllowed, (1...Self.lengthLimit).contains(text.utf8.count) else { return nil }
        self.text = String(text)
    }

    package var description: String { text }
}

extension AbstractSocketName: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let name = AbstractSocketName(text) else {
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "\"\(SanitizedText(text))\" is not the name of an abstract socket"
            )
        }
        self = name
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
