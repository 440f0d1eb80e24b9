/// Decides which routes may be dialled. All dials, secrets and permissions use this check.
///
/// mDNS is unauthenticated. A route from mDNS is listed, but dialled only after an owner approved its address. USB
/// routes are approved because the cable identifies the phone. Configured addresses are approved because the owner
/// chose them. The address of a registration is approved because the holder of a grant sent the registration from there.
package enum ApprovalPolicy {
    package enum Decision: Hashable, Sendable {
        case approved
        /// No owner approved this address.
        case pending
        /// An approval exists but does not cover this route. The associated value is the reason, as a sentence.
        case changed(String)
        /// An owner denied this address.
        case denied

        package var approval: Endpoint.Approval {
            switch self {
            case .approved: .approved
            case .pending: .pending
            case .changed: .changed
            case .denied: .denied
            }
        }
    }

    /// The first port that needs no explicit approval. Lower ports belong to system services (RFC 6335, section 6), so
    /// an approval must name them.
    package static let firstUserPort: UInt16 = 1_024

    /// Returns whether a route of an endpoint may be dialled. `denial` only tells why it may not.
    package static func decision(on route: EndpointRoute, _ approval: Approval?, denial: Denial? = nil) -> Decision {
        let decision = decision(of: approval, on: route)
        guard decision != .approved, let denial, let address = route.route.address, denial.addresses.contains(address)
        else { return decision }
        return .denied
    }

    private static func decision(of approval: Approval?, on route: EndpointRoute) -> Decision {
        if let mismatch = route.mismatch {
            return .changed("\(route) answered as \"\(mismatch)\" instead of \"\(route.app)\"")
        }
        guard case .network(let network) = route.route, let machine = network.machine else { return .approved }
        guard let approval else { return .pending }
        // The machine name tells apart two devices that get one address after the other. A responder may rename itself.
        guard
            machine == approval.machine
                || MachineName(machine.text).mayBeRenamed(from: MachineName(approval.machine.text))
        else {
            return .changed("the endpoint was approved on \(approval.machine) and is now on \(machine)")
        }
        guard approval.addresses.contains(Approval.Address(network)) else {
            return .changed(
                "the endpoint was approved on \(approval.machine), but not at the address \(network.address)"
            )
        }
        guard approval.app == route.app else {
            return .changed(
                "\"\(approval.app)\" was approved at \(network.address), but \"\(route.app)\" runs there now"
            )
        }
        guard network.port >= firstUserPort || approval.port == network.port else {
            return .changed("port \(network.port) belongs to a system service and was not named in the approval")
        }
        return .approved
    }

    /// Returns the approval state of a whole endpoint: the best state of its routes.
    package static func approval(of endpoint: Endpoint, _ trust: EndpointTrust) -> Endpoint.Approval {
        let decisions = endpoint.routes.map { decision(on: $0, trust.approval, denial: trust.denial).approval }
        // An offline endpoint has no routes. Its last state is kept until a source reports the endpoint again.
        guard !decisions.isEmpty else { return trust.approval == nil ? endpoint.approval : .approved }
        return [.approved, .changed, .pending].first(where: decisions.contains) ?? .denied
    }

    /// Returns the routes that may be dialled, best first.
    package static func approvedRoutes(of endpoint: Endpoint, _ approval: Approval?) -> [EndpointRoute] {
        endpoint.routes.filter { decision(on: $0, approval) == .approved }
    }

    /// Returns the reason why no route of an endpoint may be dialled, with a hint.
    ///
    /// Returns nil if a route may be dialled or the endpoint has no routes.
    package static func refusal(of endpoint: Endpoint, _ trust: EndpointTrust) -> (detail: String, hint: String)? {
        guard approvedRoutes(of: endpoint, trust.approval).isEmpty, let route = endpoint.routes.first else {
            return nil
        }
        let hint = command(toApprove: route, of: endpoint.id)
        return switch decision(on: route, trust.approval, denial: trust.denial) {
        case .approved: nil
        case .denied: ("an owner has denied \(endpoint.id) at \(route)", hint)
        case .pending: ("no owner has approved \(endpoint.id) at \(route)", hint)
        case .changed(let reason): ("\(reason); if this is expected, approve the endpoint again", hint)
        }
    }

    /// Returns the command with which an owner approves the best route of an endpoint. The command names the address, so
    /// that a person notices another machine.
    package static func command(toApprove endpoint: Endpoint) -> String {
        endpoint.routes.first.map { command(toApprove: $0, of: endpoint.id) } ?? "patchbay approve \(endpoint.id)"
    }

    /// Returns the command with which an owner approves a route.
    package static func command(toApprove route: EndpointRoute, of id: EndpointID) -> String {
        guard case .network(let network) = route.route, network.machine != nil else { return "patchbay approve \(id)" }
        let port = network.port < firstUserPort ? " --port \(network.port)" : ""
        return "patchbay approve \(id) --address \(network.address)\(port)"
    }

    /// Returns the binding of a secret that is stored now for a route. Returns nil if the route is not approved.
    ///
    /// The binding of a network address names the approval. A new approval therefore has no secret.
    package static func secretBinding(
        for route: EndpointRoute,
        _ approval: Approval?
    ) -> EndpointTrust.SecretBinding? {
        guard decision(on: route, approval) == .approved else { return nil }
        let origin: String? =
            switch route.route {
            case .usb(let usb): "usb \(usb.udid)"
            case .network(let network):
                if let registration = network.registration {
                    "registration \(registration)"
                } else if network.machine == nil {
                    "configuration"
                } else {
                    approval.map { networkOrigin(Approval.Address(network), under: $0) }
                }
            }
        return origin.map { EndpointTrust.SecretBinding(origin: $0, launch: route.launch) }
    }

    /// Returns the bindings of a secret that is stored while the endpoint has no route: one for each approved address.
    ///
    /// `port` is the port of the launch that takes the secret. Nil means the first launch that accepts the secret.
    package static func secretBindings(at port: UInt16?, _ approval: Approval) -> [EndpointTrust.SecretBinding] {
        approval.addresses.map { address in
            let origin = networkOrigin(address, under: approval)
            guard let port else { return EndpointTrust.SecretBinding(origin: origin, launch: "").next }
            return EndpointTrust.SecretBinding(origin: origin, launch: EndpointRoute.launch(atPort: port))
        }
    }

    private static func networkOrigin(_ address: Approval.Address, under approval: Approval) -> String {
        "approval \(approval.id) of \(address.location)"
    }

    /// Returns whether the stored secret may be sent over a route. The secret must be bound to this route and this
    /// launch.
    package static func maySendSecret(over route: EndpointRoute, _ trust: EndpointTrust) -> Bool {
        secretBinding(for: route, trust.approval).map { now in trust.secret.contains { $0.covers(now) } } ?? false
    }
}

