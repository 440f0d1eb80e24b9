import ArgumentParser
import Client
import FoundationEssentials
import Model

struct OpenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Open an endpoint in the browser: its page, or its own URL.",
        discussion: """
            Without --url, signs in to the web page like `patchbay dashboard`, and shows the endpoint there.

            With --url, opens the address of the app itself: the URL of a Dart VM service, or the local address of the \
            endpoint's tunnel.

              patchbay open shop
              patchbay open shop --url
            """
    )

    @Argument(help: ArgumentHelp("Open this endpoint.", valueName: "endpoint"), completion: .objects(.endpoints))
    var endpoint: String
    @Flag(help: "Open the address of the app itself.")
    var url = false
    @Flag(help: "Print the address only.")
    var noOpen = false
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let selector = EndpointSelector(text: endpoint, command: "patchbay open", takesUnapproved: !url)
        let endpoint = try await selector.choose(client)
        let browser = Browser(client.address, ProcessInfo.processInfo.environment)
        let address: String
        if url {
            address = try await Self.url(of: endpoint, client)
            try options.output.line(address)
        } else {
            let signIn = try await DashboardCommand.code(options)
            address = Self.pageURL(of: endpoint.id, signIn.url)
            let code = DashboardCode(code: signIn.code, url: address, expiresAt: signIn.expiresAt)
            for line in browser.lines(for: code) { try options.output.line(line) }
        }
        if !noOpen { browser.open(address) }
    }

    /// Returns the address of an endpoint's page with the code of `url`. The page shows `view` after the sign-in.
    static func pageURL(of id: EndpointID, _ url: String) -> String { "\(url)&view=/e/\(id)" }

    /// Returns the URL of the app itself.
    ///
    /// - Throws: `CLIError` if there is none; `ClientError`.
    private static func url(of endpoint: Endpoint, _ client: PatchbayClient) async throws -> String {
        let tunnels = try await client.tunnels.list().filter { $0.spec.target == .endpoint(endpoint.id) }
        return try url(
            of: endpoint,
            authority: tunnels.lazy.compactMap(\.authority).first,
            try await VMServiceText.urls(of: endpoint, client)
        )
    }

    /// Returns the URL of the app itself, from the address of its tunnel and the broker's answer for a Dart VM service.
    ///
    /// - Throws: `CLIError` if there is none.
    static func url(
        of endpoint: Endpoint,
        authority: String?,
        _ service: Result<DartVMService, Problem>?
    ) throws(CLIError) -> String {
        switch service {
        case .success(let service):
            return authority.map { DartVMService(at: $0, authCode: service.authCode).http } ?? service.http
        case .failure(let problem):
            throw .failed(problem.detail, try: problem.hint ?? "patchbay show \(endpoint.id)")
        case nil:
            if let authority { return "http://\(authority)/" }
            throw .notFound(
                "\(endpoint.id) has no tunnel with a local port, so it has no address to open",
                try: "patchbay forward -e \(endpoint.id) --detach, then patchbay open \(endpoint.id) --url"
            )
        }
    }
}
