import Model

/// What is another about an endpoint than when it was told last, in words.
///
/// Empty where it is nothing that anybody watches for: when it was seen last, or a connection's boot mark.
struct EndpointDiff {
    private(set) var words: [String] = []

    init(from old: Endpoint, to new: Endpoint) {
        let reason = new.reason.map { ": \($0)" } ?? ""
        if old.state != new.state {
            words.append("was \(old.state.rawValue)\(reason)")
        } else if let reason = new.reason, reason != old.reason {
            words.append(reason)
        }
        compare("kind", old.kind.text, new.kind.text)
        compare("app", old.app.text, new.app.text)
        compare("name", old.name.text, new.name.text)
        compare("version", old.version?.text, new.version?.text)
        compare("approval", old.approval.rawValue, new.approval.rawValue)
        compare("host", old.place.host?.text, new.place.host?.text)
        compare("phone", old.place.udid?.text, new.place.udid?.text)
        if old.routes != new.routes {
            let routes = new.routes.map(\.description).joined(separator: ", ")
            words.append(routes.isEmpty ? "no route now" : "by \(routes)")
        }
        if old.sources != new.sources {
            let sources = new.sources.map(Formatting.source).joined(separator: ", ")
            words.append(sources.isEmpty ? "seen by no source now" : "seen by \(sources)")
        }
        let keys = Self.keys(old.txt, new.txt)
        if !keys.isEmpty { words.append("TXT \(keys.joined(separator: ", "))") }
    }

    private mutating func compare(_ what: String, _ old: String?, _ new: String?) {
        guard old != new else { return }
        func shown(_ text: String?) -> String { text.map { $0.isEmpty ? "none" : $0 } ?? "none" }
        words.append("\(what) \(shown(new)), was \(shown(old))")
    }

    /// The keys whose values differ, with `+` for new ones and `-` for those that are gone.
    private static func keys(_ old: TXTRecord, _ new: TXTRecord) -> [String] {
        let changed = new.entries.compactMap { entry -> String? in
            guard let before = old.entries.first(where: { $0.key == entry.key }) else { return "+\(entry.key)" }
            return before.value == entry.value ? nil : entry.key
        }
        let gone = old.entries.filter { before in !new.entries.contains { $0.key == before.key } }
        return changed + gone.map { "-\($0.key)" }
    }
}
