/// Decides which routes may be dialled. Every dial, every secret and every permission is checked here and nowhere else.
///
/// mDNS is unauthenticated: a route that it brings is listed, and dialled only after an owner approved its address. The
/// cable proves which phone is at its other end. An address that the owner wrote down is approved by that.
package enum ApprovalPolicy {
    package enum Verdict: Hashable, Sendable {
        case approved
        /// No owner approved this address.
        case discovered
        /// An approval exists and does not cover this route; the reason, as a sentence.
        case changed(String)

        package var approval: Endpoint.Approval {
            switch self {
            case .approved: .approved
            case .discovered: .discovered
            case .changed: .changed
            }
        }
    }

    /// Ports below this one belong to system services (RFC 6335, section 6): an approval must name such a port.
    package static let firstUserPort: UInt16 = 1_024

    /// Whether one route of an endpoint may be dialled.
    package static func verdict(on route: EndpointRoute, _ approval: Approval?) -> Verdict {
        if let mismatch = route.mismatch {
            return .changed("\(route) answered as \"\(mismatch)\" instead of \"\(route.app)\"")
        }
        guard case .lan(let lan) = route.route, let host = lan.host else { return .approved }
        guard let approval else { return .discovered }
        guard approval.host.text.lowercased() == host.text.lowercased() else {
            return .changed("it was approved on \(approval.host) and is on \(host) now")
        }
        guard approval.addresses.contains(Approval.Address(lan)) else {
            return .changed("it was approved on \(approval.host) at another address than \(lan.address)")
        }
        guard approval.app == route.app else {
            return .changed("\"\(approval.app)\" was approved at \(lan.address), and \"\(route.app)\" is there now")
        }
        guard lan.port >= firstUserPort || approval.port == lan.port else {
            return .changed("port \(lan.port) belongs to a system service and was not named in the approval")
        }
        return .approved
    }

    /// What the list shows for a whole endpoint: the best of its routes.
    package static func approval(of endpoint: Endpoint, _ approval: Approval?) -> Endpoint.Approval {
        let verdicts = endpoint.routes.map { verdict(on: $0, approval).approval }
        // An offline endpoint has no routes; its last state stands until it is seen again.
        guard !verdicts.isEmpty else { return approval == nil ? endpoint.approval : .approved }
        if verdicts.contains(.approved) { return .approved }
        return verdicts.contains(.changed) ? .changed : .discovered
    }

    /// The routes that may be dialled, the best first.
    package static func approvedRoutes(of endpoint: Endpoint, _ approval: Approval?) -> [EndpointRoute] {
        endpoint.routes.filter { verdict(on: $0, approval) == .approved }
    }

    /// Why no route of an endpoint may be dialled, with the next step; nil when one may, or when there is none.
    package static func refusal(of endpoint: Endpoint, _ approval: Approval?) -> (detail: String, next: String)? {
        guard approvedRoutes(of: endpoint, approval).isEmpty, let route = endpoint.routes.first else { return nil }
        let next = command(toApprove: route, of: endpoint.id)
        return switch verdict(on: route, approval) {
        case .approved: nil
        case .discovered: ("no owner has approved \(endpoint.id) at \(route); an owner can: \(next)", next)
        case .changed(let why): ("\(why); if that is right, approve it again: \(next)", next)
        }
    }

    /// What an owner types to approve a route.
    package static func command(toApprove route: EndpointRoute, of id: EndpointID) -> String {
        guard case .lan(let lan) = route.route, lan.host != nil else { return "patchbay approve \(id)" }
        let port = lan.port < firstUserPort ? " --port \(lan.port)" : ""
        return "patchbay approve \(id) --address \(lan.address)\(port)"
    }

    /// What a secret that is given now for a route is bound to; nil when the route is not approved.
    ///
    /// A network address counts under its approval: after another approval it has no secret.
    package static func secretBinding(
        for route: EndpointRoute,
        _ approval: Approval?
    ) -> EndpointTrust.SecretBinding? {
        guard verdict(on: route, approval) == .approved else { return nil }
        let origin: String? =
            switch route.route {
            case .usb(let usb): "cable \(usb.udid)"
            case .lan(let lan):
                if lan.host == nil { "configuration" } else { approval.map { place(Approval.Address(lan), under: $0) } }
            }
        return origin.map { EndpointTrust.SecretBinding(origin: $0, launch: route.launch) }
    }

    /// What a secret is bound to that is given while the endpoint has no route: the approved addresses, and the launch there.
    ///
    /// `port` is where that launch will listen; nil is the first launch that takes the secret.
    package static func secretBindings(at port: UInt16?, _ approval: Approval) -> [EndpointTrust.SecretBinding] {
        approval.addresses.map { address in
            let origin = place(address, under: approval)
            guard let port else { return EndpointTrust.SecretBinding(origin: origin, launch: "").next }
            return EndpointTrust.SecretBinding(origin: origin, launch: EndpointRoute.launch(atPort: port))
        }
    }

    private static func place(_ address: Approval.Address, under approval: Approval) -> String {
        "approval \(approval.id) of \(address.place)"
    }

    /// Whether the held secret may be sent over a route: it was given for this route and for this launch.
    package static func maySendSecret(over route: EndpointRoute, _ trust: EndpointTrust) -> Bool {
        secretBinding(for: route, trust.approval).map { now in trust.secret.contains { $0.covers(now) } } ?? false
    }
}

/// The approval and the secret of one endpoint as access control holds them, without the secret itself.
package struct EndpointTrust: Hashable, Sendable {
    /// The route and the launch that a secret was given for.
    package struct SecretBinding: Hashable, Sendable, Codable {
        /// `ApprovalPolicy.origin` of the route.
        package let origin: String
        /// `EndpointRoute.launch` of the route, or that and the words before it.
        package let launch: String

        /// Before the launch after which an unseen one may come.
        private static let after = "after "

        package init(origin: String, launch: String) {
            self.origin = origin
            self.launch = launch
        }

        /// For the first launch that comes after this binding's, over the same route: it was not seen yet.
        package var next: SecretBinding { SecretBinding(origin: origin, launch: Self.after + launch) }
        package var isForUnseen: Bool { launch.hasPrefix(Self.after) }

        /// Whether a secret with this binding may be sent to a route and launch.
        package func covers(_ other: SecretBinding) -> Bool {
            guard origin == other.origin else { return false }
            return isForUnseen ? launch != Self.after + other.launch : launch == other.launch
        }
    }

    package let approval: Approval?
    /// Empty when no secret is held.
    package let secret: Set<SecretBinding>

    package init(approval: Approval? = nil, secret: some Sequence<SecretBinding> = []) {
        self.approval = approval
        self.secret = Set(secret)
    }

    package static let none = EndpointTrust()
}
