import ArgumentParser
import Client
import FoundationEssentials
import Model

struct ProfileCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Check a profile file, alone or against a live server.",
        discussion: """
            With a server, the broker sends the requests of the recognition to it, and then calls the read-only tools \
            that need no argument, no token and no session. The command prints each step. The file need not be \
            installed.

              patchbay profiles check my-server.toml
              patchbay profiles check my-server.toml --port 8080
              patchbay profiles check my-server.toml -e lab
            """
    )

    @Argument(help: ArgumentHelp("Check this profile.", valueName: "file"), completion: .file(extensions: ["toml"]))
    var file: String
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Try the profile on this endpoint.", valueName: "id"),
        completion: .objects(.endpoints)
    )
    var endpoint: String?
    @Option(name: [.short, .long], help: ArgumentHelp("Try the profile on this port of a phone.", valueName: "port"))
    var port: Int?
    @Option(
        name: [.short, .long],
        help: ArgumentHelp("Use the port of this phone; optional if one phone is attached.", valueName: "phone"),
        completion: .objects(.devices)
    )
    var device: String?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if endpoint != nil, port != nil || device != nil {
            throw ValidationError("--endpoint excludes --port and --device.")
        }
        if device != nil, port == nil { throw ValidationError("--device needs --port, the port on that phone.") }
        if let port, UInt16(exactly: port) ?? 0 == 0 {
            throw ValidationError("--port is \(port); ports are 1 to 65535.")
        }
    }

    func run() async throws {
        let text = try Self.text(of: file)
        let client = try options.client
        let spec = ProfileCheckSpec(file: file, text: text, target: try await target(client))
        let check: ProfileCheck
        do {
            check = try await client.check(spec)
        } catch ClientError.refused(let problem) where problem.code == .badRequest {
            throw CLIError(
                status: .configuration,
                message: problem.detail,
                hint: problem.hint,
                problem: problem
            )
        }
        if format.json {
            try options.output.document(check)
        } else {
            for line in Self.lines(check, isTried: spec.target != nil) { try options.output.line(line) }
        }
        guard let step = check.steps.last, let mismatch = step.mismatch else { return }
        throw CLIError.failed(
            "the server is not \(check.profile.title): it answers with \(mismatch) to \(step.request)",
            try: "compare the conditions of [[recognition]] with the server's response"
        )
    }

    private func target(_ client: PatchbayClient) async throws -> TunnelTarget? {
        if let endpoint {
            let command = "patchbay profiles check \(file.shellQuoted) --endpoint"
            let selector = EndpointSelector(text: endpoint, command: command)
            return .endpoint(try await selector.choose(client).id)
        }
        guard let port = port.flatMap(UInt16.init(exactly:)) else { return nil }
        let selector = DeviceSelector(
            text: device,
            command: "patchbay profiles check \(file.shellQuoted) --port \(port) --device UDID"
        )
        return .device(udid: try await selector.choose(client), port: port)
    }

    static func text(of file: String) throws(CLIError) -> String {
        let (name, example) = (SanitizedText(file, limit: .max), "patchbay profiles check my-server.toml")
        var isFolder = false
        guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) else {
            throw .notFound(
                "there is no file \(name)",
                try: "check the path; `patchbay profiles` lists the profiles in use"
            )
        }
        guard !isFolder else { throw .usage("\(name) is a folder, not a profile file", try: example) }
        guard let data = FileManager.default.contents(atPath: file) else {
            throw CLIError.configuration(
                "\(name) cannot be read by this user",
                try: "sudo chmod o+r \(file.shellQuoted)"
            )
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            throw CLIError.configuration("\(name) is not text in UTF-8, so it is not a profile file", try: example)
        }
        return text
    }

    /// Returns one line for the file, and one for each step.
    static func lines(_ check: ProfileCheck, isTried: Bool) -> [String] {
        let tools = Formatting.count(check.profile.toolCount, "tool")
        var lines = ["\(check.profile.name): the profile is valid and has \(tools)."]
        guard isTried else { return lines }
        for step in check.steps {
            let status = step.status.map { "status \($0)" } ?? "no HTTP response"
            lines.append("\(step.request): \(status): \(step.mismatch ?? "as the profile says")")
        }
        guard let server = check.server else { return lines }
        let facts = [("app", server.app), ("version", server.version), ("launch", server.launchID)]
        let identity = facts.map { "\($0) \($1?.text ?? "-")" }.joined(separator: ", ")
        lines.append("Recognised: \(identity).")
        for tool in check.tools {
            let reason = tool.reason.map { ": \($0)" } ?? ""
            lines.append("tool \(tool.name): \(tool.outcome.rawValue)\(reason)")
        }
        return lines
    }
}
