import ArgumentParser
import Client
import Model

struct GrantsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants",
        abstract: "List the grants with their scopes, bindings and expiry.",
        discussion: """
            Create an invite with `patchbay pair`; revoke a grant with `patchbay revoke ID`. Shows the requests of \
            `patchbay ask` first.

              patchbay grants
              patchbay grants --all --json | jq '.grants[] | select(.endReason)'
            """
    )

    @Flag(help: "Include those that ended within the last day.")
    var all = false
    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let grants = try await options.client.grants().filter { all || $0.endReason == nil }
        // Only owners may list requests.
        let requests = (try? await options.client.requests()) ?? []
        let output = options.output
        if !format.json, !format.quiet {
            for request in requests { try output.line(AccessTables.notice(request, isColoured: output.isColoured)) }
        }
        try format.show(
            grants,
            id: \.id,
            table: AccessTables.table(of: grants),
            ifEmpty: "No \(all ? "" : "valid ")grants. Create an invite with `patchbay pair`.",
            on: options
        )
    }
}

struct InvitesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invites",
        abstract: "List the open invites.",
        discussion: """
            Create an invite with `patchbay pair`; revoke an invite with `patchbay revoke ID`. FAILED counts wrong \
            secrets; the fifth locks the invite.

              patchbay invites
              patchbay invites --all
            """
    )

    @Flag(help: "Include those that ended within the last day.")
    var all = false
    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let invites = try await options.client.invites().filter { all || $0.endReason == nil }
        try format.show(
            invites,
            id: \.id,
            table: AccessTables.table(of: invites),
            ifEmpty: "No \(all ? "" : "open ")invites. Create one with `patchbay pair`.",
            on: options
        )
    }
}

struct RequestsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "requests",
        abstract: "List, approve and deny access requests of programs on this machine.",
        discussion: """
            `patchbay ask` sends such a request.

              patchbay requests
              patchbay requests approve WDJB-MJHT
              patchbay requests deny WDJB-MJHT
              patchbay requests unlock
            """,
        subcommands: [
            RequestListCommand.self, RequestApproveCommand.self, RequestDenyCommand.self, RequestUnlockCommand.self,
        ],
        defaultSubcommand: RequestListCommand.self
    )
}

struct RequestListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the pending access requests.",
        discussion: """
            The kernel reports REQUESTER; the program chooses NAME itself. A request expires after 5 minutes. After 20 \
            wrong codes within an hour all requests are locked until `patchbay requests unlock`.

              patchbay requests --json
            """,
        aliases: ["ls"]
    )

    @OptionGroup var format: ListOptions
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let requests = try await options.client.requests()
        try format.show(
            requests,
            id: \.userCode,
            table: AccessTables.table(of: requests),
            ifEmpty: "No pending access requests.",
            footer: "Answer with `patchbay requests approve CODE` or `patchbay requests deny CODE`.",
            on: options
        )
    }
}

struct RequestApproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve",
        abstract: "Approve an access request.",
        discussion: """
            Check the requester with `patchbay requests` first. Approve a part of the request with the options of \
            `patchbay pair`. `patchbay revoke` revokes the grant later.

              patchbay requests approve WDJB-MJHT
              patchbay requests approve WDJB-MJHT --app com.example.shop --read-only
            """
    )

    @Argument(help: ArgumentHelp("Approve the request with this code.", valueName: "code"))
    var code: String
    @OptionGroup var permissions: PermissionOptions
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let code = try UserCodeArgument.require(code, command: "patchbay approve ENDPOINT")
        let client = try options.client
        let limits = try await permissions.limits(client, command: "patchbay requests approve")
        let request = try await client.approveRequest(code, limits: limits)
        if format.json { return try options.output.document(request) }
        try options.output.line(
            "Approved \(request.userCode): \"\(request.name)\" (\(request.asker)) may "
                + "\(request.permissions) on \(Formatting.selector(request.permissions.selector))."
        )
    }
}

struct RequestDenyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny",
        abstract: "Deny an access request.",
        discussion: """
              patchbay requests deny WDJB-MJHT
            """
    )

    @Argument(help: ArgumentHelp("Deny the request with this code.", valueName: "code"))
    var code: String
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let code = try UserCodeArgument.require(code, command: "patchbay unapprove ENDPOINT")
        let request = try await options.client.denyRequest(code)
        if format.json { return try options.output.document(request) }
        try options.output.line(
            "Denied \(request.userCode): \"\(request.name)\" (\(request.asker))."
        )
    }
}

struct RequestUnlockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlock",
        abstract: "Unlock access requests after too many wrong codes.",
        discussion: """
              patchbay requests unlock
            """
    )

    @OptionGroup var options: GlobalOptions

    func run() async throws {
        try await options.client.unlockRequests()
        try options.output.line("Access requests are unlocked.")
    }
}
