/// The endpoint that a person or an agent means by a text.
///
/// A full ID, written in lower case, always selects its endpoint, also if the ID of another endpoint begins with it. Any
/// other text is a short name and has to match one endpoint only. Any machine on the link can announce names, so an
/// unapproved endpoint counts only if no other endpoint matches.
package enum EndpointMatch: Hashable, Sendable {
    case none
    case one(Endpoint)
    /// The short name matches one endpoint only, which no owner has approved.
    case unapproved(Endpoint)
    case several([Endpoint])

    /// - Parameters:
    ///   - text: The text, in any case.
    ///   - endpoints: The endpoints as lists show them (`combined`). One that is part of another has only its ID as name.
    ///   - matches: Returns whether the text is a short name of an endpoint.
    package init(_ text: String, among endpoints: [Endpoint], by matches: (Endpoint) -> Bool) {
        let id = text.lowercased()
        let parts = endpoints.flatMap { $0.combinedWith ?? [] }
        if let named = (parts + endpoints).first(where: { $0.isCalled(id) }) {
            // IDs are in lower case. A text in another case may be the name of another endpoint.
            let others = text == id ? [] : endpoints.filter { $0.id != named.id && matches($0) }
            if others.isEmpty { self = .one(named) } else { self.init([named] + others) }
            return
        }
        self.init(endpoints.filter(matches))
    }

    /// - Parameter all: The endpoints that match by anything but a full ID.
    package init(_ all: [Endpoint]) {
        let approved = all.filter { $0.approval.wasApproved }
        // A registered app chose its name, and no owner has compared it with the others.
        let isOwnersChoice = approved.contains { $0.registered != true }
        let matching = isOwnersChoice ? approved : all
        // The pages of an app have the name of the app, and are meant only if it has no other server.
        let apps = matching.filter { $0.kind != .web }
        let found = apps.isEmpty ? matching : apps
        self =
            switch (found.first, found.count) {
            case (let only?, 1): approved.isEmpty ? .unapproved(only) : .one(only)
            case (nil, _): .none
            default: .several(found)
            }
    }
}
