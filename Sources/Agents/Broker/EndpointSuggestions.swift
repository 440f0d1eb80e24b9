import AccessControl
import Apps
import Model

/// The endpoints that a caller may have meant, for the errors about a missing or wrong name.
///
/// Only approved endpoints are suggested, because any machine on the link can announce a name that resembles another one.
struct EndpointSuggestions: Sendable {
    /// The maximum number of IDs in an error.
    static let limit = 5

    /// The IDs of the approved endpoints, those that are online first.
    private let ids: [String]

    init(ids: [String]) { self.ids = ids }

    /// - Parameter endpoints: The endpoints that the principal may see.
    init(among endpoints: [Endpoint]) {
        let approved = endpoints.filter { $0.approval == .approved }
        ids = (approved.filter { $0.state == .online } + approved.filter { $0.state != .online }).map(\.id.text)
    }

    /// The end of an error about a missing name: the IDs.
    var list: String {
        guard !ids.isEmpty else {
            return ": endpoint_list shows no approved endpoint; start a debug build, then endpoint_wait for it"
        }
        let more = ids.count > Self.limit ? " and \(ids.count - Self.limit) more, which endpoint_list shows" : ""
        return ": the endpoints are \(ids.prefix(Self.limit).joined(separator: ", "))\(more)"
    }

    /// Returns the end of an error about a name that matches no endpoint: the nearest ID, or all.
    func suggestion(for text: String) -> String {
        nearest(text).map { "; did you mean \($0)?" } ?? list
    }

    /// Returns the ID that resembles a text most; nil if none does. A common word, such as the machine, is no resemblance.
    func nearest(_ text: String) -> String? {
        guard let near = SimilarNameFinder.of(text, among: ids, count: 1).first,
            text.utf8.count <= 2 * near.utf8.count,
            SimilarNameFinder.distance(text, near) <= max(2, near.count / 4)
        else { return nil }
        return near
    }

    /// Returns the ID that a text mistypes by few letters. Nil if the text may be the name of an app that is not
    /// there yet.
    ///
    /// Names that differ in digits only are different names.
    func mistyped(_ text: String) -> String? {
        guard let near = nearest(text), SimilarNameFinder.distance(text, near) <= max(1, near.count / 8) else {
            return nil
        }
        let isOtherNumber =
            text.lowercased().filter(\.isLetter) == near.filter(\.isLetter)
            && text.filter(\.isNumber) != near.filter(\.isNumber)
        return isOtherNumber ? nil : near
    }
}

extension EndpointDirectory {
    /// Returns the suggestions for a principal.
    func suggestions(for principal: Principal) async -> EndpointSuggestions {
        EndpointSuggestions(among: await listed(visibleTo: principal))
    }

    /// Returns the endpoint that the parameter `endpoint` of a request selects.
    func endpoint(
        of request: ToolRequest,
        for principal: Principal,
        takesUnapproved: Bool = false
    ) async throws(ToolError) -> Endpoint {
        guard let text = try request[ToolParameter.endpoint].map(\.trimmed), !text.isEmpty else {
            throw ToolError("endpoint is missing\(await suggestions(for: principal).list)")
        }
        return try await endpoint(matching: text, for: principal, takesUnapproved: takesUnapproved)
    }
}
