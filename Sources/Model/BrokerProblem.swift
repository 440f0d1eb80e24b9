package import FoundationEssentials

/// Something about the broker that needs a person, with the next step: an item of `GET /v1/problems`.
package struct BrokerProblem: Hashable, Sendable, Codable, Identifiable {
    package enum Severity: String, Hashable, Sendable, Codable {
        /// A part does not work.
        case problem
        /// A part works with limits.
        case warning
        /// Nothing is wrong, but something waits for a person.
        case information
    }

    /// The same for the same problem, also after a change of its text.
    package let id: String
    package let severity: Severity
    /// The part of the broker, as `patchbay status` and `patchbay doctor` name it.
    package let subject: String
    package let text: String
    /// The next step in words. Nil if the text has it.
    package let hint: String?
    /// The command of the next step. Nil if no single command solves the problem.
    package let command: String?

    package init(
        _ id: String,
        _ fact: BrokerFact,
        subject: String,
        text: String,
        hint: String? = nil,
        command: String? = nil
    ) {
        self.id = id
        severity = fact.severity
        self.subject = subject
        self.text = text
        self.hint = hint
        self.command = command ?? hint.flatMap(Self.command)
    }

    /// Returns the first command in a hint, which may describe several steps; nil for a hint without one.
    private static func command(in hint: String) -> String? {
        let parts = hint.split(separator: "`", omittingEmptySubsequences: false)
        if parts.count > 2 { return String(parts[1]) }
        return ["patchbay ", "sudo ", "systemctl ", "journalctl "].contains(where: hint.hasPrefix) ? hint : nil
    }
}

extension BrokerProblem: ListItem { package static let listName = "problems" }

extension BrokerStatus {
    /// The problems of all parts.
    package var problems: [BrokerProblem] {
        sources.compactMap(\.problem)
            + (findings ?? []).enumerated().map { .finding($1, number: $0) }
            + (storage ?? []).enumerated().map { .storage($1, number: $0) }
            + (remote?.problems ?? [])
    }
}

extension BrokerProblem {
    /// Returns the problem of a finding in the stored access state, whose text includes the next step.
    package static func finding(_ text: String, number: Int = 0) -> BrokerProblem {
        BrokerProblem("access/\(number)", .accessFinding, subject: BrokerPart.access.rawValue, text: text)
    }

    /// Returns the problem of a file that cannot be written, whose text names the file and the reason.
    package static func storage(_ text: String, number: Int = 0) -> BrokerProblem {
        BrokerProblem(
            "state/\(number)",
            .unwritableState,
            subject: BrokerPart.state.rawValue,
            text: text,
            command: "patchbay logs -p warning"
        )
    }
}

extension SourceStatus {
    /// The problem of a source that does not work, or works only in part.
    package var problem: BrokerProblem? {
        fact.map { BrokerProblem("source/\(name)", $0, subject: name, text: detail, hint: hint) }
    }
}

extension Device {
    /// The obstacle to apps on the phone, with the next step of a person; nil if they can be reached.
    package var problem: BrokerProblem? {
        guard let obstacle = state.obstacle else { return nil }
        let needsPerson = [.locked, .unauthorized, .noPermissions].contains(state)
        return BrokerProblem(
            "phone/\(udid)/\(transport.rawValue)",
            needsPerson ? .phoneNeedsPerson : .phoneConnecting,
            subject: "phone",
            text: "\(names) \(obstacle)",
            hint: state.hint
        )
    }

    /// The information that a phone whose ports are reached is not paired; nil if it is, and if usbmuxd does not tell.
    package var pairingNote: BrokerProblem? {
        guard isPaired == false, state == .ready else { return nil }
        return BrokerProblem(
            "pairing/\(udid)/\(transport.rawValue)",
            .phoneUnpaired,
            subject: "phone",
            text: "\(names) is not paired with \(routes?.first?.host.name.text ?? "this machine")",
            hint: "tunnels need no pairing; for tools that do, plug the phone in again, unlock it and tap Trust"
        )
    }

    private var names: String { [name?.text, udid.text].compactMap { $0 }.joined(separator: ", ") }
}

extension RemoteStatus {
    /// The problem of a listener that waits for its address.
    package var brokerProblem: BrokerProblem? {
        guard state == .waiting else { return nil }
        return BrokerProblem(
            BrokerPart.remote.rawValue,
            .remoteWaiting,
            subject: BrokerPart.remote.rawValue,
            text: summary + (configured ? "; api.remote of the configuration selects the address" : ""),
            command: configured ? "patchbay config show" : "patchbay remote off"
        )
    }

    /// The problems of the listener and of its certificate.
    package var problems: [BrokerProblem] { [brokerProblem, certificateProblem()].compactMap { $0 } }

