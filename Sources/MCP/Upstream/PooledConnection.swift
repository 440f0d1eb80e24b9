/// A stream that an app keeps open after an answer, until the next request or its end.
struct PooledConnection: Sendable {
    /// How long one is kept. Servers close theirs after 5 s and more (uvicorn), and a request that meets that close is lost:
    /// better to be first.
    static let lifetime = Duration.seconds(2)

    let connection: UpstreamConnection
    private var rest: HTTPResponseParser
    let since: Duration

    /// The rest of the last answer may still come: the end of an event stream comes after its last message.
    init(_ connection: UpstreamConnection, rest: HTTPResponseParser, since: Duration) {
        self.connection = connection
        self.rest = rest
        self.since = since
    }

    /// Whether it may be used again once the answer has ended.
    var mayBecomeReady: Bool { !rest.isLastAnswer }

    /// The stream, if it is ready for another request: the last answer is complete, and neither an end nor anything else
    /// has come since.
    mutating func take() -> UpstreamConnection? { (try? isReady()) == true ? connection : nil }

    private mutating func isReady() throws -> Bool {
        while true {
            while let event = try rest.next() {
                // An answer that nobody asked for.
                if case .head = event { return false }
            }
            guard let bytes = try connection.receiveNow() else { return rest.mayGoOn }
            guard !bytes.isEmpty else { return false }
            rest.append(bytes)
        }
    }
}
