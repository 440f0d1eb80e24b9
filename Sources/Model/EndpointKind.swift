/// What an endpoint speaks.
///
/// A closed set would lose services whose type somebody configured, so any service name is a kind; the ones that Patchbay
/// knows how to talk to have names of their own here.
package struct EndpointKind: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    /// AppReveal's MCP server inside an app: JSON-RPC by POST, `GET /health` open.
    package static let appreveal = EndpointKind("appreveal")
    /// An app-debug server: plain HTTP on a phone's loopback, `GET /actions`.
    package static let appDebug = EndpointKind("app-debug")
    /// A state debugger of the `_debug._tcp` kind; the debugger advertises, the app connects.
    package static let debug = EndpointKind("debug")
    /// Any other MCP server.
    package static let mcp = EndpointKind("mcp")
    package static let openagents = EndpointKind("openagents")
    /// The Dart VM service of a Flutter app.
    package static let dartVM = EndpointKind("dart-vm")
    /// Something answers TCP, and nothing more is known.
    package static let tcp = EndpointKind("tcp")

    package init(_ text: String) { self.text = text }

    /// `_appreveal._tcp` is `appreveal`; a type without a name of its own here keeps its service name.
    package init(serviceType: ServiceType) {
        switch serviceType {
        case .dartVMService: self = .dartVM
        default: self.init(String(serviceType.text.dropFirst().prefix { $0 != "." }))
        }
    }

    package var description: String { text }

    package static func < (one: EndpointKind, other: EndpointKind) -> Bool { one.text < other.text }
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
