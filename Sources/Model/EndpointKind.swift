/// The protocol that an endpoint speaks.
///
/// Any service name is a valid kind, because the configuration can add service types. The kinds that Patchbay supports
/// have constants.
package struct EndpointKind: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    /// AppReveal's MCP server inside an app: JSON-RPC over POST, and `GET /health` without a token.
    package static let appreveal = EndpointKind("appreveal")
    /// An app-debug server: plain HTTP on a phone's loopback, with `GET /actions`.
    package static let appDebug = EndpointKind("app-debug")
    /// A state debugger of type `_debug._tcp`. The debugger advertises and the app connects to it.
    package static let debug = EndpointKind("debug")
    /// Any other MCP server.
    package static let mcp = EndpointKind("mcp")
    package static let openagents = EndpointKind("openagents")
    /// The Dart VM service of a Flutter app.
    package static let dartVM = EndpointKind("dart-vm")
    /// A server of the Chrome DevTools protocol, which lists its pages at `GET /json/list`: Chrome, Node, Metro.
    package static let web = EndpointKind("web")
    /// A TCP port with an unknown protocol.
    package static let tcp = EndpointKind("tcp")

    /// The kinds that Patchbay knows without a profile.
    package static let builtIn = [appreveal, dartVM, debug, mcp, openagents, tcp, web]

    /// True if a second connection certainly leaves the first one open: the servers of these kinds speak HTTP. Some
    /// others accept one client and drop the old one.
    package var acceptsManyClients: Bool { [.appreveal, .appDebug, .dartVM, .web].contains(self) }

    package init(_ text: String) { self.text = text }

    /// Creates the kind of a service type: `_appreveal._tcp` becomes `appreveal`. Types without a constant keep their
    /// service name.
    package init(serviceType: ServiceType) {
        switch serviceType {
        case .dartVMService, .flutterDevices: self = .dartVM
        default: self.init(String(serviceType.text.dropFirst().prefix { $0 != "." }))
        }
    }

    package var description: String { text }

    package static func < (one: EndpointKind, other: EndpointKind) -> Bool { one.text < other.text }
}

extension EndpointKind {
    /// Returns the error for a kind that does not exist, with the nearest one; nil for an existing kind.
    package func validationError(among kinds: [EndpointKind]) -> (message: String, nearest: EndpointKind?)? {
        guard !kinds.contains(self) else { return nil }
        let names = Set(kinds.map(\.text)).sorted()
        let nearest = SimilarNameFinder.of(text, among: names, count: 1).first
        let question = nearest.map { "; did you mean \"\($0)\"? The" } ?? "; the"
        let list = names.joined(separator: ", ")
        let other = kinds.contains(.tcp) ? "; for any other server use tcp" : ""
        return (
            "there is no kind \"\(SanitizedText(text))\"\(question) kinds are \(list)\(other)",
            nearest.map { EndpointKind($0) }
        )
    }
}

extension EndpointKind: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(SanitizedText(try decoder.singleValueContainer().decode(String.self)).text)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
