import Client
import Model

/// Where phones come from, for somebody who sees none.
struct DeviceAvailability {
    /// The broker's word on it; nil where it says nothing.
    let status: SourceStatus?

    init(status: SourceStatus?) { self.status = status }

    init(_ client: PatchbayClient) async {
        status = try? await client.status().sources.first { $0.name == "usb" }
    }

    var isOff: Bool { status?.state == .off }

    static let off = CLIError.notFound(
        "phones are turned off by devices.enabled = false",
        try: "set devices.enabled = true in the configuration, and restart the broker"
    )

    /// A complaint that there is no phone, with the reason where it is not that none is plugged in.
    func explain(_ complaint: CLIError) -> CLIError {
        guard complaint.status == .notFound, let status else { return complaint }
        switch status.state {
        case .off: return Self.off
        case .missing:
            var explained = CLIError.notFound("\(complaint.message): \(status.detail)", try: complaint.remedy ?? "")
            explained.remedy = status.remedy ?? complaint.remedy
            return explained
        case .ok, .starting: return complaint
        }
    }
}

extension DeviceSelector {
    /// Chooses among the phones that the broker has; where it has none, says why.
    ///
    /// - Throws: `CLIError`, `ClientError`.
    func choose(_ client: PatchbayClient) async throws -> UDID {
        let devices = try await client.devices().devices
        do {
            return try choose(among: devices)
        } catch {
            guard devices.isEmpty else { throw error }
            throw await DeviceAvailability(client).explain(error)
        }
    }
}