    /// The problem of the owner's own certificate: files that cannot be used, or an end within two weeks.
    package func certificateProblem(now: Date = Date()) -> BrokerProblem? {
        guard let certificates else { return nil }
        let end = certificates.configured?.expiresAt
        let text: String
        var fact = BrokerFact.remoteCertificate
        if let end, end <= now {
            fact = .remoteCertificateEnded
            text = "your certificate of the remote listener ended at \(end.formatted(.iso8601)), and clients refuse it"
        } else if let problem = certificates.problem {
            text = "the remote listener does not use its files: \(SanitizedText(problem, limit: 500))"
        } else if let end, end.timeIntervalSince(now) < 14 * 86_400 {
            text = "your certificate of the remote listener ends at \(end.formatted(.iso8601))"
        } else {
            return nil
        }
        return BrokerProblem(
            "\(BrokerPart.remote.rawValue)/certificate",
            fact,
            subject: "certificate",
            text: text,
            hint: "replace the files of api.remote_certificate and api.remote_key; no restart is needed"
        )
    }

    /// One line: the state, and the address or the reason why there is none.
    package var summary: String {
        let address = SanitizedText(address ?? "?", limit: .max).text
        return switch state {
        case .off: "off"
        case .listening: "listening on \(address), \(connections) connection\(connections == 1 ? "" : "s")"
        case .waiting: "waiting for \(address): \(SanitizedText(problem ?? "not open yet", limit: .max))"
        }
    }
}

extension AccessRequest {
    /// One line for owners: the program that asks, and the access.
    package var summary: String {
        "\"\(name)\" (\(asker)) asks for \(permissions) on \(permissions.selector.summary), code \(userCode)"
    }

    /// The program or the browser that asks, as people read it.
    package var asker: String { authorization?.asker ?? requester.summary }

    /// The request as something that waits for a person.
    package var problem: BrokerProblem {
        BrokerProblem(
            "request/\(userCode)",
            .accessRequested,
            subject: BrokerPart.access.rawValue,
            text: summary,
            command: "patchbay requests"
        )
    }
}

extension AuditActor {
    /// The author as people read it: `user 1000, /usr/bin/patchbay (process 7)`.
    package var summary: String {
        switch self {
        case .process(let uid, let pid, let executable): "user \(uid), \(executable) (process \(pid))"
        case .grant(let id): "grant \(id)"
        case .dashboard(let uid, let id): "user \(uid) in a browser (grant \(id))"
        case .member(let host, let client): "\(client) on \(host)"
        case .anonymous: "anonymous"
        case .broker: "patchbayd"
        }
    }
}

extension Selector {
    /// The endpoints as people read them.
    package var summary: String {
        switch self {
        case .all: "all"
        case .endpoints(let ids): ids.sorted().map(\.text).joined(separator: ", ")
        case .bundles(let bundles): bundles.sorted().map { "app \(SanitizedText($0))" }.joined(separator: ", ")
        case .hosts(let hosts): hosts.sorted().map { "host \($0)" }.joined(separator: ", ")
        }
    }
}

/// Endpoints that wait for an owner.
extension Sequence<Endpoint> {
    /// The maximum number of endpoints that a problem names. Any machine on the network can announce thousands.
    private static var namedLimit: Int { 3 }

    /// The endpoints of this host without an approved address, and those whose server changed, as one problem each.
    package var approvalProblems: [BrokerProblem] {
        let own = filter { !$0.isOnOtherHost && $0.state != .blocked && !$0.routes.isEmpty }
        let changed = own.filter { $0.approval == .changed }
        return [
            Self.problem(
                "changed",
                .serverChanged,
                changed,
                one: "another app or host answers than the approved one, so calls are refused:",
                hint: "check the address and the app, then approve the endpoint again"
            ),
            Self.problem(
                "pending",
                .approvalPending,
                own.filter { $0.approval == .pending },
                one: "no owner has approved an address, so nothing is connected:",
                hint: "check the address, then approve the endpoint"
            ),
        ].compactMap { $0 }
    }

    private static func problem(
        _ id: String,
        _ fact: BrokerFact,
        _ endpoints: [Endpoint],
        one text: String,
        hint: String
    ) -> BrokerProblem? {
        guard let first = endpoints.first else { return nil }
        let rest = endpoints.count - namedLimit
        let names = endpoints.prefix(namedLimit).map(\.id.text).joined(separator: ", ")
        return BrokerProblem(
            "approval/\(id)",
            fact,
            subject: "approval",
            text: "\(text) \(names)" + (rest > 0 ? " and \(rest) more" : ""),
            hint: hint,
            command: endpoints.count == 1 ? ApprovalPolicy.command(toApprove: first) : "patchbay list"
        )
    }
}
