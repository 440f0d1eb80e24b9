import Client
import Model

/// What `approve` and `deny` are about where it is no request: an endpoint; or a mistyped code.
enum ApprovalTarget {
    /// - Throws: `CLIError`, which tells where codes are listed.
    static func endpoint(_ word: String, command: String, among endpoints: [Endpoint]) throws(CLIError) -> Endpoint {
        do throws(CLIError) {
            return try EndpointSelector(text: word, command: command).choose(among: endpoints)
        } catch {
            guard error.status == .notFound else { throw error }
            throw .notFound(
                "no request has the code \"\(SanitizedText(word))\", and no endpoint is called so",
                try: "`patchbay requests` lists the codes; for an endpoint: \(error.remedy ?? "patchbay list")"
            )
        }
    }

    /// Lets a code pass that no request has, as the broker says, only where an endpoint has it for its whole id: a mistyped
    /// code is about nothing else.
    ///
    /// - Throws: `CLIError`.
    static func check(_ word: String, named problem: Problem, among endpoints: [Endpoint]) throws(CLIError) {
        guard endpoints.contains(where: { $0.id.text == word }) else {
            throw CLIError(
                status: .notFound,
                message: problem.detail,
                remedy: "patchbay requests",
                problem: problem
            )
        }
    }
}
