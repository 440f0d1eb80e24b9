import Client
import Model

/// Resolves a phone by UDID in any spelling, by its name, or by the beginning of either. Without a text, selects the only attached
/// phone.
struct DeviceSelector {
    /// The text of the argument; nil if the argument is absent.
    let text: String?
    /// The command for the hint, with the placeholder `UDID`: `patchbay forward 22 --device UDID`.
    let command: String

    /// Selects a phone from a list.
    ///
    /// A complete UDID need not be in the list, because a tunnel can wait for a phone that is not attached yet.
    ///
    /// - Throws: `CLIError` if no phone matches, or with the candidates if several match.
    func choose(among devices: [Device]) throws(CLIError) -> UDID {
        if let text, let udid = UDID(text) { return udid }
        guard let text else {
            let attached = Set(devices.filter(\.isReady).map(\.udid)).sorted()
            if let only = attached.first, attached.count == 1 { return only }
            guard attached.isEmpty else { throw ambiguous("more than one phone is attached", attached, devices) }
            if let device = devices.first, let hint = device.state.hint {
                throw .notFound("phone \(device.udid) is \(device.state.rawValue)", try: hint)
            }
            throw .notFound("no phone is attached", try: "plug in a phone and unlock it; see patchbay devices --watch")
        }
        let named = devices.filter { $0.name.map { Self.isName(text, of: $0) } ?? false }.map(\.udid)
        let found = Set(named.isEmpty ? devices.filter { Self.begins(text, $0) }.map(\.udid) : named).sorted()
        if let only = found.first, found.count == 1 { return only }
        guard found.isEmpty else {
            throw ambiguous("\"\(SanitizedText(text))\" matches \(found.count) phones", found, devices)
        }
        throw .notFound(
            "no attached phone has a name or a UDID that starts with \"\(SanitizedText(text))\"",
            try: "patchbay devices"
        )
    }

    /// Returns true if the text is the name of a phone. Ignores case, and reads the typewriter apostrophe as the one in
    /// "Anna’s iPhone", which iOS writes and keyboards lack.
    static func isName(_ text: String, of name: SanitizedText) -> Bool { normal(name.text) == normal(text) }

    /// Returns true if the text is the beginning of a phone's name.
    static func isBeginning(_ text: String, of name: SanitizedText?) -> Bool {
        name.map { !text.isEmpty && normal($0.text).hasPrefix(normal(text)) } ?? false
    }

    private static func normal(_ name: String) -> String { name.lowercased().replacing("’", with: "'") }

    private static func begins(_ text: String, _ device: Device) -> Bool {
        matches(text, device.udid) || isBeginning(text, of: device.name)
    }

    /// Returns true if the text is a prefix of the UDID, or of an Android phone's serial, with at least 4 characters.
    /// Ignores case and hyphens.
    static func matches(_ text: String, _ udid: UDID?) -> Bool {
        func normal(_ text: some StringProtocol) -> String { String(text).filter { $0 != "-" }.lowercased() }
        guard let udid, normal(text).count >= 4 else { return false }
        return normal(udid.text).hasPrefix(normal(text)) || normal(udid.serial).hasPrefix(normal(text))
    }

    private func ambiguous(_ message: String, _ found: [UDID], _ devices: [Device]) -> CLIError {
        let width = found.map(\.text.count).max() ?? 0
        let lines = found.map { udid in
            let name = devices.lazy.filter { $0.udid == udid }.compactMap(\.name).first
            return name.map { "\(udid.text.padded(to: width))  \($0)" } ?? udid.text
        }
        let hint = ([command.replacing("UDID", with: found[0].text)] + found.dropFirst().prefix(9).map(\.text))
            .joined(separator: ", or ")
        return CLIError.usage(message, candidates: lines, try: hint)
    }
}

/// Explains an empty list of phones with the state of the USB source.
struct MissingDeviceExplanation {
    /// The state of the USB source; nil if the broker does not report it.
    let status: SourceStatus?

    init(status: SourceStatus?) { self.status = status }

    init(_ client: PatchbayClient) async {
        status = try? await client.status().sources.first { $0.name == "usbmuxd" }
    }

    /// True if the configuration turns phones off.
    var isOff: Bool { status?.state == .off }

    static let off = CLIError.notFound(
        "phones are turned off by devices.enabled = false",
        try: "set devices.enabled = true in the configuration and restart the broker"
    )

    /// Adds the state of the USB source to a "not found" error; returns other errors unchanged.
    func explain(_ error: CLIError) -> CLIError {
        guard error.status == .notFound, let status else { return error }
        switch status.state {
        case .off: return Self.off
        case .missing:
            var explained = CLIError.notFound("\(error.message): \(status.detail)", try: error.hint ?? "")
            explained.hint = status.hint ?? error.hint
            return explained
        case .ok, .starting: return error
        }
    }
}

extension DeviceSelector {
    /// Selects one of the attached phones; explains an empty list. A platform selects among its phones only.
    ///
    /// - Throws: `CLIError`, `ClientError`.
    func choose(_ client: PatchbayClient, platform: Platform? = nil) async throws -> UDID {
        if let platform, let udid = text.flatMap({ UDID($0) }), udid.platform != platform {
            throw CLIError.usage(
                "\(udid) is a phone with \(udid.platform.name), not \(platform.name)",
                try: "patchbay devices"
            )
        }
        let devices = try await client.devices().filter { platform == nil || $0.platform == platform }
        do {
            return try choose(among: devices)
        } catch {
            guard devices.isEmpty else { throw error }
            throw await MissingDeviceExplanation(client).explain(error)
        }
    }
}
