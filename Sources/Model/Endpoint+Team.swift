/// An endpoint in a team.
extension Endpoint {
    /// The maximum number of routes, sources, former IDs and hints of an endpoint of another host. More are left out.
    private static let remoteItemLimit = 16
    /// The maximum number of capabilities, and of limits, of an endpoint of another host. An app may register 32.
    private static let remoteTextLimit = 64
    /// The maximum length of one capability, limit or reason in bytes.
    package static let textLimit = 200
    /// The maximum length of a bundle identifier in bytes (`StaticEndpoint.app`).
    fileprivate static let appLimit = 155

    /// True for an endpoint that the broker of another host reaches. This broker never dials, saves or advertises it.
    package var isOnOtherHost: Bool { id.namesHost }

    /// The routes for display: those of this broker or of the other host's broker.
    package var shownRoutes: [EndpointRoute] { hostRoutes ?? routes }

    /// Returns an endpoint of this broker with the name of this host, as lists show it in a team.
    package func listed(on host: HostName) -> Endpoint {
        var listed = self
        listed.host = HostStatus(name: host)
        listed.combinedWith = combinedWith?.map { $0.listed(on: host) }
        return listed
    }

    /// Returns an endpoint of another host as this broker lists it.
    ///
    /// Every ID names the host. Routes that this broker could dial are removed. Text is safe to print, and no longer than
    /// on its own host.
    ///
    /// - Parameters:
    ///   - host: The host whose broker reaches the endpoint.
    ///   - requested: The ID for which that broker was asked; nil for the endpoint's own ID.
    /// - Returns: The endpoint.
    package func on(_ host: HostName, as requested: EndpointID? = nil) -> Endpoint {
        func onHost(_ ids: [EndpointID]?) -> [EndpointID]? { ids?.prefix(Self.remoteItemLimit).map { $0.on(host) } }
        func limited(_ texts: [String]?) -> [String]? {
            texts?.prefix(Self.remoteTextLimit).map { SanitizedText($0, limit: Self.textLimit).text }
        }
        var remote = self
        remote.id = (requested ?? id).on(host)
        remote.host = HostStatus(name: host)
        remote.kind = EndpointKind(SanitizedText(kind.text).text)
        remote.app = app.limited(to: Self.appLimit)
        remote.name = name.limited()
        remote.version = version?.limited()
        remote.location.deviceName = location.deviceName?.limited()
        remote.location.machine = location.machine?.limited()
        remote.reason = reason.map { SanitizedText($0, limit: Self.textLimit).text }
        if txt.validationError != nil { remote.txt = TXTRecord() }
        remote.sources = Array(sources.prefix(Self.remoteItemLimit))
        remote.server = server?.limited(to: Self.appLimit)
        remote.capabilities = limited(capabilities)
        remote.limits = limited(limits)
        remote.hostRoutes = shownRoutes.prefix(Self.remoteItemLimit).map(\.published)
        remote.routes = []
        remote.formerIDs = onHost(formerIDs)
        remote.possiblySameAs = onHost(possiblySameAs)
        remote.sameLaunchAs = sameLaunchAs?.on(host)
        remote.combinedWith = nil
        remote.launchID = nil
        remote.lease = nil
        remote.deviations = nil
        return remote
    }
}

extension EndpointRoute {
    /// The length of a domain name in bytes (RFC 1035, section 2.3.4).
    private static let machineLimit = 255

    /// The route as the other hosts of a team show it: without IDs of launches and registrations, and with text that is
    /// safe to print.
    package var published: EndpointRoute {
        var plain = route
        if case .network(let network) = plain {
            plain = .network(
                NetworkRoute(
                    address: SanitizedText(network.address).text,
                    port: network.port,
                    interface: network.interface.map { SanitizedText($0).text },
                    interfaceIndex: network.interfaceIndex,
                    machine: network.machine?.limited(to: Self.machineLimit),
                    isInbound: network.isInbound
                )
            )
        }
        var published = EndpointRoute(
            plain,
            app: app.limited(to: Endpoint.appLimit),
            appIsBundleID: appIsBundleID,
            approval: approval,
            mismatch: mismatch?.limited(to: Endpoint.appLimit)
        )
        published.isSecretHeld = isSecretHeld
        return published
    }
}

extension SanitizedText {
    /// Returns the text with the length that it can have on its own host. A decoded text has any length.
    fileprivate func limited(to limit: Int = nameLimit) -> SanitizedText { SanitizedText(text, limit: limit) }
}
