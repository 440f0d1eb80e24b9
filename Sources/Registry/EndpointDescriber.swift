import Model

/// Describes one endpoint by its sightings: routes, app, place, approval and state.
struct EndpointDescriber: Sendable {
    /// The sightings of the endpoint, in the order of their IDs.
    let sightings: [Sighting]
    let trust: EndpointTrust
    /// The app that answered on a route instead of the announced one.
    let mismatches: [Route: SanitizedText]
    let liveness: Liveness
    /// True if the source of every sighting is unavailable.
    let isStale: Bool
    /// The names that the devices report.
    var deviceNames: [UDID: SanitizedText] = [:]
    /// The abilities of the kinds that do not report their own.
    var abilities: [EndpointKind: EndpointAbilities] = [:]

    /// Returns the endpoint as it is now. Values that no sighting has stay as they were.
    func describe(_ before: Endpoint) -> Endpoint {
        var endpoint = before
        if sightings.isEmpty {
            let isRegistered = before.sources.contains(.registration)
            endpoint.goOffline(
                reason: isRegistered ? "its registration has ended" : "no discovery source reports it any more"
            )
        } else {
            endpoint.routes = routes
            endpoint.sources = Set(sightings.map(\.id.source)).sorted { $0.rawValue < $1.rawValue }
            // Once a route is approved, sightings on other routes no longer describe the endpoint.
            let approved = Set(endpoint.approvedRoutes.map(\.route))
            let trusted = sightings.filter { !approved.isDisjoint(with: $0.routes) }
            identify(&endpoint, by: trusted.isEmpty ? sightings : trusted)
            evaluateState(of: &endpoint)
        }
        endpoint.approval = ApprovalPolicy.approval(of: endpoint, trust)
        // The answers of another kind of server do not describe this one.
        if endpoint.kind != before.kind { endpoint.capabilities = nil }
        endpoint.setAbilities(abilities)
        // A blocked endpoint is never connected to, so no way to reach it is offered.
        if endpoint.state == .blocked { (endpoint.capabilities, endpoint.limits) = ([], []) }
        return endpoint
    }

    private var routes: [EndpointRoute] {
        var routes: [Route: EndpointRoute] = [:]
        // Two adverts may give one route. A bundle identifier stays the same whichever of them is seen.
        for sighting in sightings.filter(\.appIsBundleID) + sightings.filter({ !$0.appIsBundleID }) {
            for route in sighting.routes where routes[route] == nil {
                var listed = EndpointRoute(
                    route,
                    app: sighting.app,
                    appIsBundleID: sighting.appIsBundleID,
                    launchID: sighting.launchID,
                    approval: .pending,
                    mismatch: mismatches[route]
                )
                listed.approval = ApprovalPolicy.decision(on: listed, trust.approval, denial: trust.denial).approval
                listed.isSecretHeld = ApprovalPolicy.maySendSecret(over: listed, trust)
                routes[route] = listed
            }
        }
        // The app itself named these addresses. Announcements of them add nothing.
        let registered = Set(routes.keys.filter { $0.registration != nil }.map(\.description))
        let listed = routes.values.filter { $0.route.registration != nil || !registered.contains($0.description) }
        return RoutePreference.sorted(listed)
    }

    private func identify(_ endpoint: inout Endpoint, by sightings: [Sighting]) {
        let identified = sightings.first { $0.appIsBundleID } ?? sightings.first { !$0.app.isEmpty }
        if let identified {
            endpoint.kind = identified.kind
            endpoint.app = identified.app
            endpoint.name = identified.name
        }
        // USB reports no app. The name that the app itself reported stays until the app reports another one.
        if identified == nil, endpoint.kind == .appreveal, let server = endpoint.server { endpoint.app = server }
        endpoint.version = sightings.lazy.compactMap(\.version).first ?? endpoint.version
        endpoint.launchID = sightings.lazy.compactMap(\.launchID).first
        // USB reports no TXT record, so the last one from the network stays. The network may report an empty record.
        let described = sightings.first { !$0.txt.entries.isEmpty } ?? sightings.first { $0.id.source == .bonjour }
        if let txt = described?.txt {
            endpoint.txt = txt
            endpoint.txtTruncated = txt.isTruncated ? true : nil
        }
        endpoint.location.udid = sightings.lazy.compactMap(\.device).first ?? endpoint.location.udid
        endpoint.location.deviceName =
            endpoint.location.udid.flatMap { deviceNames[$0] } ?? endpoint.location.deviceName
        endpoint.location.machine = sightings.lazy.compactMap(\.machine).first ?? endpoint.location.machine
    }

    private func evaluateState(of endpoint: inout Endpoint) {
        if endpoint.routes.isEmpty, let reason = sightings.lazy.compactMap(\.blocked).first {
            endpoint.state = .blocked
            endpoint.reason = reason
            return
        }
        if endpoint.routes.isEmpty {
            endpoint.state = .suspect
            endpoint.reason = "its address is not known yet"
            return
        }
        endpoint.state = liveness.state
        endpoint.reason = liveness.lastFailure?.description
        if endpoint.state == .online { evaluateAvailability(of: &endpoint) }
        // Only a configured endpoint is listed before its server was seen.
        if endpoint.state == .online, endpoint.lastSeenAt == nil {
            (endpoint.state, endpoint.reason) = (.suspect, Endpoint.notTriedYet)
        }
        if endpoint.state == .online, isStale {
            endpoint.state = .suspect
            endpoint.reason = "its discovery source is unavailable; the last known state is shown"
        }
    }

    /// Applies the state that the sources report. An endpoint that one source reports as available is available.
    private func evaluateAvailability(of endpoint: inout Endpoint) {
        let reports = sightings.map(\.availability)
        guard !reports.contains(.available) else { return }
        for case .suspect(let reason) in reports { (endpoint.state, endpoint.reason) = (.suspect, reason) }
        guard endpoint.state == .online else { return }
        for case .offline(let reason) in reports { (endpoint.state, endpoint.reason) = (.offline, reason) }
    }
}

extension Endpoint {
    /// Makes the endpoint offline and removes its routes and sources.
    mutating func goOffline(reason: String) {
        state = .offline
        self.reason = reason
        routes = []
        sources = []
        possiblySameAs = nil
        sameLaunchAs = nil
    }
}

/// The order in which routes are tried: approved ones first, then USB, then network routes by likelihood of success.
enum RoutePreference {
    static func sorted(_ routes: some Sequence<EndpointRoute>) -> [EndpointRoute] {
        routes.sorted { one, other in
            guard one.isApproved == other.isApproved else { return one.isApproved }
            let (first, second) = (rank(one.route), rank(other.route))
            return first == second ? one.description < other.description : first < second
        }
    }

    private static func rank(_ route: Route) -> Int {
        guard case .network(let network) = route else { return 0 }
        let address = network.address.lowercased()
        return switch true {
        case !address.contains(":"): address.hasPrefix("169.254.") ? 3 : 1
        case address.hasPrefix("fe80"): 4
        default: 2
        }
    }
}
