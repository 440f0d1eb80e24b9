package import Model

/// The apps that registered themselves, and the rules of their registrations. Has no clock and no I/O.
///
/// A registration belongs to the grant that sent it. The key of its sighting names the grant, so the endpoint of an app
/// stays the same at a relaunch and at another address. No other grant can continue the endpoint.
package struct RegistrationTable: Sendable {
    /// One registered app.
    package struct Entry: Hashable, Sendable {
        package let id: String
        package let grant: String
        package let sighting: Sighting
        fileprivate(set) package var expiresAt: Duration

        fileprivate var address: String? { sighting.routes.first?.location }
    }

    /// The holder of a grant that registers an app, and the address of its request.
    package struct Registrant: Hashable, Sendable {
        package let grant: String
        /// The name of the grant, which names the device by default.
        package let name: SanitizedText
        /// The numeric address that the request comes from, with its interface if the address is link-local.
        package let address: String
        package let interface: String?
        package let interfaceIndex: UInt32

        package init(
            grant: String,
            name: SanitizedText,
            address: String,
            interface: String? = nil,
            interfaceIndex: UInt32 = 0
        ) {
            self.grant = grant
            self.name = name
            self.address = address
            self.interface = interface
            self.interfaceIndex = interfaceIndex
        }
    }

    /// The maximum number of registered apps of one grant.
    package static let perGrant = 8
    /// The maximum number of registered apps.
    package static let limit = 256
    /// The maximum number of registrations of one grant in one minute. Each one makes the broker write its state.
    package static let perMinute = 30
    /// The time without a heartbeat after which a registration ends: three heartbeats.
    package static let lifetime = Duration.seconds(3 * Registration.heartbeatSeconds)
    /// The length of the longest bundle identifier.
    private static let appLimit = 155
    private static let capabilityLimit = 32

    /// The registrations of one grant within one minute.
    private struct Minute {
        let start: Duration
        var count = 0
    }

    private let kinds: [EndpointKind]
    private var minutes: [String: Minute] = [:]
    private var entries: [String: Entry] = [:]
    /// The events that the registry has not received yet, oldest first.
    private var events: [SightingEvent] = []

    /// - Parameter kinds: The kinds that can be registered.
    package init(kinds: [EndpointKind]) { self.kinds = kinds }

    /// The time of the next `expire`; nil without a registration.
    package var deadline: Duration? { entries.values.map(\.expiresAt).min() }

    package subscript(_ id: String) -> Entry? { entries[id] }

    /// Registers an app. An earlier registration of the same app with the same grant ends.
    ///
    /// - Parameters:
    ///   - spec: The app.
    ///   - registrant: The grant, and the address of the request.
    ///   - id: A new random ID.
    ///   - now: The time since the start of the broker.
    /// - Returns: The registration.
    /// - Throws: `RegistrationError.invalid`, `.unknownKind`, `.tooManyPerGrant`, `.tooMany`, `.tooOften`.
    package mutating func register(
        _ spec: RegistrationSpec,
        from registrant: Registrant,
        as id: String,
        at now: Duration
    ) throws(RegistrationError) -> Entry {
        try check(spec)
        let sighting = Self.sighting(of: spec, from: registrant, as: id)
        let earlier = entries.values.first { $0.sighting.id == sighting.id }
        if earlier == nil {
            guard entries.values.count(where: { $0.grant == registrant.grant }) < Self.perGrant else {
                throw .tooManyPerGrant(limit: Self.perGrant)
            }
            guard entries.count < Self.limit else { throw .tooMany(limit: Self.limit) }
        }
        try countRegistration(of: registrant.grant, at: now)
        // The new sighting replaces the one with the same ID.
        if let earlier { entries[earlier.id] = nil }
        let entry = Entry(id: id, grant: registrant.grant, sighting: sighting, expiresAt: now + Self.lifetime)
        entries[id] = entry
        events.append(.seen(sighting))
        return entry
    }

    /// Records a heartbeat.
    ///
    /// - Returns: The registration.
    /// - Throws: `RegistrationError.notFound`, also for the registration of another grant; `.moved`.
    @discardableResult
    package mutating func heartbeat(
        _ id: String,
        from registrant: Registrant,
        at now: Duration
    ) throws(RegistrationError) -> Entry {
        guard var entry = entries[id], entry.grant == registrant.grant else { throw .notFound(id: id) }
        guard entry.address == Self.route(of: registrant, port: 0, as: id).location else { throw .moved(id: id) }
        entry.expiresAt = now + Self.lifetime
        entries[id] = entry
        return entry
    }

    /// Ends a registration.
    ///
    /// - Throws: `RegistrationError.notFound`, also for the registration of another grant.
    package mutating func end(_ id: String, of grant: String) throws(RegistrationError) {
        guard entries[id]?.grant == grant else { throw .notFound(id: id) }
        remove(id)
    }

    /// Ends the registrations of a grant.
    package mutating func endAll(of grant: String) {
        minutes[grant] = nil
        for entry in entries.values where entry.grant == grant { remove(entry.id) }
    }

    /// Ends the registrations without a heartbeat.
    package mutating func expire(at now: Duration) {
        for entry in entries.values where now >= entry.expiresAt { remove(entry.id) }
    }

    /// Returns the oldest event for the registry.
    package mutating func nextEvent() -> SightingEvent? { events.isEmpty ? nil : events.removeFirst() }

    private mutating func remove(_ id: String) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        events.append(.lost(entry.sighting.id))
    }

    private mutating func countRegistration(of grant: String, at now: Duration) throws(RegistrationError) {
        var minute = minutes[grant] ?? Minute(start: now)
        if now >= minute.start + .seconds(60) { minute = Minute(start: now) }
        guard minute.count < Self.perMinute else { throw .tooOften(limit: Self.perMinute) }
        minute.count += 1
        minutes[grant] = minute
    }

    private func check(_ spec: RegistrationSpec) throws(RegistrationError) {
        if let error = spec.kind.validationError(among: kinds) { throw .unknownKind(error.message) }
        guard (1...Self.appLimit).contains(spec.app.text.utf8.count) else {
            throw .invalid("\"app\" is a bundle identifier of 1 to \(Self.appLimit) bytes")
        }
        guard spec.port >= ApprovalPolicy.firstUserPort else {
            throw .invalid("port \(spec.port) belongs to a system service; register a port above 1023")
        }
        for (name, text) in [("version", spec.version), ("launchID", spec.launchID), ("device", spec.device)] {
            guard let text else { continue }
            guard (1...SanitizedText.nameLimit).contains(text.text.utf8.count) else {
                throw .invalid("\"\(name)\" has 1 to \(SanitizedText.nameLimit) bytes")
            }
        }
        let capabilities = spec.capabilities ?? []
        guard capabilities.count <= Self.capabilityLimit,
            capabilities.allSatisfy({ (1...SanitizedText.nameLimit).contains($0.text.utf8.count) })
        else {
            throw .invalid(
                "\"capabilities\" has at most \(Self.capabilityLimit) texts of 1 to \(SanitizedText.nameLimit) bytes"
            )
        }
    }

    private static func route(of registrant: Registrant, port: UInt16, as id: String) -> NetworkRoute {
        NetworkRoute(
            address: registrant.address,
            port: port,
            interface: registrant.interface,
            interfaceIndex: registrant.interfaceIndex,
            registration: id
        )
    }

    private static func sighting(of spec: RegistrationSpec, from registrant: Registrant, as id: String) -> Sighting {
        let device = spec.device ?? registrant.name
        return Sighting(
            id: Sighting.ID(
                source: .registration,
                key: "\(registrant.grant)/\(spec.kind)/\(spec.app)/\(device.text.lowercased())"
            ),
            kind: spec.kind,
            app: spec.app,
            appIsBundleID: true,
            name: spec.app,
            machine: device,
            version: spec.version,
            routes: [.network(route(of: registrant, port: spec.port, as: id))],
            launchID: spec.launchID
        )
    }
}
