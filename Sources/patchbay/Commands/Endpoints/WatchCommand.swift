import ArgumentParser
import Client
import FoundationEssentials
import Model

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Follow every change of endpoints and phones as it happens.",
        discussion: """
            Begins with the list as it stands. A broker that restarts is waited for, and nothing that happened \
            meanwhile is left out. Each line is a change: when, + new, ~ changed (and what) or - forgotten or unplugged.

              patchbay watch
              patchbay watch --json | jq -c 'select(.event == "endpoint")'
            """
    )

    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let feed = WatchPrinter(
            selection: WatchPrinter.Selection(),
            isJSON: format.json,
            output: options.output,
            errors: .errors()
        )
        try await feed.run(options.client)
    }
}

/// The broker's live feed as lines: for people one line per change, for programs one JSON object per event.
struct WatchPrinter {
    /// What of it is shown.
    struct Selection {
        var showsEndpoints = true
        var showsDevices = true
        var state: Endpoint.State?
        var app: String?

        /// Whether an endpoint is shown, as it is now or as it was shown last.
        func fits(_ endpoint: Endpoint, wasShown: Bool) -> Bool {
            showsEndpoints && (app.map(endpoint.isApp) ?? true)
                && (state == nil || endpoint.state == state || wasShown)
        }
    }

    let selection: Selection
    let isJSON: Bool
    let output: Console
    let errors: Console

    /// Follows until it is interrupted; a broker that restarts is waited for and asked for what was missed.
    func run(_ client: PatchbayClient) async throws {
        var revision: UInt64?
        var shown: [EndpointID: Endpoint] = [:]
        var phones: Set<UDID>?
        let reconnection = RetryingStream { text in try? errors.line(text) }
        try await reconnection.keep { answered in
            try await client.followEvents(after: revision) { event in
                answered()
                switch event {
                case .snapshot(let list):
                    revision = list.revision
                    try show(list, &shown)
                case .endpoint(let change):
                    revision = change.revision
                    try show(change, &shown)
                case .devices(let list): try show(list, &phones)
                }
            }
        }
    }

    private func show(_ list: EndpointList, _ shown: inout [EndpointID: Endpoint]) throws {
        guard selection.showsEndpoints else { return }
        let endpoints = list.endpoints.filter { selection.fits($0, wasShown: false) }
        shown = Dictionary(endpoints.map { ($0.id, $0) }) { $1 }
        if isJSON {
            try output.record(WatchEvent(event: "snapshot", revision: list.revision, endpoints: endpoints))
        } else if endpoints.isEmpty {
            try output.line("nothing is listed yet; waiting for changes (Ctrl-C ends)")
        } else {
            try output.table(EndpointTableView.table(of: endpoints))
        }
    }

    private func show(_ change: EndpointChange, _ shown: inout [EndpointID: Endpoint]) throws {
        let endpoint = change.endpoint
        let before = shown[endpoint.id]
        guard selection.fits(endpoint, wasShown: before != nil) else { return }
        let remains = change.kind != .removed && selection.fits(endpoint, wasShown: false)
        shown[endpoint.id] = remains ? endpoint : nil
        if isJSON {
            let record = WatchEvent(
                event: "endpoint",
                revision: change.revision,
                kind: change.kind,
                endpoint: endpoint
            )
            try output.record(record)
        } else if let line = Self.line(change, before: before, isColoured: output.isColoured) {
            try output.line("\(Formatting.clock(Date()))  \(line)")
        }
    }

    private func show(_ list: DeviceList, _ phones: inout Set<UDID>?) throws {
        guard selection.showsDevices else { return }
        if isJSON {
            try output.record(WatchEvent(event: "devices", devices: list.devices))
            return
        }
        let now = Set(list.devices.map(\.udid))
        let before = phones ?? []
        for udid in now.subtracting(before).sorted() { try output.line("\(Formatting.clock(Date()))  + phone \(udid)") }
        for udid in before.subtracting(now).sorted() { try output.line("\(Formatting.clock(Date()))  - phone \(udid)") }
        if phones == nil, now.isEmpty, !selection.showsEndpoints {
            try output.line("no phone is attached; waiting for one (Ctrl-C ends)")
        }
        phones = now
    }

    /// `+  shop-test-iphone  online  usb:…:9876`, `~  shop-test-iphone  suspect  was online: …`.
    ///
    /// - Parameters:
    ///   - change: What the broker said.
    ///   - before: The endpoint as it was told last; nil where it was not.
    ///   - isColoured: Whether the state stands out.
    /// - Returns: Nil where a person would see no difference.
    static func line(_ change: EndpointChange, before: Endpoint?, isColoured: Bool) -> String? {
        let endpoint = change.endpoint
        var more = endpoint.reason ?? endpoint.routes.first?.description ?? ""
        let sign: String
        switch change.kind {
        case .added: sign = "+"
        case .changed:
            sign = "~"
            guard let before else { break }
            let difference = EndpointDiff(from: before, to: endpoint)
            guard !difference.words.isEmpty else { return nil }
            more = difference.words.joined(separator: "; ")
        case .removed: (sign, more) = ("-", "")
        }
        let state = change.kind == .removed ? "forgotten" : endpoint.state.rawValue
        let words = [sign, endpoint.id.text, endpoint.state.style.paint(state, isOn: isColoured), more]
        return words.filter { !$0.isEmpty }.joined(separator: "  ")
    }
}

/// One line of `--watch --json`: what happened, with the members that belong to it.
struct WatchEvent: Encodable {
    /// `snapshot`, `endpoint` or `devices`.
    var event: String
    var revision: UInt64?
    var kind: EndpointChange.Kind?
    var endpoint: Endpoint?
    var endpoints: [Endpoint]?
    var devices: [Device]?
}
