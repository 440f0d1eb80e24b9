import Client
import Model

/// The pages of DevTools servers in the output of `patchbay show`.
enum WebPagesText {
    /// The maximum length of a page's URL in bytes. A `data:` URL contains the page.
    private static let urlLimit = 200

    /// Asks the broker for the pages of an endpoint.
    ///
    /// - Returns: Nil for other kinds of endpoints, and for a blocked one. A failure is the broker's reason for listing
    ///   none.
    static func pages(of endpoint: Endpoint, _ client: PatchbayClient) async throws -> Result<WebPages, Problem>? {
        guard endpoint.kind == .web, endpoint.state != .blocked else { return nil }
        do { return .success(try await client.webPages(of: endpoint.id)) } catch ClientError.refused(let problem) {
            return .failure(problem)
        }
    }

    /// The facts for `patchbay show`: the address for tools, and three lines for each page.
    static func facts(_ pages: Result<WebPages, Problem>?) -> [(String, String?)] {
        switch pages {
        case nil: return []
        case .failure(let problem): return [("pages", "not shown: \(problem.detail)")]
        case .success(let list):
            let lines = list.pages.flatMap { page in
                let url = SanitizedText(page.url.text, limit: urlLimit)
                let lines = ["\(page.type): \(page.title)", "  \(url)\(url == page.url ? "" : "…")"]
                return lines + (page.webSocketDebuggerUrl.map { ["  \($0)"] } ?? [])
            }
            let omitted = list.omittedCount.map { ["\($0) not shown"] } ?? []
            let shown = lines.isEmpty && omitted.isEmpty ? ["none"] : lines + omitted
            return [("devtools", list.http)] + shown.enumerated().map { ($0.offset == 0 ? "pages" : "", $0.element) }
        }
    }
}
