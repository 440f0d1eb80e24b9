import FoundationEssentials
import Model

/// The remote listener as `patchbay remote`, `patchbay status` and `patchbay doctor` show it.
struct RemoteStatusText {
    private let status: RemoteStatus

    init(_ status: RemoteStatus) { self.status = status }

    func show(_ format: JSONOption, on output: Console) throws {
        if format.json { return try output.document(status) }
        for line in lines { try output.line(line) }
    }

    var lines: [String] {
        var lines = ["listener    \(status.summary)\(status.configured ? " (api.remote)" : "")"]
        if !status.reachable.isEmpty {
            lines.append("reachable   \(status.reachable.map(Console.plain).joined(separator: ", "))")
        }
        if let pin = status.pin { lines.append("key pin     \(pin)") }
        if let certificates = status.certificates {
            lines.append("names       \(certificates.names.map(Console.plain).joined(separator: ", "))")
            if let own = certificates.configured {
                let names = own.names.map(Console.plain).joined(separator: ", ")
                lines.append("certificate yours for \(names), until \(own.expiresAt.formatted(.iso8601))")
            }
        }
        if status.state != .off || status.refusedHandshakes > 0 {
            lines.append("handshakes  \(status.refusedHandshakes) refused")
        }
        if status.state == .off { lines.append("try: patchbay remote on") }
        return lines
    }

    /// The check of `patchbay doctor`; nil if the listener is off.
    var check: Check? {
        if let problem = status.brokerProblem ?? status.certificateProblem() { return Check(problem) }
        return status.state == .off ? nil : .ok("remote", status.summary)
    }
}
