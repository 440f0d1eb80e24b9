package import FoundationEssentials
package import Model

/// The endpoints that this broker itself reaches, and the stream of their changes.
///
/// Discovery sources push events to the registry; the registry never queries them. Subscribers receive every change in
/// order, after a snapshot or after the last revision they know.
package actor EndpointRegistry {
    /// The phones of endpoints that reach the same launch as a cabled endpoint.
    package nonisolated let linkedPhones = LinkedPhones()
    private(set) var table: EndpointTable
    private var changeLog: ChangeLog
    private let teamHosts: ListedHosts?
    /// The name of this host, also after it has left its team; nil without one.
    nonisolated var hostName: HostName? { teamHosts?.name }
    private let record: (@Sendable (EndpointChange.Kind, Endpoint) -> UInt64)?
    private let now: @Sendable () -> Date
    private var persist: (@Sendable () async throws -> Void)?

    /// - Parameters:
    ///   - records: The endpoints stored by an earlier run. They are listed as offline until they are seen again.
    ///   - trusts: The approvals and secrets that access control holds.
    ///   - retired: IDs that must not be assigned to another app.
    ///   - abilities: The abilities of the kinds that do not report their own.
    ///   - revision: The last revision of the earlier run.
    ///   - hosts: The hosts of the team. An ID may name this one.
    ///   - record: Adds a change to the list of all hosts, and returns its revision there; nil without such a list.
    ///   - now: The wall clock for displayed times.
    package init(
        records: [PersistedEndpoint] = [],
        trusts: [EndpointID: EndpointTrust] = [:],
        retired: RetiredIDs = RetiredIDs(),
        abilities: [EndpointKind: EndpointAbilities] = [:],
        startingAfter revision: UInt64 = 0,
        hosts: ListedHosts? = nil,
        record: (@Sendable (EndpointChange.Kind, Endpoint) -> UInt64)? = nil,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        table = EndpointTable(records: records, trusts: trusts, retired: retired, abilities: abilities)
        changeLog = ChangeLog(startingAfter: revision)
        teamHosts = hosts
        self.record = record
        self.now = now
    }

    /// The endpoints, in the order of their IDs.
    package var endpoints: [Endpoint] { table.endpoints }
    /// The endpoints, as they are saved.
    package var records: [PersistedEndpoint] {
        let now = now()
        return table.records.map { $0.saved(at: now) }
    }
    package var retired: RetiredIDs { table.retired }
    package var revision: UInt64 { changeLog.revision }
    /// The revision of the last event.
    package var lastChangeRevision: UInt64 { changeLog.lastChangeRevision }
    package var refusals: RefusedSightings { table.refusals }

    /// Returns the endpoint with this ID or former ID. The ID may name this host.
    ///
    /// - Throws: `RegistryError.noSuchEndpoint`; `.onOtherHost` for an ID that names another host of the team.
    package func endpoint(_ id: EndpointID) throws(RegistryError) -> Endpoint {
        let id = try ownID(of: id)
        guard let endpoint = table[id] else { throw .noSuchEndpoint(id.text) }
        return endpoint
    }

    private func ownID(of id: EndpointID) throws(RegistryError) -> EndpointID {
        let id = teamHosts?.ownID(of: id) ?? id
        if let named = id.host, teamHosts?.own != nil { throw .onOtherHost(id, named) }
        return id
    }

    /// The endpoint of a sighting; nil if not listed.
    package func endpoint(seenAs id: Sighting.ID) -> Endpoint? { table.endpoint(seenAs: id) }

    /// The authentication code that the source of an approved route of the endpoint reports; nil if there is none.
    package func authCode(of id: EndpointID) -> DartAuthCode? { table.authCode(of: id) }

    /// Returns the older endpoint of which an endpoint may be a relaunch, until its server is seen alive or has ended.
    package func older(than id: EndpointID) -> EndpointID? { table.older(than: id) }

    /// Applies one event of a source.
    package func apply(_ event: SightingEvent) {
        publish(table.apply(event, at: now()))
    }

    /// Records the result of a probe; nil means success.
    package func report(_ failure: DialError?, of id: EndpointID) {
        publish(table.report(failure, of: id, at: now()))
    }

    /// Updates the approval and secret of an endpoint.
    package func setTrust(_ trust: EndpointTrust, of id: EndpointID) {
        publish(table.setTrust(trust, of: id, at: now()))
    }

    /// Records that a different app than expected answered on an approved route.
    package func setMismatch(_ app: SanitizedText, on route: Route, of id: EndpointID) {
        publish(table.setMismatch(app, on: route, of: id))
    }

    /// Records that an advertisement and an endpoint on a cable reach the same launch. Does nothing if either has changed
    /// since.
    package func setSameLaunch(_ proof: SameLaunch) { publish(table.setSameLaunch(proof)) }

    /// Records that the server of an endpoint rejected the secret, or that the secret was replaced.
    package func endSameLaunch(of id: EndpointID) { publish(table.endSameLaunch(of: id)) }

    /// Records the name that the server of an endpoint reported over an approved route.
    package func setServer(_ name: SanitizedText, version: SanitizedText?, of id: EndpointID) {
        publish(table.setServer(name, version: version, of: id))
    }

    /// Records the capabilities that the server of an endpoint reported over an approved route.
    package func setCapabilities(_ capabilities: [String], of id: EndpointID) {
        publish(table.setCapabilities(capabilities, of: id))
    }

    /// Updates the names that devices report. New endpoints get IDs made of these names; a listed one keeps its ID.
    package func setDeviceNames(_ names: [UDID: SanitizedText]) { publish(table.setDeviceNames(names)) }

    /// Accepts the next server that answers, under any name. Called on an owner's request.
    package func acceptServer(of id: EndpointID) { publish(table.acceptServer(of: id)) }

    /// Removes an offline endpoint. Its ID stays reserved for the same app.
    package func remove(_ id: EndpointID) throws(RegistryError) { publish([try table.removeUnseen(try ownID(of: id))]) }

    /// Saves the endpoints now.
    ///
    /// - Throws: `StateError` if they cannot be saved; `RegistryPersister` then tries again.
    package func save() async throws { try await persist?() }

    /// Sets the function that saves the endpoints.
    func setPersist(_ persist: @escaping @Sendable () async throws -> Void) { self.persist = persist }

    /// Frees the oldest retired IDs if there are more than `RetiredIDs.limit`.
    ///
    /// - Parameter named: Returns the IDs that tunnels, grants and others name. They stay reserved.
    package func freeRetired(except named: @Sendable () async -> Set<EndpointID>) async {
        guard table.retired.isOverLimit else { return }
        let named = await named()
        table.freeRetired(except: named)
    }

    /// Returns the endpoints and the stream of later changes. No change in between is lost.
    package func changes() -> (endpoints: [Endpoint], changes: AsyncStream<EndpointChange>) {
        (table.endpoints, changeLog.subscribe())
    }

    /// Returns the endpoints and the revision of their last change; nil if `revision` is that one.
    package func list(ifChangedSince revision: UInt64?) -> (endpoints: [Endpoint], revision: UInt64)? {
        revision == changeLog.revision ? nil : (table.endpoints, changeLog.revision)
    }

    /// Runs a function with the endpoints. None changes meanwhile.
    package func read<Value: Sendable>(_ body: @Sendable ([Endpoint]) -> Value) -> Value { body(table.endpoints) }

    /// The number of subscribers.
    var subscriberCount: Int { changeLog.subscriberCount }

    /// Ends every change stream at shutdown.
    package func finish() { changeLog.finish() }

    private func publish(_ changes: [EndpointTable.Change]) {
        for change in changes {
            let endpoint = change.endpoint
            let cabled = change.kind == .removed ? nil : endpoint.sameLaunchAs.flatMap { table[$0] }
            linkedPhones.set(cabled?.location.udid, of: endpoint.id)
            changeLog.append(change.kind, endpoint, as: record?(change.kind, endpoint))
        }
    }
}

