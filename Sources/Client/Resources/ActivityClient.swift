package import Model
import NIOHTTP1

/// The calls of apps' tools, and the use of phones and grants.
package struct ActivityClient: Sendable {
    let client: PatchbayClient

    /// Selects entries.
    package struct Query: Hashable, Sendable {
        package var endpoint: String?
        package var grant: String?
        /// An outcome, or `failed`.
        package var outcome: String?
        /// Entries that began or changed after this revision; nil for all.
        package var since: UInt64?
        /// Seconds to wait for an entry.
        package var wait: Int?
        package var limit: Int?

        package init(endpoint: String? = nil, grant: String? = nil, outcome: String? = nil) {
            self.endpoint = endpoint
            self.grant = grant
            self.outcome = outcome
        }
    }

    /// Returns entries, oldest first.
    ///
    /// - Throws: `ClientError`.
    package func page(_ query: Query = Query()) async throws -> ActivityPage {
        let parameters = [
            ("endpoint", query.endpoint), ("grant", query.grant), ("outcome", query.outcome),
            ("since", query.since.map(String.init)), ("waitSeconds", query.wait.map(String.init)),
            ("limit", query.limit.map(String.init)),
        ]
        let request = OutgoingRequest(method: .GET, path: ["activity"], query: parameters)
        let bytes = try await client.bytes(of: request, extraTimeout: .seconds(query.wait ?? 0))
        guard let json = try? JSON(parsing: bytes), let page = ActivityPage(json) else {
            throw ClientError.invalidResponse(what: "the answer to \(request.name)", detail: "it has no entries")
        }
        return page
    }

    /// Returns the picture of an entry with at most this width in pixels, and its media type; nil if it is not kept.
    ///
    /// - Throws: `ClientError`.
    package func picture(of entry: ActivityEntry, width: Int) async throws -> (bytes: [UInt8], type: String)? {
        let request = OutgoingRequest(
            method: .GET,
            path: ["activity", "\(entry.id)", "picture"],
            query: [("width", "\(width)")]
        )
        do {
            let bytes = try await client.bytes(of: request)
            return ImageType(of: bytes).map { (bytes, $0.rawValue) }
        } catch ClientError.refused(let problem) where problem.code == .notFound {
            return nil
        }
    }
}
