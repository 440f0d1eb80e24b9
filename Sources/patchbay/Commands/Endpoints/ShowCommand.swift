import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all details of one endpoint: routes, approval, sources and TXT record.",
        discussion: """
            Specify the endpoint by ID, ID prefix, name, app or phone UDID.

              patchbay show shop-test-iphone
              patchbay show com.example.shop --probe
            """
    )

    @Argument(help: ArgumentHelp("Show this endpoint.", valueName: "endpoint"), completion: .objects(.endpoints))
    var selector: String
    @Flag(help: "Probe the endpoint first.")
    var probe = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let named = EndpointSelector(text: selector, command: "patchbay show", takesUnapproved: true)
        var endpoint = try await named.choose(client)
        if probe { endpoint = try await client.probe(endpoint.id) }
        let output = options.output
        let urls = try await VMServiceText.urls(of: endpoint, client)
        let pages = try await WebPagesText.pages(of: endpoint, client)
        if format.json {
            let document = VMServiceText.Document(
                endpoint: endpoint,
                vmService: try? urls?.get(),
                webPages: try? pages?.get()
            )
            return try output.document(document)
        }
        // Only owners may read the approvals, so an error is ignored.
        let approvals = try? await client.approvals.list()
        let denials = endpoint.routes.contains { $0.approval == .denied } ? try? await client.approvals.denials() : nil
        let trust = EndpointTrust(
            approval: approvals?.first { $0.endpoint == endpoint.id },
            denial: denials?.first { $0.endpoint == endpoint.id },
            secret: []
        )
        try output.line(
            Self.text(
                endpoint,
                trust,
                device: try await Self.device(of: endpoint, client),
                tunnels: try await Self.tunnels(to: endpoint, client),
                urls: VMServiceText.facts(urls) + WebPagesText.facts(pages),
                isColoured: output.isColoured
            )
        )
    }

    /// Returns the phone of an endpoint, for its system and its note; nil if it is not attached.
    private static func device(of endpoint: Endpoint, _ client: PatchbayClient) async throws -> Device? {
        guard let udid = endpoint.location.udid else { return nil }
        return try? await client.devices().first { $0.udid == udid }
    }

    /// Returns the tunnels to an endpoint; none if the client may not list them.
    private static func tunnels(to endpoint: Endpoint, _ client: PatchbayClient) async throws -> [Tunnel] {
        let tunnels = (try? await client.tunnels.list()) ?? []
        return tunnels.filter { $0.spec.target == .endpoint(endpoint.id) }
    }

    static func text(
        _ endpoint: Endpoint,
        _ trust: EndpointTrust = .none,
        device: Device? = nil,
        tunnels: [Tunnel] = [],
        urls: [(String, String?)] = [],
        now: Date = Date(),
        isColoured: Bool
    ) -> String {
        let state = endpoint.state.style.paint(endpoint.state.rawValue, isOn: isColoured)
        let isBlocked = endpoint.state == .blocked
        var facts: [(String, String?)] = [
            ("name", endpoint.name.text),
            ("app", ([endpoint.app] + (endpoint.version.map { [$0] } ?? [])).map(\.text).joined(separator: " ")),
            ("kind", endpoint.kind.text), ("can", isBlocked ? nil : Self.list(endpoint.capabilities)),
            ("cannot", isBlocked ? "be connected to" : Self.list(endpoint.limits)),
            ("phone", Self.phone(of: endpoint)), ("system", device.map(Self.system)),
            ("label", device?.label?.text), ("note", device?.note?.text),
            ("host", endpoint.location.machine?.text),
            ("team host", endpoint.host.map { TeamText.host($0, now: now) }),
            ("approval", Self.approval(of: endpoint, trust, now: now)),
            ("denied", Self.denial(of: endpoint, trust.denial, now: now)),
        ]
        facts.append(("lease", endpoint.lease.map(Self.lease)))
        facts += endpoint.shownRoutes.isEmpty ? [("routes", "none")] : Self.routes(of: endpoint)
        facts += tunnels.enumerated().map { ($0 == 0 ? "tunnels" : "", TunnelTableView.summary(of: $1)) }
        facts += urls
        facts += [
            (
                "sources",
                endpoint.sources.isEmpty ? "none" : endpoint.sources.map(Formatting.source).joined(separator: ", ")
            ),
            ("first seen", Formatting.ago(endpoint.firstSeenAt, now: now)),
            ("last seen", Formatting.seen(endpoint, now: now)), ("to return", EndpointReturnText.text(endpoint)),
            ("launch", endpoint.launchID?.text),
            ("part of", endpoint.sameLaunchAs.map { "\($0), which reaches the same launch over the cable" }),
            ("also", endpoint.formerIDs.map { "called \($0.map(\.text).joined(separator: ", "))" }),
            ("maybe", endpoint.possiblySameAs.map { "the same app as \($0.map(\.text).joined(separator: ", "))" }),
        ]
        facts += deviations(endpoint.deviations ?? [])
        facts += txt(endpoint.txt)
        if endpoint.txtTruncated == true {
            let limit = "over \(TXTRecord.byteLimit) bytes or \(TXTRecord.keyLimit) keys"
            facts.append(("", "truncated: \(limit)"))
        }
        let title = ANSIStyle.bold.paint(endpoint.id.text, isOn: isColoured) + "  " + state
        let lines = facts.compactMap { name, value in value.map { "  \(name.padded(to: 10))  \($0)" } }
        let isGone = EndpointReturnText.text(endpoint) != nil && endpoint.lastSeenAt != nil
        let since = isGone ? "; last seen \(Formatting.seen(endpoint, now: now))" : ""
        return ([title + (endpoint.reason.map { ": \($0)\(since)" } ?? "")] + lines).joined(separator: "\n")
    }

    /// Describes the lease: `user 1000 until 18:03:59 (unlocking it by hand)`.
    private static func lease(_ lease: Lease) -> String {
        let note = lease.note.map { " (\($0))" } ?? ""
        let end = lease.expiresAt.map { " until \(Formatting.clock($0))" } ?? ""
        return "\(LeaseTableView.holder(of: lease))\(end)\(note)"
    }

    private static func list(_ words: [String]?) -> String? {
        words.flatMap { $0.isEmpty ? nil : $0.joined(separator: "; ") }
    }

    /// The name and the UDID of the phone: `Anna’s iPhone (00008030-…)`.
    private static func phone(of endpoint: Endpoint) -> String? {
        endpoint.location.udid.map { udid in
            endpoint.location.deviceName.map { "\($0) (\(udid))" } ?? udid.text
        }
    }

    /// The system and the model of the phone: `Android 15, Pixel 8`.
    static func system(of device: Device) -> String {
        let system = [device.platform.name, device.productVersion?.text].compactMap { $0 }.joined(separator: " ")
        return [system, device.productType?.text].compactMap { $0 }.joined(separator: ", ")
    }

    /// Describes the approval: `approved by user 1000, … 3 h ago, on iphone.local at 192.168.1.20`.
    private static func approval(of endpoint: Endpoint, _ trust: EndpointTrust, now: Date) -> String {
        let details = trust.approval.map {
            "by \(Formatting.caller($0.approvedBy)) \(Formatting.ago($0.approvedAt, now: now)), \(Formatting.place($0))"
        }
        let command =
            endpoint.id.host.map { "patchbay approve \(endpoint.id.onItsHost)` on the host `\($0)" }
            ?? ApprovalPolicy.command(toApprove: endpoint)
        return switch endpoint.approval {
        case .denied: "denied: never connected; if you change your mind: `\(command)`"
        case .approved: details.map { "approved \($0)" } ?? "approved"
        case .pending:
            endpoint.state == .blocked ? "blocked: cannot be approved" : "pending: not connected until `\(command)`"
        case .changed:
            "changed: approved \(details ?? "for another host or app"); to approve again: `\(command)`"
        }
    }

    /// Describes the denial: `by user 1000 3 h ago, at 192.168.1.20`. Nil without a denied route.
    private static func denial(of endpoint: Endpoint, _ denial: Denial?, now: Date) -> String? {
        denial.map {
            "by \(Formatting.caller($0.deniedBy)) \(Formatting.ago($0.deniedAt, now: now)), at "
                + $0.addresses.joined(separator: ", ")
        }
    }

    /// Describes the routes: `192.168.1.20:49213 on wlan0 (preferred), approved, token stored`.
    private static func routes(of endpoint: Endpoint) -> [(String, String?)] {
        let routes = endpoint.shownRoutes
        let host = endpoint.isOnOtherHost ? endpoint.host.map { "\($0.name): " } ?? "" : ""
        return routes.enumerated().map { index, route in
            let interface =
                if case .network(let network) = route.route, let name = network.interface { " on \(name)" } else { "" }
            let mark = index == 0 && routes.count > 1 ? " (preferred)" : ""
            var facts = [route.approval.rawValue]
            if route.route.isInbound { facts.append("the app connected to Patchbay") }
            if let mismatch = route.mismatch { facts.append("\"\(mismatch)\" answered there") }
            if route.isSecretHeld { facts.append("token stored") }
            let holder = endpoint.combinedWith?.first { $0.routes.contains(route) }
            if let holder { facts.append("used as \(holder.id)") }
            let trust = facts.joined(separator: ", ")
            return (index == 0 ? "routes" : "", "\(host)\(route)\(interface)\(mark), \(trust)")
        }
    }

    /// Describes what was repaired: `this server: answers ids as text (3 times)`.
    private static func deviations(_ deviations: [ServerDeviation]) -> [(String, String?)] {
        deviations.enumerated().map { index, deviation in
            let times = deviation.count == 1 ? "once" : "\(deviation.count) times"
            return (index == 0 ? "repaired" : "", "this server: \(SanitizedText(deviation.text)) (\(times))")
        }
    }

    private static func txt(_ record: TXTRecord) -> [(String, String?)] {
        guard !record.entries.isEmpty else { return [("txt", "empty")] }
        let width = record.entries.map(\.key.columns).max() ?? 0
        return record.entries.enumerated().map { index, entry in
            (index == 0 ? "txt" : "", "\(entry.key.padded(to: width))  \(value(entry.value))")
        }
    }

    private static func value(_ bytes: [UInt8]?) -> String {
        guard let bytes else { return "(no value)" }
        if bytes.isEmpty { return "(empty)" }
        if let text = String(validating: bytes, as: UTF8.self), SanitizedText(text, limit: .max).text == text {
            return text
        }
        return "base64 \(Data(bytes).base64EncodedString())"
    }
}
