import Model

/// Finds endpoints on a cable and on the network that may be the same app, as a hint for people.
///
/// A hint decides nothing: any machine on the network can announce the machine name of a phone, or copy a launch ID.
/// Approvals, routes, secrets and grants never read it.
struct SameAppHints: Sendable {
    /// A fact that a phone's app on the cable and an advertisement have in common.
    private enum Evidence: Hashable, Sendable {
        /// The machine name that follows from the phone's own name, with kind and app.
        case machine(String, kind: EndpointKind, app: SanitizedText)
        /// The launch ID. Endpoints with equal launch IDs stay separate if the advertisement has its own approval.
        case launch(SanitizedText, kind: EndpointKind)
    }

    /// The transport and the app of an endpoint, and its facts.
    private struct Facts: Hashable, Sendable {
        let isCabled: Bool
        let app: SanitizedText
        let evidence: Set<Evidence>
    }

    /// The endpoints with one fact, by transport.
    private struct Holders: Sendable {
        var cabled: Set<EndpointID> = []
        var announced: Set<EndpointID> = []

        var isEmpty: Bool { cabled.isEmpty && announced.isEmpty }
    }

    /// The maximum number of endpoints that one endpoint mentions.
    static let limit = 4

    private var facts: [EndpointID: Facts] = [:]
    private var holders: [Evidence: Holders] = [:]

    /// Records the facts of an endpoint; nil if it is no longer listed.
    ///
    /// - Returns: The endpoints whose hints may have changed.
    mutating func update(_ id: EndpointID, _ endpoint: Endpoint?) -> Set<EndpointID> {
        let (old, new) = (facts[id], endpoint.flatMap(Self.facts))
        guard old != new else { return [] }
        var affected = counterparts(of: id)
        for fact in old?.evidence ?? [] {
            holders[fact]?.cabled.remove(id)
            holders[fact]?.announced.remove(id)
            if holders[fact]?.isEmpty == true { holders[fact] = nil }
        }
        facts[id] = new
        for fact in new?.evidence ?? [] {
            if new?.isCabled == true {
                holders[fact, default: Holders()].cabled.insert(id)
            } else {
                holders[fact, default: Holders()].announced.insert(id)
            }
        }
        affected.formUnion(counterparts(of: id))
        return affected.union([id])
    }

    /// The endpoints to mention at an endpoint; nil if there are none.
    func hint(for id: EndpointID) -> [EndpointID]? {
        let all = counterparts(of: id)
        return all.isEmpty ? nil : Array(all.sorted().prefix(Self.limit))
    }

    /// The only endpoint on a cable with the launch ID of an advertisement that an owner approved; nil if there is none.
    ///
    /// An owner vouches for an approved address, so its launch ID is evidence and no mere hint. An endpoint of another app
    /// does not count: a launch ID that is a counter or a process ID is not unique.
    func cabledEndpoint(withLaunchOf endpoint: Endpoint) -> EndpointID? {
        guard endpoint.approval == .approved, facts[endpoint.id]?.isCabled == false, let launchID = endpoint.launchID
        else { return nil }
        let cabled = (holders[.launch(launchID, kind: endpoint.kind)]?.cabled ?? []).filter { id in
            facts[id].map { $0.app.isEmpty || $0.app == endpoint.app } ?? false
        }
        return cabled.count == 1 ? cabled.first : nil
    }

    /// The endpoints on the other transport that share a fact.
    private func counterparts(of id: EndpointID) -> Set<EndpointID> {
        guard let own = facts[id] else { return [] }
        return own.evidence.reduce(into: []) { found, fact in
            guard let holders = holders[fact] else { return }
            found.formUnion(own.isCabled ? holders.announced : holders.cabled)
        }
    }

    /// Returns the facts of an endpoint that a source reports now; nil if none can match.
    private static func facts(of endpoint: Endpoint) -> Facts? {
        let isCabled = endpoint.sources.contains(where: \.isPhone)
        let isRegistered = endpoint.sources.contains(.registration)
        guard isCabled || isRegistered || endpoint.sources == [.bonjour] else { return nil }
        var evidence: Set<Evidence> = []
        if !endpoint.app.isEmpty {
            for machine in machineNames(of: endpoint, isCabled: isCabled, isRegistered: isRegistered) {
                evidence.insert(.machine(machine, kind: endpoint.kind, app: endpoint.app))
            }
        }
        if let launchID = endpoint.launchID, !launchID.isEmpty {
            evidence.insert(.launch(launchID, kind: endpoint.kind))
        }
        return evidence.isEmpty ? nil : Facts(isCabled: isCabled, app: endpoint.app, evidence: evidence)
    }
    /// The machine name of an advertisement, or the machine name that follows from a device's own name. The former counts
    /// also without a number that its responder may have added after a name conflict.
    private static func machineNames(of endpoint: Endpoint, isCabled: Bool, isRegistered: Bool) -> [String] {
        if isCabled {
            return [endpoint.location.deviceName.flatMap(IdentityKey.machineName(ofDeviceNamed:))].compactMap(\.self)
        }
        guard let machine = endpoint.location.machine else { return [] }
        if isRegistered { return [IdentityKey.machineName(ofDeviceNamed: machine)].compactMap(\.self) }
        let name = MachineName(machine.text)
        if name.isRandom { return [] }
        return [name.withoutNumber.map { SanitizedText($0) }, SanitizedText(name.text)].compactMap(\.self)
            .compactMap(IdentityKey.machineName(ofDeviceNamed:))
    }
}