/// The approval and the denial of one endpoint and the bindings of its secret, without the secret itself.
package struct EndpointTrust: Hashable, Sendable {
    /// The route and the launch that a secret was stored for.
    package struct SecretBinding: Hashable, Sendable, Codable {
        /// The identity of the route: a phone, an approved network address, a registration, or the configuration.
        package let origin: String
        /// `EndpointRoute.launch` of the route. The prefix `after ` means any launch except that one.
        package let launch: String

        /// The prefix of a binding for a launch that no source has reported yet.
        private static let after = "after "

        package init(origin: String, launch: String) {
            self.origin = origin
            self.launch = launch
        }

        /// The binding for the next, still unknown launch over the same route.
        package var next: SecretBinding { SecretBinding(origin: origin, launch: Self.after + launch) }
        package var isForUnseen: Bool { launch.hasPrefix(Self.after) }

        /// Returns whether a secret with this binding may be sent to a route and launch.
        package func covers(_ other: SecretBinding) -> Bool {
            guard origin == other.origin else { return false }
            return isForUnseen ? launch != Self.after + other.launch : launch == other.launch
        }
    }

    package let approval: Approval?
    package let denial: Denial?
    /// The bindings of the stored secret. Empty if no secret is stored.
    package let secret: Set<SecretBinding>

    package init(approval: Approval? = nil, denial: Denial? = nil, secret: some Sequence<SecretBinding> = []) {
        self.approval = approval
        self.denial = denial
        self.secret = Set(secret)
    }

    package static let none = EndpointTrust()

    /// True if an owner approved an address or stored a secret.
    package var isTrusted: Bool { approval != nil || !secret.isEmpty }
}
