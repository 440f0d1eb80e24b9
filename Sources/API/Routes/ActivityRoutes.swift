import AccessControl
import Apps
import HTTPTypes
import HummingbirdCore
import Model
import NIOCore

/// `/v1/activity`: the calls of apps' tools, and the changes of endpoints between them.
enum ActivityRoutes {
    private static let maxLimit = 1_000
    private static let defaultLimit = 500
    private static let maxWaitSeconds = 300
    private static let widths = 16...4_096

    static let listQuery: [APIRoute.Query] = [
        .integer("after", "Entries after this ID"),
        .integer("before", "Entries before this ID"),
        .integer("since", "Entries that began or changed after this revision"),
        .integer("waitSeconds", "Seconds to wait for an entry, at most 300"),
        .integer("limit", "Number of entries, the newest ones, at most 1,000; default 500"),
        .string("endpoint", "Only entries of this endpoint"),
        .string("grant", "Only calls of this grant"),
        .string(
            "outcome",
            "Only calls with this outcome: waiting, running, ok, error, refused, cancelled, unknown; or failed"
        ),
    ]

    static let pictureQuery: [APIRoute.Query] = [
        .integer("width", "Maximum width in pixels; without it, the picture as it was delivered")
    ]

    @Sendable static func list(_ request: APIRequest) async throws -> APIResponse {
        let filter = try Filter(request)
        let wait = min(try request.query("waitSeconds", as: Int.self) ?? 0, maxWaitSeconds)
        guard let reader = request.services.mcp.activity else {
            return .json(ActivityPage(limit: 0, oldest: 0, newest: 0, revision: 0, entries: []).json)
        }
        if wait > 0 { try request.requireStreamPlace() }
        let principal = request.principal
        let page = try await request.whileConnected {
            await read(reader, filter, for: principal, waiting: .seconds(max(0, wait)))
        }
        return .json(page.json)
    }

    private static func read(
        _ reader: ActivityReader,
        _ filter: Filter,
        for principal: Principal,
        waiting wait: Duration
    ) async -> ActivityPage {
        if wait > .zero {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in reader.log.changes() {
                        if await reader.log.entries(for: principal).entries.contains(where: filter.matches) { break }
                    }
                }
                // The client's own timeout.
                group.addTask { try? await Task.sleep(for: wait) }
                await group.next()
                group.cancelAll()
            }
        }
        let (records, revision) = await reader.log.entries(for: principal)
        return ActivityPage(
            limit: reader.log.limit,
            oldest: records.first?.entry.id ?? 0,
            newest: records.last?.entry.id ?? 0,
            revision: revision,
            entries: reader.described(filter.selected(records))
        )
    }

    @Sendable static func picture(_ request: APIRequest) async throws -> APIResponse {
        let width = try request.pictureWidth(in: widths)
        let id = try UInt64(request.parameter("id"))
        let reader = request.services.mcp.activity
        guard let reader, let id, let record = reader.log.record(id, for: request.principal),
            let file = try await reader.file(of: record, width: width, for: request.principal)
        else {
            throw Problem(
                .notFound,
                "there is no picture of this call; old pictures are dropped first",
                hint: "patchbay activity"
            )
        }
        return .body(ByteBuffer(bytes: file.bytes), type: file.type)
    }

    /// The query of a list.
    private struct Filter {
        let after: UInt64
        let before: UInt64
        let since: UInt64
        let limit: Int
        let endpoint: EndpointID?
        let grant: String?
        let outcomes: Set<ActivityEntry.Outcome>?

        init(_ request: APIRequest) throws {
            after = try request.query("after", as: UInt64.self) ?? 0
            before = try request.query("before", as: UInt64.self) ?? .max
            since = try request.query("since", as: UInt64.self) ?? 0
            limit = min(max(try request.query("limit", as: Int.self) ?? defaultLimit, 1), maxLimit)
            endpoint = try request.query("endpoint").map { try request.endpointID($0) }
            grant = request.query("grant")
            guard let text = request.query("outcome") else {
                outcomes = nil
                return
            }
            let all = ActivityEntry.Outcome.allCases
            let named = text == "failed" ? all.filter(\.isFailure) : all.filter { $0.rawValue == text }
            guard !named.isEmpty else {
                let names = (all.map(\.rawValue) + ["failed"]).joined(separator: ", ")
                throw Problem(.badRequest, "\"\(SanitizedText(text))\" is not an outcome; use one of \(names)")
            }
            outcomes = Set(named)
        }

        func matches(_ record: ActivityRecord) -> Bool {
            let (entry, call) = (record.entry, record.entry.call)
            return entry.id > after && entry.id < before && record.revision > since
                && (endpoint == nil || entry.endpoint == endpoint) && (grant == nil || call?.client.grant == grant)
                && (outcomes == nil || call.map { outcomes?.contains($0.outcome) == true } ?? false)
        }

        func selected(_ records: [ActivityRecord]) -> [ActivityRecord] {
            let matching = records.filter(matches)
            return Array(after > 0 && before == .max ? matching.prefix(limit) : matching.suffix(limit))
        }
    }
}

/// The topic `activity` of `/v1/events`.
extension ActivityRoutes {
    /// The longest time in which several changes of one entry become one event.
    private static let pause = Duration.milliseconds(200)

    /// Sends the document of each entry that begins or changes from now on.
    static func stream(_ request: APIRequest, _ send: ([UInt8]) throws -> Void) async throws {
        guard let reader = request.services.mcp.activity else {
            // The stream goes on with its other topics.
            return try await Task.sleep(for: .seconds(Int64(Int32.max)))
        }
        var revision = await reader.log.entries(for: request.principal).revision
        for await _ in reader.log.changes() {
            let (records, newest) = await reader.log.entries(for: request.principal)
            for entry in reader.described(records.filter { $0.revision > revision }) { try send(entry.json.bytes) }
            revision = newest
            try await Task.sleep(for: pause)
        }
    }
}

extension APIRequest {
    /// Returns the query parameter `width`; nil if it is absent.
    func pictureWidth(in widths: ClosedRange<Int>) throws -> Int? {
        guard let width = try query("width", as: Int.self) else { return nil }
        guard widths.contains(width) else {
            throw Problem(.badRequest, "the query's width must be from \(widths.lowerBound) to \(widths.upperBound)")
        }
        return width
    }
}
