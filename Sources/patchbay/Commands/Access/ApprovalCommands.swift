import ArgumentParser
import Client
import Model

struct ApproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve",
        abstract: "Approve a network address of an endpoint.",
        discussion: """
            Approves the preferred network address of the endpoint, or the address in --address, and prints it. Each \
            other address, host or app needs its own approval. USB and configured endpoints need no approval.

            For an endpoint on a cable, the address may be that of an endpoint that is possibly the same app. Both are \
            then one endpoint.

              patchbay approve shop-test-iphone
              patchbay approve shop-test-iphone --address 192.168.1.20
            """
    )

    @Argument(help: ArgumentHelp("Approve this endpoint.", valueName: "endpoint"), completion: .objects(.endpoints))
    var selector: String
    @Option(help: ArgumentHelp("Approve this network address of the endpoint.", valueName: "ip"))
    var address: String?
    @Option(
        help: ArgumentHelp("Approve this port; required if the port is below 1024.", valueName: "port"),
        transform: PortArgument.parse
    )
    var port: UInt16?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        let list = try await client.endpoints()
        let endpoint = try ApprovalTarget.endpoint(
            selector,
            command: "patchbay approve",
            requestCommand: "patchbay requests approve",
            among: list.endpoints
        )
        // The address is sent explicitly, so that an address announced after this list is not approved.
        let others = endpoint.combinedWith?.flatMap(\.routes) ?? []
        let network = endpoint.routes.filter { $0.route.machine != nil && !others.contains($0) }
        let preferred = network.first { !$0.isApproved } ?? network.first
        let spec = ApprovalSpec(address: address ?? preferred?.route.address, port: port)
        let approved = try await client.approvals.approve(endpoint.id, spec)
        if format.json { return try output.document(approved) }
        guard let address = spec.address else {
            return try output.line(Self.textWithoutAddress(endpoint))
        }
        let route = approved.routes.first { $0.route.address == address && $0.isApproved }
        let place = route.map { approved in
            if case .network(let network) = approved.route, network.isInbound {
                return "\(network.address), from which the app connects"
            }
            return "\(approved.route.location), announced by \(approved.route.machine?.text ?? "?") as \(approved.app)"
        }
        try output.line("Approved \(approved.id) at \(place ?? address).")
    }

    /// Describes the approval of an endpoint without a network address to approve. The approval accepts another app
    /// there. `endpoint` is as it was before.
    static func textWithoutAddress(_ endpoint: Endpoint) -> String {
        guard let found = endpoint.routes.compactMap(\.mismatch).first else {
            return "\(endpoint.id) needs no approval: it has only USB or configured routes."
        }
        return "Approved another app at \(endpoint.id): \(found) answered there last. "
            + "From now on, \(endpoint.id) is the app that answers next."
    }
}

struct DenyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny",
        abstract: "Deny network addresses of an endpoint.",
        discussion: """
            Denies every network address of the endpoint that is not approved, or the address in --address, and prints \
            them. Patchbay remembers a denied address, never connects to it, and does not ask for it again. An approval \
            of the address ends, with its secret and its connections. To undo it, approve the address.

              patchbay deny shop-test-iphone
              patchbay deny shop-test-iphone --address 192.168.1.20
            """
    )

    @Argument(
        help: ArgumentHelp("Deny addresses of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @Option(help: ArgumentHelp("Deny this network address of the endpoint.", valueName: "ip"))
    var address: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        let endpoint = try ApprovalTarget.endpoint(
            selector,
            command: "patchbay deny",
            requestCommand: "patchbay requests deny",
            among: try await client.endpoints().endpoints
        )
        let denied = try await client.approvals.deny(endpoint.id, DenialSpec(address: address))
        if format.json { return try output.document(denied) }
        let addresses = Set(denied.routes.filter { $0.approval == .denied }.compactMap(\.route.address)).sorted()
        try output.line("Denied \(denied.id) at \(addresses.joined(separator: ", ")). It does not ask again.")
    }
}

struct UnapproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unapprove",
        abstract: "Revoke the approval of an endpoint and delete its secret.",
        discussion: """
            Revokes the approval of all network addresses of the endpoint and closes its connections.

              patchbay unapprove shop-test-iphone
            """
    )

    @Argument(
        help: ArgumentHelp("Revoke the approval of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let list = try await client.endpoints()
        let endpoint = try ApprovalTarget.endpoint(
            selector,
            command: "patchbay unapprove",
            requestCommand: "patchbay requests deny",
            among: list.endpoints
        )
        // A registered app keeps its token, because its broker refuses the revocation.
        try await client.approvals.revoke(of: endpoint.id)
        let isSecretLeft = try await client.secrets.delete(of: endpoint.id)
        let hadSecret = isSecretLeft || endpoint.routes.contains(where: \.isSecretHeld)
        // USB and configured routes need no approval and stay approved.
        let isApproved = (try? await client.endpoint(endpoint.id))?.approval == .approved
        try options.output.line(Self.text(endpoint, hadSecret: hadSecret, staysApproved: isApproved))
    }

    /// Describes what the command has changed. `endpoint` is as it was before.
    static func text(_ endpoint: Endpoint, hadSecret: Bool, staysApproved: Bool) -> String {
        let id = endpoint.id
        if staysApproved {
            return (hadSecret ? "Deleted the secret of \(id)." : "\(id) has no secret.")
                + " It stays approved: USB and configured routes need no approval."
        }
        switch (endpoint.approval, hadSecret) {
        case (.pending, true), (.denied, true): return "Deleted the secret of \(id). It was not approved."
        case (.pending, false), (.denied, false): return "\(id) was not approved, and it has no secret."
        case (_, true): return "Revoked the approval of \(id) and deleted its secret."
        case (_, false): return "Revoked the approval of \(id). It had no secret."
        }
    }
}

/// The endpoint that `approve`, `deny` and `unapprove` name.
enum ApprovalTarget {
    /// Finds the endpoint.
    ///
    /// - Throws: `CLIError`. For a word with the shape of a request code, the hint is the command for requests.
    static func endpoint(
        _ word: String,
        command: String,
        requestCommand: String,
        among endpoints: [Endpoint]
    ) throws(CLIError) -> Endpoint {
        do throws(CLIError) {
            return try EndpointSelector(text: word, command: command, takesUnapproved: true).choose(among: endpoints)
        } catch {
            guard error.status == .notFound, let code = UserCodeArgument.code(word) else { throw error }
            throw .notFound(error.message, try: "for an access request: \(requestCommand) \(code)")
        }
    }
}

/// The code of an access request, such as `WDJB-MJHT`.
enum UserCodeArgument {
    private static let letters = Set("BCDFGHJKLMNPQRSTVWXZ")

    /// Returns the code in its canonical spelling, or nil if the word does not have the shape of a code (RFC 8628,
    /// section 6.1).
    static func code(_ word: String) -> String? {
        let typed = word.uppercased().filter { $0 != "-" && $0 != " " }
        guard typed.count == 8, typed.allSatisfy(letters.contains) else { return nil }
        return "\(typed.prefix(4))-\(typed.suffix(4))"
    }

    /// - Throws: `CLIError` if the word does not have the shape of a code.
    static func require(_ word: String, command: String) throws(CLIError) -> String {
        if let code = code(word) { return code }
        throw .usage(
            "\"\(SanitizedText(word))\" is not a request code such as WDJB-MJHT",
            try: "list the codes with patchbay requests; for an endpoint: \(command)"
        )
    }
}
