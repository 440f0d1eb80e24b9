package import Model
package import Registry
package import SystemIO

/// The other state debugger, to which `debuglink.forward` passes the streams of the apps.
///
/// An owner who names a debugger in the configuration consents to connections to it. mDNS has no authentication, so the
/// name must be unique, or one of its bearers must be approved.
package struct DebuggerDialer: Sendable {
    /// The key of the TXT record that a broker adds to its own advertisement, with the value `patchbay`. A broker
    /// forwards to no other broker, so that no stream runs in a circle.
    static let originKey = "via"
    static let origin = "patchbay"
    /// The TXT record of this broker's own advertisement.
    package static var ownTXT: TXTRecord {
        var txt = TXTRecord()
        txt.set(originKey, to: Array(origin.utf8))
        return txt
    }

    private let name: String
    private let registry: EndpointRegistry
    private let dialer: any Dialer

    package init(name: String, registry: EndpointRegistry, dialer: any Dialer) {
        (self.name, self.registry, self.dialer) = (name, registry, dialer)
    }

    /// Connects to the debugger.
    ///
    /// - Throws: `DialError`.
    package func dial() async throws -> Connection {
        var failure: DialError?
        for route in try Self.routes(toDebugger: name, among: await registry.endpoints) {
            do { return try await dialer.dial(route) } catch let error as DialError { failure = failure ?? error }
        }
        throw failure ?? DialError(.noRoute, "no debugger called \"\(SanitizedText(name))\" is reachable")
    }

    /// Returns the routes to the debugger with a name.
    static func routes(toDebugger name: String, among endpoints: [Endpoint]) throws(DialError) -> [Route] {
        let named = endpoints.filter { endpoint in
            endpoint.kind == .debug && endpoint.name.text == name && endpoint.txt[originKey] != origin
                && endpoint.routes.contains { !$0.route.isInbound }
        }
        guard !named.isEmpty else {
            throw DialError(
                .noRoute,
                "no state debugger on the network is called \"\(SanitizedText(name))\"; start it, or change "
                    + "debuglink.forward"
            )
        }
        let approved = named.flatMap(\.approvedRoutes).map(\.route).filter { !$0.isInbound }
        if !approved.isEmpty { return approved }
        guard named.count == 1 else {
            throw DialError(
                .forbidden,
                "\(named.count) state debuggers are called \"\(SanitizedText(name))\"; approve one of them: patchbay "
                    + "approve \(named[0].id)"
            )
        }
        return named[0].routes.map(\.route).filter { !$0.isInbound }
    }
}
