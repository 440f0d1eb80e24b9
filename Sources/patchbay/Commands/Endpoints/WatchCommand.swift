import ArgumentParser
import Client
import FoundationEssentials
import Model

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print each change of endpoints and phones.",
        discussion: """
            Starts with the current list. Reconnects after a restart of the broker and prints the changes in between. \
            Each line has the time and + for added, ~ for changed with the difference, or - for removed.

              patchbay watch
              patchbay watch --json | jq -c 'select(.event == "endpoint")'
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let feed = WatchPrinter(
            isJSON: format.json,
            output: options.output,
            errors: .errors()
        )
        try await feed.run(options.client)
    }
}

/// Prints the broker's event stream: one text line per change, or one JSON document per event.
struct WatchPrinter {
    /// The endpoints to print; nil for none.
    var endpoints: EndpointFilter? = EndpointFilter()
    var showsDevices = true
    let isJSON: Bool
    let output: Console
    let errors: Console

    /// Prints events until the task is cancelled. After a restart of the broker, requests the missed events.
    func run(_ client: PatchbayClient) async throws {
        var revision: UInt64?
        var shown: [EndpointID: Endpoint] = [:]
        var phones: [UDID: Device]?
        var hosts: [HostStatus]?
        // The broker removes the socket of a grant with the grant. A restart of the broker takes less than the attempts.
        let grant = (try? await client.ownGrant()).flatMap { if case .socket = $0.binding { $0 } else { nil } }
        let stream = RetryingStream(attemptLimit: grant == nil ? nil : 30) { text in try? errors.line(text) }
        do {
            try await stream.run { answered in
                try await client.streamEvents(after: revision) { event in
                    answered()
                    switch event {
                    case .snapshot(let list):
                        revision = list.revision
                        try show(list, &shown)
                    case .endpoint(let change):
                        revision = change.revision
                        try show(change, &shown)
                    case .devices(let devices): try show(devices, &phones)
                    case .hosts(let list): try show(list, &hosts)
                    }
                }
            }
        } catch ClientError.brokerNotRunning(let path) {
            guard let grant else { throw ClientError.brokerNotRunning(path: path) }
            throw Self.endedGrant(grant, path: path)
        }
    }

    /// The error for the socket of a grant at which no broker listens any more.
    static func endedGrant(_ grant: Grant, path: String) -> CLIError {
        CLIError.notReachable(
            """
            no broker listens any more at \(SanitizedText(path, limit: 500)): grant \(grant.id), to which the socket \
            belongs, was revoked or has expired, or the broker is stopped
            """,
            try: "ask an owner of the broker for a new socket: patchbay pair --socket PATH"
        )
    }

    private func show(_ list: EndpointList, _ shown: inout [EndpointID: Endpoint]) throws {
        guard let filter = endpoints else { return }
        let endpoints = list.endpoints.filter { filter.matches($0) }
        shown = Dictionary(endpoints.map { ($0.id, $0) }) { $1 }
        if isJSON {
            try output.jsonLine(WatchEvent(event: "snapshot", revision: list.revision, endpoints: endpoints))
        } else if endpoints.isEmpty {
            try output.line("no endpoints; waiting for changes (stop with Ctrl-C)")
        } else {
            try output.table(EndpointTableView.table(of: endpoints.combined))
        }
    }

    private func show(_ change: EndpointChange, _ shown: inout [EndpointID: Endpoint]) throws {
        let endpoint = change.endpoint
        let before = shown[endpoint.id]
        guard let filter = endpoints, filter.matches(endpoint, wasShown: before != nil) else { return }
        let remains = change.kind != .removed && filter.matches(endpoint)
        shown[endpoint.id] = remains ? endpoint : nil
        if isJSON {
            let record = WatchEvent(
                event: "endpoint",
                revision: change.revision,
                kind: change.kind,
                endpoint: endpoint
            )
            try output.jsonLine(record)
        } else if let line = Self.line(change, before: before, isColoured: output.isColoured) {
            try output.line("\(Formatting.clock(Date()))  \(line)")
        }
    }

    private func show(_ devices: [Device], _ phones: inout [UDID: Device]?) throws {
        guard showsDevices else { return }
        if isJSON {
            try output.jsonLine(WatchEvent(event: "devices", devices: devices))
            return
        }
        // A phone with two transports is ready if one of them is.
        let now = Dictionary(devices.map { ($0.udid, $0) }) { $0.state == .ready ? $0 : $1 }
        for line in Self.lines(from: phones ?? [:], to: now) { try output.line("\(Formatting.clock(Date()))  \(line)") }
        if phones == nil, now.isEmpty, endpoints == nil {
            try output.line("no phones; waiting for changes (stop with Ctrl-C)")
        }
        phones = now
    }

    /// Formats the changes of the phones: `+ phone UDID (Shop's phone, Android 15, Pixel 8)`,
    /// `~ phone UDID (…) is unauthorized: …`, `- phone UDID (…)`.
    static func lines(from before: [UDID: Device], to now: [UDID: Device]) -> [String] {
        let changed = now.sorted { $0.key < $1.key }.compactMap { udid, device -> String? in
            let (known, text) = (before[udid], text(of: device))
            guard known?.state != device.state else {
                // A phone reports its name a moment after it was attached.
                return known.map { Self.text(of: $0) } == text ? nil : "~ \(text)"
            }
            return device.state.hint.map { "~ \(text) is \(device.state.rawValue): \($0)" } ?? "+ \(text)"
        }
        return changed + before.values.filter { now[$0.udid] == nil }.map { "- \(text(of: $0))" }.sorted()
    }

    private static func text(of device: Device) -> String {
        let words = [device.name?.text, ShowCommand.system(of: device)].compactMap { $0 }
        return "phone \(device.udid) (\(words.joined(separator: ", ")))"
    }

    private func show(_ list: [HostStatus], _ hosts: inout [HostStatus]?) throws {
        defer { hosts = list }
        if isJSON { return try output.jsonLine(WatchEvent(event: "hosts", hosts: list)) }
        for line in TeamText.changes(from: hosts ?? [], to: list, isFirst: hosts == nil) {
            try output.line("\(Formatting.clock(Date()))  \(line)")
        }
    }

    /// Formats a change: `+  shop-test-iphone  online  usb:…:9876`, `~  shop-test-iphone  suspect  was online: …`.
    ///
    /// - Parameters:
    ///   - change: The event.
    ///   - before: The previously printed endpoint, or nil.
    ///   - isColoured: True to color the state.
    /// - Returns: The line, or nil if no displayed field has changed.
    static func line(_ change: EndpointChange, before: Endpoint?, isColoured: Bool) -> String? {
        let endpoint = change.endpoint
        var more = endpoint.reason ?? TeamText.route(of: endpoint) ?? endpoint.routes.first?.description ?? ""
        let sign: String
        switch change.kind {
        case .added: sign = "+"
        case .changed:
            sign = "~"
            guard let before else { break }
            let difference = EndpointDiffFormatter(from: before, to: endpoint)
            guard !difference.words.isEmpty else { return nil }
            more = difference.words.joined(separator: "; ")
        case .removed: (sign, more) = ("-", "")
        }
        let state = change.kind == .removed ? "removed" : endpoint.state.rawValue
        let words = [sign, endpoint.id.text, endpoint.state.style.paint(state, isOn: isColoured), more]
        return words.filter { !$0.isEmpty }.joined(separator: "  ")
    }
}

/// One line of `--watch --json`: an event and its members.
struct WatchEvent: Encodable {
    /// `snapshot`, `endpoint`, `devices` or `hosts`.
    var event: String
    var revision: UInt64?
    var kind: EndpointChange.Kind?
    var endpoint: Endpoint?
    var endpoints: [Endpoint]?
    var devices: [Device]?
    var hosts: [HostStatus]?
}
