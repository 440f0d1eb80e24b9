import Model

/// Describes the differences between two versions of an endpoint.
///
/// Ignores the time of the last sighting and the launch ID, so the list of differences can be empty.
struct EndpointDiffFormatter {
    private(set) var words: [String] = []

    init(from old: Endpoint, to new: Endpoint) {
        let reason = new.reason.map { ": \($0)" } ?? ""
        if old.state != new.state {
            words.append("was \(old.state.rawValue)\(reason)")
        } else if let reason = new.reason, reason != old.reason {
            words.append(reason)
        }
        compare("kind", from: old.kind.text, to: new.kind.text)
        compare("app", from: old.app.text, to: new.app.text)
        compare("name", from: old.name.text, to: new.name.text)
        compare("version", from: old.version?.text, to: new.version?.text)
        compare("approval", from: old.approval.rawValue, to: new.approval.rawValue)
        compare("host", from: old.location.machine?.text, to: new.location.machine?.text)
        compare("phone", from: old.location.udid?.text, to: new.location.udid?.text)
        compare("part of", from: old.sameLaunchAs?.text, to: new.sameLaunchAs?.text)
        if old.shownRoutes != new.shownRoutes {
            let routes = new.shownRoutes.map(\.description).joined(separator: ", ")
            words.append(routes.isEmpty ? "no routes" : "routes \(routes)")
        }
        if old.sources != new.sources {
            let sources = new.sources.map(Formatting.source).joined(separator: ", ")
            words.append(sources.isEmpty ? "no sources" : "sources \(sources)")
        }
        let keys = Self.keys(old.txt, new.txt)
        if !keys.isEmpty { words.append("TXT \(keys.joined(separator: ", "))") }
    }

    private mutating func compare(_ name: String, from old: String?, to new: String?) {
        guard old != new else { return }
        func shown(_ text: String?) -> String { text.map { $0.isEmpty ? "none" : $0 } ?? "none" }
        words.append("\(name) \(shown(new)), was \(shown(old))")
    }

    /// Returns the changed keys; `+` marks added keys and `-` marks removed keys.
    private static func keys(_ old: TXTRecord, _ new: TXTRecord) -> [String] {
        let changed = new.entries.compactMap { entry -> String? in
            guard let before = old.entries.first(where: { $0.key == entry.key }) else { return "+\(entry.key)" }
            return before.value == entry.value ? nil : entry.key
        }
        let gone = old.entries.filter { before in !new.entries.contains { $0.key == before.key } }
        return changed + gone.map { "-\($0.key)" }
    }
}