extension EndpointRegistry: EndpointListing {
    package nonisolated var hosts: ListedHosts? { nil }

    package var list: (endpoints: [Endpoint], revision: UInt64) { (table.endpoints, changeLog.revision) }

    package func changes(
        after revision: UInt64?
    ) -> (start: EndpointSubscriptionStart, changes: AsyncStream<EndpointChange>) {
        let start = revision.flatMap { changeLog.changes(after: $0) }.map(EndpointSubscriptionStart.replay)
        return (start ?? .snapshot(table.endpoints, revision: changeLog.revision), changeLog.subscribe())
    }
}

/// An error of a registry operation.
package enum RegistryError: Error, Equatable {
    case noSuchEndpoint(String)
    /// The endpoint cannot be removed, because a source still reports the endpoint.
    case stillPresent(EndpointID)
    case nameTaken(String)
    /// The endpoint belongs to another host of the team.
    case onOtherHost(EndpointID, HostName)
    /// The broker of the endpoint's host does not run, or does not reach the registry of the team.
    case hostOffline(EndpointID, HostName)
    case noSuchHost(HostName)
    /// This broker has no entry of the host, and does not reach the registry of the team.
    case hostNotKnown(HostName)
}

extension RegistryError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noSuchEndpoint(let id): "no endpoint is called \"\(SanitizedText(id))\"; `patchbay list` shows them all"
        case .stillPresent(let id):
            "\(id) is still visible and would be listed again; only an offline endpoint can be removed"
        case .nameTaken(let name):
            "a static endpoint named \"\(SanitizedText(name))\" already exists; choose another name"
        case .onOtherHost(let id, let host): "\(id) belongs to the host \(host); run the command there"
        case .hostOffline(let id, let host): "the host \(host) of the team is offline; \(id) returns with it"
        case .noSuchHost(let host): "the team has no host \(host)"
        case .hostNotKnown(let host):
            "the registry of the team is unreachable; the endpoints of \(host) are not known"
        }
    }
}

/// An endpoint as stored between two runs of the broker, so that its ID survives a restart.
package struct PersistedEndpoint: Hashable, Sendable, Codable {
    /// The endpoint as last seen. Restored as offline.
    package var endpoint: Endpoint
    /// The source that first reported the endpoint. Only this source determines its identity.
    package let source: Sighting.Source
    /// All identity keys under which the app was seen, usually one.
    package var keys: [IdentityKey]
    /// The exact SRV target, decoded. Distinguishes two apps with equal keys.
    package var machine: String?
    /// The last place of an advertised app. Nil for other sources, and for an app that an earlier version saved offline.
    package var place: AdvertisedPlace?
    /// IDs under which the endpoint was listed before its app was identified, and IDs of endpoints that were merged into
    /// this one. They stay aliases until another endpoint takes them.
    package var formerIDs: [EndpointID]?
    /// The last port of a phone on which the app was identified. Nil for other sources, and if an earlier version saved it.
    package var usb: USBRoute?

    /// The key `host` is older than the word machine, which leaves the word host to teams.
    private enum CodingKeys: String, CodingKey {
        case endpoint, source, keys
        case machine = "host"
        case place, formerIDs, usb
    }

    package init(endpoint: Endpoint, source: Sighting.Source, keys: [IdentityKey], machine: String? = nil) {
        self.endpoint = endpoint
        self.source = source
        self.keys = keys
        self.machine = machine
    }
}
