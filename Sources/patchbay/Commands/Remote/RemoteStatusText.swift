import Model

/// The remote listener as `patchbay remote`, `patchbay status` and `patchbay doctor` show it.
struct RemoteStatusText {
    private let status: RemoteStatus

    init(_ status: RemoteStatus) { self.status = status }

    func show(_ format: JSONOption, on output: Console) throws {
        if format.json { return try output.document(status) }
        for line in lines { try output.line(line) }
    }

    /// One line: the state, and the address or the reason why there is none.
    var summary: String {
        switch status.state {
        case .off: "off"
        case .listening: "listening on \(address), \(connections)"
        case .waiting: "waiting for \(address): \(Console.plain(status.problem ?? "not open yet"))"
        }
    }

    var lines: [String] {
        var lines = ["listener    \(summary)\(status.configured ? " (api.remote)" : "")"]
        if !status.reachable.isEmpty {
            lines.append("reachable   \(status.reachable.map(Console.plain).joined(separator: ", "))")
        }
        if let pin = status.pin { lines.append("key pin     \(pin)") }
        if status.state != .off || status.refusedHandshakes > 0 {
            lines.append("handshakes  \(status.refusedHandshakes) refused")
        }
        if status.state == .off { lines.append("try: patchbay remote on") }
        return lines
    }

    /// The check of `patchbay doctor`; nil if the listener is off.
    var check: Check? {
        switch status.state {
        case .off: nil
        case .listening: .ok("remote", summary)
        case .waiting:
            Check.warn(
                "remote",
                summary + (status.configured ? "; api.remote of the configuration selects the address" : ""),
                try: status.configured ? "patchbay config show" : "patchbay remote off"
            )
        }
    }

    private var address: String { Console.plain(status.address ?? "?") }

    private var connections: String { "\(status.connections) connection\(status.connections == 1 ? "" : "s")" }
}
