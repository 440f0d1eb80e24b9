import AccessControl
import Apps
import FoundationEssentials
import HTTPTypes
import HummingbirdCore
import Model
import SystemIO

/// `/v1/endpoints/{id}/log` and `/v1/devices/{udid}/log`: a document with the newest lines, or a stream that goes on.
enum PhoneLogRoutes {
    static let query: [APIRoute.Query] = [
        .integer("lines", "Number of past lines, at most 10,000; default 100"),
        .string("follow", "true for a stream of events: the past lines, and new ones as they are logged"),
    ]

    /// Shows the lines of an app.
    @Sendable static func endpoint(_ request: APIRequest) async throws -> APIResponse {
        let endpoint = try await request.endpoint()
        guard endpoint.state != .blocked else {
            throw Problem(.unavailable, "\(endpoint.id) is blocked: \(endpoint.reason ?? "no route")")
        }
        try await request.requireApproval(of: endpoint)
        return try await answer(request) { logs, lines, principal in
            try await logs.open(endpoint, lines: lines, for: principal)
        }
    }

    /// Shows the lines of all apps of a phone of this host.
    @Sendable static func device(_ request: APIRequest) async throws -> APIResponse {
        let udid = try DeviceRoutes.udid(of: request)
        try await DeviceRoutes.requireAttachedHere(udid, "reads its log", request)
        return try await answer(request) { logs, lines, principal in
            try await logs.open(udid, lines: lines, for: principal)
        }
    }

    private static func answer(
        _ request: APIRequest,
        _ open: @escaping @Sendable (PhoneLogService, Int, Principal) async throws -> PhoneLog
    ) async throws -> APIResponse {
        let lines = try request.query("lines", as: Int.self) ?? PhoneLogService.defaultLines
        guard PhoneLogService.lines.contains(lines) else {
            throw Problem(.badRequest, "the query's lines must be from 0 to \(PhoneLogService.lines.upperBound)")
        }
        let follows = request.query("follow") ?? "false"
        guard ["true", "false"].contains(follows) else {
            throw Problem(.badRequest, "the query's follow must be true or false, not \"\(SanitizedText(follows))\"")
        }
        if follows == "true" { try request.requireStreamPlace() }
        let (logs, principal) = (request.services.mcp.logs, request.principal)
        let log = try await request.whileConnected { try await open(logs, lines, principal) }
        guard follows == "true" else { return try .json(PhoneLogDocument(lines: log.past)) }
        return ServerSentEventStream.response(to: request.httpRequest) { events in
            try events.send("begin", ["lines": log.past.count])
            try await events.sendWritten(encoded(log.past.map { .line($0) }))
            do {
                _ = try await withCancellation(
                    when: { try await request.services.owners.waitForEndOfSession(of: principal) }
                ) {
                    try await log.follow { try await events.sendWritten(encoded($0)) }
                }
            } catch let problem as Problem {
                try events.send("problem", problem)
            } catch let error as DialError { try events.send("problem", Problem(error)) }
        }
    }

    private static func encoded(_ events: [PhoneLogEvent<PhoneLogLine>]) throws -> [UInt8] {
        let encoder = JSONCoding.encoder()
        return try events.flatMap { event in
            switch event {
            case .line(let line): SSEEncoder.event("line", data: try encoder.encode(line))
            case .lost(let count): SSEEncoder.event("lost", data: try encoder.encode(["lines": count]))
            case .note(let text): SSEEncoder.event("note", data: try encoder.encode(["text": text]))
            }
        }
    }
}
