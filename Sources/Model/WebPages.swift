/// The pages of an endpoint of kind `web`, with URLs that the caller can use.
package struct WebPages: Hashable, Sendable, Codable {
    /// The version of the document format.
    package let schema: Int
    /// The address for tools such as Playwright's `connect_over_cdp`: `http://127.0.0.1:9333`. Nil for a port of a phone
    /// without a tunnel.
    package let http: String?
    package let pages: [WebPage]
    /// The number of pages beyond the limit and of damaged entries; nil if there are none.
    package let omittedCount: Int?

    /// - Parameters:
    ///   - pages: The pages as the server lists them.
    ///   - authority: The address and port of a tunnel or of the server; nil without one.
    package init(_ pages: DevToolsPages, at authority: String?) {
        schema = 1
        http = authority.map { "http://\($0)" }
        omittedCount = pages.omittedCount == 0 ? nil : pages.omittedCount
        self.pages = pages.pages.map { page in
            WebPage(
                type: page.type,
                title: page.title,
                url: page.url,
                webSocketDebuggerUrl: authority.flatMap { address in
                    page.webSocketPath.map { "ws://\(address)\($0)" }
                }
            )
        }
    }
}

/// One page, worker or other target of a DevTools server. The names are those of `/json/list`.
package struct WebPage: Hashable, Sendable, Codable {
    package let type: SanitizedText
    package let title: SanitizedText
    package let url: SanitizedText
    /// The URL for a debugger. A second debugger may end the first.
    package let webSocketDebuggerUrl: String?
}

/// The answer of a DevTools server to `GET /json/list`, sanitized.
package struct DevToolsPages: Hashable, Sendable {
    package struct Page: Hashable, Sendable {
        package let type: SanitizedText
        package let title: SanitizedText
        package let url: SanitizedText
        /// The path and query of `webSocketDebuggerUrl`. The server makes the address from the header `Host`, so it is
        /// not kept.
        package let webSocketPath: String?
    }

    /// The maximum number of pages.
    package static let pageLimit = 200
    private static let titleLimit = 200
    private static let urlLimit = 2_048

    package let pages: [Page]
    /// The number of pages beyond the limit and of entries that are no objects.
    package let omittedCount: Int

    /// Parses the list. An entry that is no object is lost, and so is each member with a wrong type.
    ///
    /// - Returns: Nil if the value is not an array.
    package init?(_ list: JSON) {
        guard let entries = list.array else { return nil }
        pages = Array(entries.lazy.compactMap(Self.page).prefix(Self.pageLimit))
        omittedCount = entries.count - pages.count
    }

    private static func page(_ entry: JSON) -> Page? {
        guard entry.object != nil else { return nil }
        func text(_ name: String, _ limit: Int) -> SanitizedText {
            SanitizedText(entry[name]?.string ?? "", limit: limit)
        }
        return Page(
            type: text("type", SanitizedText.nameLimit),
            // ios_webkit_debug_proxy lists phones at its first port, and names them in this member.
            title: text(entry["title"] == nil ? "deviceName" : "title", titleLimit),
            url: text("url", urlLimit),
            webSocketPath: entry["webSocketDebuggerUrl"]?.string.flatMap(path)
        )
    }

    /// Returns the path and query of `ws://HOST/PATH`; nil for other text, and for characters that a URL lacks.
    ///
    /// Metro writes `wss` behind a proxy with TLS. Its own port has none.
    private static func path(of url: String) -> String? {
        guard url.utf8.count <= urlLimit,
            let scheme = ["ws://", "wss://"].first(where: { url.hasPrefix($0) })
        else { return nil }
        let path = url.dropFirst(scheme.count).drop { $0 != "/" }
        let isURL = path.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"\"'<>\\`".utf8.contains($0) }
        return path.isEmpty || !isURL ? nil : String(path)
    }
}
