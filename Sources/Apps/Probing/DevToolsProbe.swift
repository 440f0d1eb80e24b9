package import Model
package import SystemIO

/// The HTTP requests to servers of the Chrome DevTools protocol, and the parsers of their responses.
///
/// All requests are GETs, which change nothing. No WebSocket is opened, because attaching may end another debugger.
enum DevToolsProbe {
    static let version = AppHTTPRequest("GET", "/json/version")
    /// The paths of the list of pages. ios_webkit_debug_proxy has only the second.
    static let lists = ["/json/list", "/json"].map { AppHTTPRequest("GET", $0) }

    /// Parses `/json/version`, where Chrome, Node and Metro report these two members; nil for any other response.
    static func server(_ response: AppResponse) -> ServerIdentity? {
        guard response.status == 200, let version = response.json, let browser = version["Browser"]?.string,
            version["Protocol-Version"]?.string != nil
        else { return nil }
        let words = browser.split(separator: "/", maxSplits: 1)
        guard let name = words.first else { return nil }
        return ServerIdentity(
            kind: .web,
            name: SanitizedText(name),
            version: words.count > 1 ? SanitizedText(words[1]) : nil
        )
    }

    /// Parses the list of pages; nil for any other response.
    static func pages(_ response: AppResponse) -> DevToolsPages? {
        response.status == 200 ? response.json.flatMap { DevToolsPages($0) } : nil
    }
}

/// A server did not answer with a list of pages. The description is a sentence for a person.
package struct DevToolsError: Error, Hashable, CustomStringConvertible {
    package let description: String
}

/// Reads the pages of DevTools servers.
package struct DevToolsClient: Sendable {
    /// The maximum size of a list in bytes. Browsers put icons as data URLs into it.
    static let listLimit = 1_048_576

    private let sender: ProbeSender

    package init(
        dialer: any Dialer,
        timeout: Duration = .seconds(3),
        clock: any Clock<Duration> = PollerClock()
    ) {
        sender = ProbeSender(dialer: dialer, timeout: timeout, clock: clock, isInUse: { _ in false })
    }

    /// Verifies that an endpoint of kind `web` has a list of pages, at its best approved route.
    ///
    /// - Throws: The errors of `pages(of:)`.
    package func verify(_ endpoint: Endpoint) async throws {
        guard endpoint.kind == .web, let route = endpoint.approvedRoutes.first?.route else { return }
        _ = try await pages(of: route)
    }

    /// Returns the pages that the server behind a route lists.
    ///
    /// - Throws: `DialError` if the port accepted no connection in time; `DevToolsError`; `CancellationError`.
    package func pages(of route: Route) async throws -> DevToolsPages {
        for request in DevToolsProbe.lists {
            switch try await sender.send(request, to: route, limit: Self.listLimit) {
            case .response(let response):
                if let pages = DevToolsProbe.pages(response) { return pages }
            case .silence: throw DevToolsError(description: "\(route) did not answer within \(sender.timeout)")
            case .none:
                throw DevToolsError(
                    description: "\(route) sent no whole list of pages, or one over \(Self.listLimit / 1_048_576) MiB"
                )
            case .other: throw DevToolsError(description: "\(route) does not speak HTTP")
            }
        }
        throw DevToolsError(description: "\(route) has no list of pages at /json/list")
    }
}
