package import Model
import NIOHTTP1

/// The logs of phones and of the apps on them.
package struct LogClient: Sendable {
    /// The writer of the lines.
    package enum Subject: Hashable, Sendable {
        case endpoint(EndpointID)
        /// All apps of a phone.
        case device(UDID)

        fileprivate var path: [String] {
            switch self {
            case .endpoint(let id): ["endpoints", id.text, "log"]
            case .device(let udid): ["devices", udid.text, "log"]
            }
        }
    }

    let client: PatchbayClient

    /// Returns the newest lines, the newest last. A phone takes up to 20 s.
    ///
    /// - Throws: `ClientError`.
    package func lines(of subject: Subject, count: Int) async throws -> [PhoneLogLine] {
        let request = OutgoingRequest(method: .GET, path: subject.path, query: [("lines", "\(count)")])
        return try await client.response(to: request, as: PhoneLogDocument.self, extraTimeout: .seconds(30)).lines
    }

    /// Streams past and new lines until the broker ends the stream or the task is cancelled.
    ///
    /// - Parameters:
    ///   - subject: Whose lines are read.
    ///   - count: The number of past lines.
    ///   - opened: Called when the broker reads the log.
    ///   - handle: Called with each event, in order. Meanwhile no more data is read.
    /// - Throws: `ClientError`, `CancellationError`, or the error of `handle`.
    package func follow(
        _ subject: Subject,
        count: Int,
        opened: () -> Void,
        _ handle: (PhoneLogEvent<PhoneLogLine>) async throws -> Void
    ) async throws {
        let request = OutgoingRequest(
            method: .GET,
            path: subject.path,
            query: [("lines", "\(count)"), ("follow", "true")],
            accept: "text/event-stream"
        )
        try await client.stream(request) { event in
            func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
                try client.decode(type, from: event.data, what: "an event of a log")
            }
            switch event.name {
            case "begin": opened()
            case "line": try await handle(.line(decode(PhoneLogLine.self)))
            case "lost": try await handle(.lost(decode([String: Int].self)["lines"] ?? 0))
            case "note":
                try await handle(.note(SanitizedText(decode([String: String].self)["text"] ?? "", limit: 500).text))
            case "problem": throw ClientError.refused(try decode(Problem.self))
            default: break
            }
        }
    }
}
