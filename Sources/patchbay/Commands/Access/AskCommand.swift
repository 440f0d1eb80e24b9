import ArgumentParser
import Client
import FoundationEssentials
import Model

struct AskCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask",
        abstract: "Request access to the broker of this machine, and wait for the answer.",
        discussion: """
            For users who may connect to the broker's socket (`allow_any_user = true`), but have no grant. Prints a \
            code, with which an owner approves or denies the request. After an approval, stores the grant, which only \
            programs of this user can use. A request expires after 5 minutes, and ends with Ctrl-C.

              patchbay ask
              patchbay ask --read-only --app com.example.shop
              patchbay ask --name "Anna's agent" --scope registry.read
            """
    )

    @OptionGroup var permissions: PermissionOptions
    @Option(help: ArgumentHelp("Set the grant's name in the broker. Default: user@host.", valueName: "name"))
    var name: String?
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.unauthenticatedClient
        guard case .unix = client.address else {
            throw CLIError.usage(
                "access can be requested only over the socket of the broker's machine, not at \(client.address)",
                try: "patchbay join -, with a pairing string from an owner of that broker"
            )
        }
        let permissions = try permissions.permissionsWithoutList()
        let status = try? await client.status()
        if status?.pid != nil {
            throw CLIError.usage("you are an owner of this broker, and owners need no grant", try: "patchbay list")
        }
        let store = try CredentialStore(environment: ProcessInfo.processInfo.environment)
        try store.prepare()
        let name = SanitizedText(name ?? InviteRedeemer.ownName)
        let issued = try await AccessRequester(client: client, name: name).request(permissions) { created in
            let request = created.request
            try options.output.line(
                "Requested \(request.permissions) on \(Formatting.selector(request.permissions.selector)). An owner "
                    + "allows it with: \(created.approveWith)"
            )
            try options.output.line("Waiting until \(Formatting.clock(request.expiresAt)); press Ctrl-C to stop.")
        }
        guard let token = issued.token else {
            throw ClientError.invalidResponse(what: "the approval", detail: "it has no token")
        }
        let broker = client.address.description
        _ = try store.save(CredentialStore.Credential(broker: broker, grant: issued.grant, token: token))
        try options.output.line("Allowed: \(AccessTables.line(issued.grant)).")
        try options.output.line("Use it with --broker \(broker): patchbay list --broker \(broker)")
    }
}

/// Sends an access request, and polls until an owner answers it (RFC 8628).
struct AccessRequester {
    let client: PatchbayClient
    let name: SanitizedText
    var clock: any Clock<Duration> = ContinuousClock()
    var now: @Sendable () -> Date = { Date() }

    /// Requests the permissions.
    ///
    /// - Parameters:
    ///   - permissions: The requested permissions.
    ///   - created: Receives the request with the code for the owner, before the first poll.
    /// - Returns: The grant with its token.
    /// - Throws: `CLIError` if the request was denied or has expired; `ClientError`.
    func request(
        _ permissions: Permissions,
        created: (AccessRequestCreated) throws -> Void
    ) async throws -> IssuedGrant {
        let request = try await client.requestAccess(AccessRequestSpec(name: name, permissions: permissions))
        try created(request)
        var source = SystemRandomNumberGenerator()
        let poll = AccessRequestPoll(
            deviceCode: request.deviceCode,
            client: Base62.random(count: 43, from: &source),
            name: name
        )
        var interval = request.intervalSeconds
        while now() < request.request.expiresAt {
            try await clock.sleep(for: .seconds(interval))
            do {
                let status = try await client.pollAccessRequest(poll)
                switch (status.state, status.granted) {
                case (.granted, let granted?): return granted
                case (.denied, _):
                    throw CLIError.notPermitted(
                        "an owner denied the request \(request.request.userCode)",
                        try: "ask an owner which access you may have, then request only that: patchbay ask --help"
                    )
                case (.pending, _), (.granted, nil): interval = status.intervalSeconds ?? interval
                }
            } catch ClientError.refused(let problem) where problem.code == .slowDown {
                interval += request.intervalSeconds
            } catch let error as ClientError where error.isTemporary && now() < request.request.expiresAt {
                // The broker restarts. It forgets pending requests, and the next poll says so.
                continue
            } catch ClientError.refused(let problem) where problem.code == .unauthorized {
                throw Self.expired(request.request)
            }
        }
        throw Self.expired(request.request)
    }

    /// The error for a request that the broker does not know any more.
    static func expired(_ request: AccessRequest) -> CLIError {
        CLIError.temporary(
            "the request \(request.userCode) ended without an answer",
            try: "patchbay ask, and tell an owner of the broker the new code"
        )
    }
}
