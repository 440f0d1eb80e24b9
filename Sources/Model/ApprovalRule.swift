/// What may be dialled, and for whom: the rules of trust, without I/O.
///
/// mDNS proves nothing, so that what it brings is listed and not dialled until a person says yes, and the yes is for that
/// host at those addresses. The cable proves who is at its other end, and what the owner wrote down is the owner's yes.
package enum ApprovalRule {
    package enum Verdict: Hashable, Sendable {
        case approved
        /// Nobody said yes yet.
        case discovered
        /// Somebody said yes to another place; why this is not it, as a sentence.
        case changed(String)
    }

    /// Who wants to use an endpoint.
    package enum User: Hashable, Sendable {
        /// An owner, who named this endpoint.
        case person
        case agent
    }

    package enum Decision: Hashable, Sendable {
        case allowed
        /// Allowed, and from now on approved: the person's own explicit use is a yes.
        case allowedAndApproves
        /// Why not, with the next step.
        case refused(String)
    }

    /// Whether one way of reaching an endpoint is the one that somebody said yes to.
    package static func verdict(on route: Route, of endpoint: Endpoint, _ approval: Approval?) -> Verdict {
        guard case .lan(let lan) = route else { return .approved }
        if endpoint.sources == [.config] { return .approved }
        guard let approval else { return .discovered }
        switch approval.place {
        case .cable, .configuration:
            // That yes was to another way of reaching it.
            return .discovered
        case .network(let host, let addresses):
            guard let now = endpoint.place.host, now.text.lowercased() == host.text.lowercased() else {
                return .changed("it was approved on \(host) and is on \(endpoint.place.host ?? Untrusted("?")) now")
            }
            guard addresses.contains(Approval.Address(lan)) else {
                return .changed("it was approved on \(host) at another address than \(lan.address)")
            }
            return .approved
        }
    }

    /// What the list shows.
    package static func approval(of endpoint: Endpoint, _ approval: Approval?) -> Endpoint.Approval {
        guard !endpoint.routes.isEmpty else { return approval == nil ? endpoint.approval : .approved }
        let verdicts = endpoint.routes.map { verdict(on: $0, of: endpoint, approval) }
        if verdicts.contains(.approved) { return .approved }
        return verdicts.contains(.discovered) ? .discovered : .changed
    }

    /// Whether somebody may have a route dialled.
    package static func decide(
        _ user: User,
        _ route: Route,
        of endpoint: Endpoint,
        _ approval: Approval?
    ) -> Decision {
        switch (verdict(on: route, of: endpoint, approval), user) {
        case (.approved, _): .allowed
        case (.discovered, .person): .allowedAndApproves
        case (.discovered, .agent):
            .refused("nobody has approved \(endpoint.id) yet; a person can: patchbay approve \(endpoint.id)")
        // Not even for a person by the way: the usual command would approve whoever took the name.
        case (.changed(let why), _):
            .refused("\(why); if that is right, approve it again: patchbay approve \(endpoint.id)")
        }
    }

    /// The routes that may be dialled without another yes, in their order.
    package static func approvedRoutes(of endpoint: Endpoint, _ approval: Approval?) -> [Route] {
        endpoint.routes.filter { verdict(on: $0, of: endpoint, approval) == .approved }
    }

    /// Where an endpoint is, for the record of a yes; nil while it is nowhere.
    package static func place(of endpoint: Endpoint) -> Approval.Place? {
        if endpoint.sources == [.config] { return .configuration }
        let addresses = endpoint.routes.compactMap { route -> Approval.Address? in
            if case .lan(let lan) = route { Approval.Address(lan) } else { nil }
        }
        if let host = endpoint.place.host, !addresses.isEmpty { return .network(host: host, addresses: addresses) }
        for case .usb(let usb) in endpoint.routes { return .cable(usb.udid) }
        return nil
    }
}
