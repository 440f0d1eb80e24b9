package import FoundationEssentials
package import Model

/// An endpoint in the registry of a team: the facts that other hosts show, without those that change with every sighting.
///
/// The stored form has no launch IDs, no IDs of registrations, no authentication codes, and no leases.
package struct TeamEndpoint: Hashable, Sendable, Codable {
    package let kind: EndpointKind
    package let app: SanitizedText
    package let name: SanitizedText
    package let version: SanitizedText?
    package let location: Endpoint.Location
    package let state: Endpoint.State
    package private(set) var reason: SanitizedText?
    package let approval: Endpoint.Approval
    /// The routes of the owning broker, for display.
    package private(set) var routes: [EndpointRoute]
    /// Nil for an empty record.
    package private(set) var txt: TXTRecord?
    package private(set) var txtTruncated: Bool?
    package let sources: [Sighting.Source]
    package let registered: Bool?
    package let server: SanitizedText?
    /// IDs on the owning host.
    package private(set) var formerIDs: [EndpointID]?
    /// The ID on the owning host.
    package let sameLaunchAs: EndpointID?
    package private(set) var capabilities: [SanitizedText]?
    package private(set) var limits: [SanitizedText]?
    package let firstSeenAt: Date

    /// The TXT keys that are left out: the launch ID of an app.
    private static let omittedKeys: Set = ["boot"]

    /// Converts an endpoint of this broker.
    package init(_ endpoint: Endpoint) {
        kind = endpoint.kind
        app = endpoint.app
        name = endpoint.name
        version = endpoint.version
        location = endpoint.location
        state = endpoint.state
        reason = endpoint.reason.map { SanitizedText($0, limit: Endpoint.textLimit) }
        approval = endpoint.approval
        routes = endpoint.routes.map(\.published)
        var txt = TXTRecord()
        for entry in endpoint.txt.entries where !Self.omittedKeys.contains(entry.key.lowercased()) {
            txt.set(entry.key, to: entry.value)
        }
        self.txt = txt.entries.isEmpty ? nil : txt
        txtTruncated = endpoint.txtTruncated
        sources = endpoint.sources
        registered = endpoint.registered
        server = endpoint.server
        formerIDs = endpoint.formerIDs
        sameLaunchAs = endpoint.sameLaunchAs
        capabilities = endpoint.capabilities?.map { SanitizedText($0, limit: Endpoint.textLimit) }
        limits = endpoint.limits?.map { SanitizedText($0, limit: Endpoint.textLimit) }
        firstSeenAt = endpoint.firstSeenAt
    }

    /// Returns the endpoint as the brokers of other hosts list it.
    package func endpoint(_ id: EndpointID, on host: HostName) -> Endpoint {
        var endpoint = Endpoint(
            id: id,
            kind: kind,
            app: app,
            name: name,
            version: version,
            location: location,
            state: state,
            reason: reason?.text,
            approval: approval,
            routes: routes,
            txt: txt ?? TXTRecord(),
            sources: sources,
            firstSeenAt: firstSeenAt,
            lastSeenAt: nil
        )
        endpoint.txtTruncated = txtTruncated
        endpoint.registered = registered
        endpoint.server = server
        endpoint.formerIDs = formerIDs
        endpoint.sameLaunchAs = sameLaunchAs
        endpoint.capabilities = capabilities?.map(\.text)
        endpoint.limits = limits?.map(\.text)
        return endpoint.on(host)
    }
}

/// Truncation.
extension TeamEndpoint {
    /// Returns the value of the endpoint's entry, of at most `TeamCoding.valueLimit` bytes.
    ///
    /// A larger endpoint loses the last TXT entries, and is marked with `txtTruncated`. Then it loses its least
    /// important facts, and the last routes.
    func bytes(for key: TeamKey) throws(TeamError) -> [UInt8] {
        var shorter = self
        var bytes = try TeamCoding.bytes(of: shorter, for: key)
        while bytes.count > TeamCoding.valueLimit, shorter.shorten() {
            bytes = try TeamCoding.bytes(of: shorter, for: key)
        }
        return bytes
    }

    /// Removes one fact. Returns false if nothing more can be removed.
    private mutating func shorten() -> Bool {
        if let entries = txt?.entries {
            var rest = TXTRecord()
            for entry in entries.dropLast() { rest.set(entry.key, to: entry.value) }
            txt = rest.entries.isEmpty ? nil : rest
            txtTruncated = true
        } else if limits != nil {
            limits = nil
        } else if capabilities != nil {
            capabilities = nil
        } else if formerIDs != nil {
            formerIDs = nil
        } else if reason != nil {
            reason = nil
        } else if !routes.isEmpty {
            routes.removeLast()
        } else {
            return false
        }
        return true
    }
}
