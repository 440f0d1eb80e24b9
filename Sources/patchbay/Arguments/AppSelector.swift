import Model

/// Resolves an app of a grant. The broker compares bundle identifiers letter by letter, so a short name would match none.
struct AppSelector {
    /// The text of the option.
    let text: String

    /// Selects an app by its bundle identifier, or by the last part of one that an owner has approved.
    ///
    /// An unknown text is taken as it is, because an app may be installed later.
    ///
    /// - Parameter endpoints: The endpoints of the broker.
    /// - Returns: The bundle identifier, and a sentence for the person if it is not the text of a listed app.
    /// - Throws: `CLIError` with the candidates if several match.
    func choose(among endpoints: [Endpoint]) throws(CLIError) -> (app: String, note: String?) {
        let named = endpoints.filter { $0.app.text.contains(".") || $0.routes.contains(where: \.appIsBundleID) }
        let known = Set(named.map(\.app.text))
        guard !known.contains(text) else { return (text, nil) }
        // Any machine on the network can announce a name.
        let approved = named.filter { $0.approval.wasApproved && ($0.isApp(text) || $0.isCalled(text.lowercased())) }
        let found = Set(approved.map(\.app.text)).sorted()
        let shown = SanitizedText(text)
        if let only = found.first, found.count == 1 { return (only, "--app \(shown) means \(only)") }
        guard found.isEmpty else {
            throw .usage(
                "\"\(shown)\" matches \(found.count) apps",
                candidates: found,
                try: "give --app the whole name"
            )
        }
        let parts = Dictionary(grouping: known) { String($0.split(separator: ".").last ?? $0[...]) }
        let near =
            SimilarNameFinder.of(text, among: known)
            + SimilarNameFinder.of(text, among: parts.keys).flatMap {
                parts[$0] ?? []
            }
        let similar = Set(near).sorted()
        let question = similar.isEmpty ? "" : "; similar: \(similar.joined(separator: ", "))"
        return (text, "warning: no app \"\(shown)\" is listed, so the grant has nothing until one is\(question)")
    }
}
