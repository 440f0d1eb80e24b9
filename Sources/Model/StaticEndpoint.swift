/// An endpoint that is not announced: a table in the configuration, or the result of `patchbay add`.
package struct StaticEndpoint: Hashable, Sendable, Codable {
    package let name: String
    package let kind: EndpointKind
    /// A numeric IPv4 or IPv6 address, or `localhost`. Other names are rejected because the resolver could be
    /// controlled by an attacker.
    package let address: String
    /// The port, 1 to 65535.
    package let port: UInt16
    /// The bundle identifier of the app, which grants for an app match.
    package let app: String?
    /// The path of an MCP server, such as `/api/mcp`. Nil means `/mcp` and `/`.
    package let path: String?

    /// The maximum length of a path in bytes.
    private static let pathLimit = 128

    package init(
        name: String,
        kind: EndpointKind,
        address: String,
        port: UInt16,
        app: String? = nil,
        path: String? = nil
    ) {
        self.path = path
        self.name = name
        self.kind = kind
        self.address = address
        self.port = port
        self.app = app
    }

    /// The first invalid key with the reason, as a sentence. Nil if the endpoint is valid, apart from its kind.
    package var validationError: (key: String, message: String)? { validationErrors.first }

    /// The invalid keys, each with the reason as a sentence. The kind is not checked.
    package var validationErrors: [(key: String, message: String)] {
        var errors: [(key: String, message: String)] = []
        if SanitizedText(name).text != name || name.isEmpty {
            errors.append(("name", "the name must be plain text of 1 to \(SanitizedText.nameLimit) bytes"))
        }
        if let app, SanitizedText(app, limit: 155).text != app || app.isEmpty {
            errors.append(("app", "the app must be a bundle identifier such as com.example.shop"))
        }
        if !Self.isAddress(address) {
            errors.append(("address", "\"\(SanitizedText(address))\" is neither a numeric IP address nor localhost"))
        }
        if port == 0 {
            errors.append(("port", "port 0 is not reachable; give the port on which the server listens"))
        }
        if let path, !Self.isPath(path) {
            errors.append(("path", "the path must begin with / and have at most \(Self.pathLimit) characters of a URL"))
        } else if path != nil, kind != .mcp {
            errors.append(("path", "only an endpoint of the kind mcp has a path"))
        }
        return errors
    }

    private static func isPath(_ text: String) -> Bool {
        text.hasPrefix("/") && text.utf8.count <= pathLimit
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }

    /// Returns whether the text has the characters of a numeric address. The socket call validates the address.
    private static func isAddress(_ text: String) -> Bool {
        if text == "localhost" { return true }
        let bytes = text.split(separator: ".", omittingEmptySubsequences: false)
        if bytes.count == 4, bytes.allSatisfy({ $0.allSatisfy(\.isNumber) && UInt8($0) != nil }) { return true }
        let digits = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: ":"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        return digits && text.split(separator: ":", omittingEmptySubsequences: false).count > 2
    }
}
