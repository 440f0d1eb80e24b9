import Client
import Model

/// What `approve` and `deny` are about where it is no request: an endpoint; or a mistyped code.
enum AccessSubject {
    /// - Throws: `Complaint`, which tells where codes are listed.
    static func endpoint(_ word: String, command: String, among endpoints: [Endpoint]) throws(Complaint) -> Endpoint {
        do throws(Complaint) {
            return try EndpointSelector(text: word, command: command).choose(among: endpoints)
        } catch {
            guard error.status == .notFound else { throw error }
            throw .notFound(
                "no request has the code \"\(Untrusted(word))\", and no endpoint is called so",
                try: "`patchbay requests` lists the codes; for an endpoint: \(error.remedy ?? "patchbay list")"
            )
        }
    }

    /// Lets a code pass that no request has, as the broker says, only where an endpoint has it for its whole id: a mistyped
    /// code is about nothing else.
    ///
    /// - Throws: `Complaint`.
    static func check(_ word: String, named problem: Problem, among endpoints: [Endpoint]) throws(Complaint) {
        guard endpoints.contains(where: { $0.id.text == word }) else {
            throw Complaint(
                status: .notFound,
                message: problem.detail,
                remedy: "patchbay requests",
                problem: problem
            )
        }
    }
}
