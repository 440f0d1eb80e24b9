import Client
import Model

/// Finds the phone that a person means: by UDID in any spelling, the beginning of one, or by being the only one.
struct DeviceSelector {
    /// What was typed; nil where nothing was.
    let text: String?
    /// How to repeat the command with a phone, with `UDID` in its place: `patchbay forward 22 --device UDID`.
    let command: String

    /// A whole UDID is taken as it is, because a tunnel may wait for a phone that is not plugged in yet.
    ///
    /// - Throws: `CLIError`, with the candidates where several fit.
    func choose(among devices: [Device]) throws(CLIError) -> UDID {
        if let text, let udid = UDID(text) { return udid }
        let attached = Set(devices.map(\.udid)).sorted()
        guard let text else {
            if let only = attached.first, attached.count == 1 { return only }
            guard attached.isEmpty else { throw ambiguous("more than one phone is attached", attached) }
            throw .notFound("no phone is attached", try: "patchbay devices --watch, then plug one in and unlock it")
        }
        let found = attached.filter { Self.fits(text, $0) }
        if let only = found.first, found.count == 1 { return only }
        guard found.isEmpty else { throw ambiguous("\"\(SanitizedText(text))\" fits \(found.count) phones", found) }
        throw .notFound(
            "no attached phone has a UDID that begins with \"\(SanitizedText(text))\"",
            try: "patchbay devices"
        )
    }

    /// Whether the text begins the UDID; case and hyphens do not count, and fewer than four digits say too little.
    static func fits(_ text: String, _ udid: UDID?) -> Bool {
        let digits = text.filter { $0 != "-" }.lowercased()
        guard let udid, digits.count >= 4 else { return false }
        return udid.text.filter { $0 != "-" }.lowercased().hasPrefix(digits)
    }

    private func ambiguous(_ message: String, _ found: [UDID]) -> CLIError {
        CLIError(
            status: .usage,
            message: message,
            candidates: found.map(\.text),
            remedy: command.replacing("UDID", with: found[0].text)
        )
    }
}

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
