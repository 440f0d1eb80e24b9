import ArgumentParser
import Client
import Model

struct ApproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve",
        abstract: "Approve a program that asks for access, or a network address of an endpoint.",
        discussion: """
            A word like WDJB-MJHT is the code of a request; look at `patchbay requests` first. Anything else is an \
            endpoint. Its preferred network address is approved and printed, or the one that --address names. Another \
            address, host or app needs another approval. Cables and configured endpoints need none.

              patchbay approve WDJB-MJHT
              patchbay approve shop-test-iphone
              patchbay approve shop-test-iphone --address 192.168.1.20
            """
    )

    @Argument(help: ArgumentHelp("The code of a request, or an endpoint.", valueName: "code|endpoint"))
    var subject: String
    @Option(help: ArgumentHelp("Which network address of the endpoint.", valueName: "ip"))
    var address: String?
    @Option(help: ArgumentHelp("The endpoint's port; must be named when it is below 1024.", valueName: "port"))
    var port: UInt16?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        if let code = UserCodeArgument.code(subject) {
            do {
                let request = try await client.approveRequest(code)
                if format.json { return try output.document(request) }
                return try output.line(
                    "Approved \(request.code): \"\(request.name)\" (\(Formatting.caller(request.asker))) may "
                        + "\(Formatting.scopes(request.permissions)) on \(Formatting.selector(request.permissions.selector))."
                )
            } catch ClientError.refused(let problem) where problem.code == .notFound {
                // An endpoint may be called like a code, but only by its whole id: a mistyped code approves nothing else.
                let list = try await client.endpoints().endpoints
                try ApprovalTarget.check(subject, named: problem, among: list)
            }
        }
        let list = try await client.endpoints()
        let endpoint = try ApprovalTarget.endpoint(subject, command: "patchbay approve", among: list.endpoints)
        // The address that was read here, and not one that is announced a moment later.
        let network = endpoint.routes.filter { $0.route.host != nil }
        let preferred = network.first { !$0.isApproved } ?? network.first
        let spec = ApprovalSpec(address: address ?? preferred?.route.address, port: port)
        let approved = try await client.approve(endpoint.id, spec)
        if format.json { return try output.document(approved) }
        guard let address = spec.address else {
            return try output.line("\(approved.id) needs no approval: its cable or its configured address is one.")
        }
        let route = approved.routes.first { $0.route.address == address && $0.isApproved }
        let place = route.map { "\($0.route.place), announced by \($0.route.host?.text ?? "?") as \($0.app)" }
        try output.line("Approved \(approved.id) at \(place ?? address).")
    }
}

struct DenyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny",
        abstract: "Deny a program that asks for access, or revoke the approval of an endpoint.",
        discussion: """
            An endpoint loses the approval of its network addresses and its secret; its connections are closed. A \
            program that has access already loses it with `patchbay revoke`.

              patchbay deny WDJB-MJHT
              patchbay deny shop-test-iphone
            """
    )

    @Argument(help: ArgumentHelp("The code of a request, or an endpoint.", valueName: "code|endpoint"))
    var subject: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        if let code = UserCodeArgument.code(subject) {
            do {
                let request = try await client.denyRequest(code)
                return try output.line(
                    "Denied \(request.code): \"\(request.name)\" (\(Formatting.caller(request.asker)))."
                )
            } catch ClientError.refused(let problem) where problem.code == .notFound {
                let list = try await client.endpoints().endpoints
                try ApprovalTarget.check(subject, named: problem, among: list)
            }
        }
        let list = try await client.endpoints()
        let endpoint = try ApprovalTarget.endpoint(subject, command: "patchbay deny", among: list.endpoints)
        try await client.withdrawApproval(of: endpoint.id)
        // A cable or a configured address needs no approval.
        let stands = (try? await client.endpoint(endpoint.id))?.approval == .approved
        try output.line(
            stands
                ? "The secret of \(endpoint.id) is forgotten. It can still be called: a cable and a configured address need no approval."
                : "\(endpoint.id) is not approved any more, and its secret is forgotten."
        )
    }
}

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

/// Whether a word is a request's code, such as `WDJB-MJHT`, or names an endpoint.
enum UserCodeArgument {
    private static let letters = Set("BCDFGHJKLMNPQRSTVWXZ")

    /// The code in its one spelling; nil when the word has not the shape of one (RFC 8628, section 6.1).
    static func code(_ word: String) -> String? {
        let typed = word.uppercased().filter { $0 != "-" && $0 != " " }
        guard typed.count == 8, typed.allSatisfy(letters.contains) else { return nil }
        return "\(typed.prefix(4))-\(typed.suffix(4))"
    }
}
