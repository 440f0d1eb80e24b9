import AccessControl
import JSON
import Model
import SystemIO

/// One stream to an app on which every message is a line, and all that is under way on it.
///
/// Nobody's task reads it: of those who wait for something, one reads for all, and hands that on when it has what it wanted.
/// What comes while nobody waits is read before the next message is sent. Whoever lets go of it closes it.
actor LineTransport {
    /// The most bytes of one message.
    private static let limit = 32 * 1_048_576
    /// How long it is kept while nobody uses it. There may be a person behind each greeting who says yes (iMCP asks).
    private static let lifetime = Duration.seconds(300)

    /// A request that is not answered yet.
    private struct Pending {
        let listener: UpstreamMessageHandler
        /// When something last came that shows the app at work on it.
        var lastSign: Duration
        var answer: UpstreamResponse?
    }

    nonisolated let route: Route
    private let connection: UpstreamConnection
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    /// Heeds what belongs to no request.
    private let others: UpstreamMessageHandler

    private var parser = LineDecoder(limit: LineTransport.limit)
    private var pending: [RPCID: Pending] = [:]
    /// Somebody reads; the others wait to be woken.
    private var isBeingRead = false
    private var waits: [Int: Promise<Void>] = [:]
    private var lastWait = 0
    /// Those who want to hear whatever comes.
    private var followers = 0
    /// Why it is over.
    private var end: Trouble?
    private var redactor: TokenRedactor
    private let writing = AsyncSemaphore(places: 1)
    /// What is still to be written of a line that has been begun, and what that line was admitted by.
    private var unwritten: (bytes: ArraySlice<UInt8>, admission: Admission?) = ([], nil)
    private var lastUse: Duration

    init(_ connection: UpstreamConnection, clock: any Clock<Duration>, heed others: UpstreamMessageHandler) {
        self.connection = connection
        self.clock = clock
        self.others = others
        redactor = others.redactor
        route = connection.route
        watch = ElapsedTimer(clock)
        lastUse = watch.elapsed
    }

    /// Sends a message, and waits for its answer where it has an id.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func exchange(
        _ message: JSON,
        awaiting id: RPCID?,
        limits: UpstreamLimits,
        _ admission: Admission? = nil,
        _ listener: UpstreamMessageHandler
    ) async throws -> UpstreamResponse {
        lastUse = watch.elapsed
        redactor = listener.redactor
        guard let id else {
            try await write(message, nil, within: limits.longest)
            return UpstreamResponse(status: 202, sessionID: nil, outcome: nil, size: 0)
        }
        let start = watch.elapsed
        pending[id] = Pending(listener: listener, lastSign: start)
        defer {
            pending[id] = nil
            lastUse = watch.elapsed
            // Who leaves may have been the one who read.
            wakeOne()
        }
        let longest = limits.longest
        let isWritten =
            try await withDeadline(longest, clock: clock) {
                try await self.write(message, admission, within: longest)
            } != nil
        while isWritten, let request = pending[id] {
            if let answer = request.answer { return answer }
            if let end { throw end }
            let now = watch.elapsed
            let left = min(limits.silence - (now - request.lastSign), limits.longest - (now - start))
            guard left > .zero else { break }
            _ = try await withDeadline(left, clock: clock) { try await self.hear(unless: id) }
        }
        throw Trouble.silent(seconds: Int((watch.elapsed - start).components.seconds))
    }

    /// Heeds what comes until the stream is over, or the task is cancelled.
    func follow() async throws {
        followers += 1
        defer {
            followers -= 1
            lastUse = watch.elapsed
            wakeOne()
        }
        while end == nil { try await hear(unless: nil) }
    }

    /// Whether it can be used, as far as what has come meanwhile shows.
    func isStanding(by passages: [AuthorizedRoute]) async -> Bool {
        guard passages.contains(where: { $0.route == route }) else { return false }
        await readOn()
        return end == nil
    }

    /// Whether somebody uses it, or may do so soon.
    func isWorthKeeping() async -> Bool {
        await readOn()
        return end == nil && (!pending.isEmpty || followers > 0 || watch.elapsed - lastUse < Self.lifetime)
    }

    // MARK: Reading

    /// What is there already, if nobody reads.
    private func readOn() async {
        guard !isBeingRead else { return }
        isBeingRead = true
        defer {
            isBeingRead = false
            wakeOne()
        }
        do throws(UpstreamConnection.Failure) {
            while end == nil, let bytes = try connection.receiveNow() { await take(bytes) }
        } catch { finish(.lost) }
    }

    /// Returns when something has come, to whomever, or when it is time to look who reads.
    private func hear(unless id: RPCID?) async throws {
        // It may have come before this task had its turn.
        guard end == nil, id.flatMap({ pending[$0]?.answer }) == nil else { return }
        if isBeingRead {
            lastWait += 1
            let (number, wait) = (lastWait, Promise<Void>())
            waits[number] = wait
            defer { waits[number] = nil }
            return try await wait.value()
        }
        isBeingRead = true
        defer { isBeingRead = false }
        do { await take(try await connection.receive()) } catch is UpstreamConnection.Failure { finish(.lost) }
    }

    /// Only the one that reads is here at a time: what it waits for is a large line that is read elsewhere.
    private func take(_ bytes: [UInt8]) async {
        if bytes.isEmpty {
            let rest = parser.finish()
            if !rest.isEmpty { await heed(rest) }
            return finish(.lost)
        }
        parser.append(bytes)
        while end == nil, let event = parser.next() {
            switch event {
            case .line(let line): await heed(line)
            case .tooLong: finish(.unclear("\(HTTPParseError.tooLarge(limit: Self.limit))"))
            }
        }
        // Part of an answer, to one of them.
        if parser.isInside { for id in pending.keys { pending[id]?.lastSign = watch.elapsed } }
    }

    private func heed(_ line: ArraySlice<UInt8>) async {
        do {
            let json = try await JSON.parse(line) { [redactor] in redactor.redact($0) }
            // JSON-RPC batches, as 2025-03-26 allows a server to answer.
            for json in json.array ?? [json] { heed(try RPCMessage(json), size: line.count) }
        } catch let error as JSONError {
            finish(.unclear("something else than JSON (\(error.reason.rawValue), at byte \(error.offset))"))
        } catch {
            finish(.unclear("something else than JSON-RPC (\(error))"))
        }
        wakeAll()
    }

    private func heed(_ message: RPCMessage, size: Int) {
        switch message {
        case .response(let answered, let outcome):
            // An answer without an id is to what the server could not read: whose, can be said of one alone.
            // Of two, the first counts.
            guard let id = answered ?? theOnly, pending[id]?.answer == nil else { return }
            pending[id]?.answer = UpstreamResponse(status: 200, sessionID: nil, outcome: outcome, size: size)
        case .notification(let notification) where notification.method == "notifications/progress":
            guard let id = notification.params?["progressToken"].flatMap(RPCID.init) else { return }
            pending[id]?.lastSign = watch.elapsed
            pending[id]?.listener.heed(message)
        case .notification(let notification) where notification.method == "notifications/message":
            // It says nothing of the request that it is about; what one caller's request brought about is not for another.
            if let id = theOnly { pending[id]?.listener.heed(message) }
        default: others.heed(message)
        }
    }

    /// The request that is under way, if it is one alone.
    private var theOnly: RPCID? { pending.count == 1 ? pending.keys.first : nil }

    private func finish(_ trouble: Trouble) {
        if end == nil { end = trouble }
        wakeAll()
    }

    private func wakeOne() {
        guard !isBeingRead, let number = waits.keys.min() else { return }
        waits.removeValue(forKey: number)?.settle(.success(()))
    }

    private func wakeAll() {
        for wait in waits.values { wait.settle(.success(())) }
        waits = [:]
    }

    // MARK: Writing

    /// Returns when the kernel has all of it. A line that has been begun is written to its end, by whoever comes next where
    /// its own writer was called off: half a line would take the next one with it.
    private func write(_ message: JSON, _ admission: Admission?, within limit: Duration) async throws {
        let permit = try await writing.enter()
        defer { permit.giveBack() }
        if let end { throw end == .lost ? .unwritten : end }
        do {
            do { try await flush(within: limit) } catch Trouble.outdated {
                // Half a line stands there that must not be completed.
                throw UpstreamConnection.Failure.unwritten
            }
            let line = message.bytes + [0x0A]
            unwritten = (line[...], admission)
            do { try await flush(within: limit) } catch {
                let isBegun = unwritten.bytes.count < line.count
                if !isBegun { unwritten = ([], nil) }
                if isBegun, case Trouble.outdated = error { finish(.lost) }
                throw error
            }
        } catch is UpstreamConnection.Failure {
            finish(.lost)
            throw Trouble.unwritten
        }
    }

    private func flush(within limit: Duration) async throws {
        while !unwritten.bytes.isEmpty {
            let count = try await connection.sendSome(
                unwritten.bytes,
                by: unwritten.admission,
                within: limit,
                clock: clock
            )
            unwritten.bytes = unwritten.bytes.dropFirst(count)
        }
    }
}
