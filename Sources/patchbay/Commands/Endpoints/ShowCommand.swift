import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show everything about one endpoint: routes, TXT record, sources, when it was seen.",
        discussion: """
            The endpoint may be given by id, by the beginning of its id, by name, by app, or by its phone's UDID.

              patchbay show shop-test-iphone
              patchbay show com.example.shop --probe
            """
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @Flag(help: "Ask the endpoint right now whether it is there.")
    var probe = false
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let list = try await client.endpoints()
        var endpoint = try EndpointSelector(text: selector, command: "patchbay show").choose(among: list.endpoints)
        if probe { endpoint = try await client.probe(endpoint.id) }
        let output = options.output
        if format.json { return try output.document(endpoint) }
        // Only owners may know who said yes.
        let approvals = try? await client.approvals().approvals
        let approval = approvals?.first { $0.endpoint == endpoint.id }
        try output.line(Self.text(endpoint, approval, isColoured: output.isColoured))
    }

    static func text(
        _ endpoint: Endpoint,
        _ approval: Approval? = nil,
        now: Date = Date(),
        isColoured: Bool
    ) -> String {
        let state = endpoint.state.style.paint(endpoint.state.rawValue, isOn: isColoured)
        var facts: [(String, String?)] = [
            ("name", endpoint.name.text),
            ("app", ([endpoint.app] + (endpoint.version.map { [$0] } ?? [])).map(\.text).joined(separator: " ")),
            ("kind", endpoint.kind.text), ("phone", endpoint.place.udid?.text), ("host", endpoint.place.host?.text),
            ("approval", Self.approval(of: endpoint, approval, now: now)),
        ]
        facts += endpoint.routes.isEmpty ? [("routes", "none now")] : Self.routes(endpoint.routes)
        facts += [
            (
                "sources",
                endpoint.sources.isEmpty ? "none now" : endpoint.sources.map(Formatting.source).joined(separator: ", ")
            ),
            ("first seen", Formatting.ago(endpoint.since, now: now)),
            ("last seen", endpoint.lastSeen.map { Formatting.ago($0, now: now) } ?? "never"),
            ("boot", endpoint.boot?.text),
        ]
        facts += txt(endpoint.txt)
        if endpoint.txtIsTruncated == true {
            let limit = "over \(TXTRecord.byteLimit) bytes or \(TXTRecord.keyLimit) keys"
            facts.append(("", "and more, which is not kept: \(limit)"))
        }
        let title = ANSIStyle.bold.paint(endpoint.id.text, isOn: isColoured) + "  " + state
        let lines = facts.compactMap { name, value in value.map { "  \(name.padded(to: 10))  \($0)" } }
        return ([title + (endpoint.reason.map { ": \($0)" } ?? "")] + lines).joined(separator: "\n")
    }

    /// `approved by user 1000, … 3 h ago, on the cable of …`.
    private static func approval(of endpoint: Endpoint, _ approval: Approval?, now: Date) -> String {
        let said = approval.map {
            "by \(Formatting.caller($0.by)) \(Formatting.ago($0.at, now: now)), \(Formatting.place($0))"
        }
        return switch endpoint.approval {
        case .approved: said.map { "approved \($0)" } ?? "approved"
        case .discovered:
            endpoint.state == .blocked
                ? "blocked: it cannot be approved" : "discovered: not reached until `patchbay approve \(endpoint.id)`"
        case .changed:
            "changed: it was approved \(said ?? "elsewhere"); if it may be here: `patchbay approve \(endpoint.id)`"
        }
    }

    /// `192.168.1.20:49213 on wlan0 (preferred), approved, token held`.
    private static func routes(_ routes: [EndpointRoute]) -> [(String, String?)] {
        routes.enumerated().map { index, route in
            let interface = if case .lan(let lan) = route.route, let name = lan.interface { " on \(name)" } else { "" }
            let mark = index == 0 && routes.count > 1 ? " (preferred)" : ""
            var facts = [route.approval.rawValue]
            if let mismatch = route.mismatch { facts.append("\"\(mismatch)\" answered there") }
            if route.isSecretHeld { facts.append("token held") }
            let trust = facts.joined(separator: ", ")
            return (index == 0 ? "routes" : "", "\(route)\(interface)\(mark), \(trust)")
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
