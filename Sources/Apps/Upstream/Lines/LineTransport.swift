import AccessControl
import Model
import SystemIO

/// A stream to an app with one message per line, and the requests in flight on it.
///
/// There is no reader task. One of the waiting requests reads for all, and hands the role over when its response has
/// arrived. Without a waiting request, data is read before the next message is sent. Releasing the last reference
/// closes the stream.
actor LineTransport: UpstreamTransport {
    /// The size limit of one message in bytes.
    private static let limit = 32 * 1_048_576
    /// The idle time before the stream is closed, in seconds. Each handshake may require a person's confirmation (iMCP
    /// asks).
    private static let lifetime = Duration.seconds(300)
    /// The interval between two checks for the idle time, in seconds.
    static let checkInterval = Duration.seconds(2)

    /// A request in flight.
    private struct Pending {
        let handler: UpstreamMessageHandler
        /// The time of the last activity for this request.
        var lastActivity: Duration
        var response: UpstreamResponse?
    }

    nonisolated let route: Route
    private let connection: AppConnection
    private let clock: any Clock<Duration>
    private let watch: ElapsedTimer
    /// Handles messages that belong to no request.
    private let defaultHandler: UpstreamMessageHandler

    private var decoder = LineDecoder(limit: LineTransport.limit)
    private var pending: [RPCID: Pending] = [:]
    /// Indicates whether a task reads; the others wait for a wakeup.
    private var hasReader = false
    private var waiters: [Int: Promise<Void>] = [:]
    private var lastWaiter = 0
    /// The number of tasks that follow all messages.
    private var followers = 0
    /// The reason why the stream ended.
    private var end: AppError?
    /// Indicates whether the server has sent a message. Before that, other text shows that it speaks another protocol.
    private var hasSpoken = false
    private var redactor: TokenRedactor
    private let pool: ConnectionPool
    /// The bytes of a large line.
    private var reservation: LargeResponseReservation?
    private let writeSemaphore = AsyncSemaphore(permits: 1)
    /// The unwritten rest of a partly written line, and the admission of that line.
    private var unwritten: (bytes: ArraySlice<UInt8>, admission: DeliveryAuthorization?) = ([], nil)
    private var lastUse: Duration

    init(_ connection: AppConnection, of pool: ConnectionPool, handler: UpstreamMessageHandler) {
        self.connection = connection
        self.pool = pool
        clock = pool.clock
        defaultHandler = handler
        redactor = handler.redactor
        route = connection.route
        watch = ElapsedTimer(clock)
        lastUse = watch.elapsed
    }

    /// Sends a message and waits for the response if the message has an ID. Without a message, follows the messages of
    /// the server, because there is no separate stream for them.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func exchange(
        _ message: UpstreamMessage,
        by routes: [AuthorizedRoute],
        handler: UpstreamMessageHandler
    ) async throws -> UpstreamResponse {
        // Another stream cannot replace this one, because its handshake has not been done.
        guard routes.contains(where: { $0.route == route }) else { throw AppError.unwritten }
        guard let json = message.json else {
            message.opened?()
            try await follow()
            return UpstreamResponse(outcome: nil)
        }
        let limits = message.limits
        lastUse = watch.elapsed
        redactor = handler.redactor
        guard let id = message.id else {
            try await write(json, nil, within: limits.total)
            return UpstreamResponse(status: 202, outcome: nil)
        }
        let start = watch.elapsed
        pending[id] = Pending(handler: handler, lastActivity: start)
        defer {
            pending[id] = nil
            lastUse = watch.elapsed
            // The leaving task may have been the reader.
            wakeOne()
        }
        let longest = limits.total
        let isWritten =
            try await withTimeout(longest, clock: clock) {
                try await self.write(json, message.admission, within: longest)
            } != nil
        if isWritten { message.opened?() }
        while isWritten, let request = pending[id] {
            if let response = request.response { return response }
            if let end { throw end }
            let now = watch.elapsed
            let left = min(limits.idle - (now - request.lastActivity), limits.total - (now - start))
            guard left > .zero else { break }
            _ = try await withTimeout(left, clock: clock) { try await self.waitForData(unless: id) }
        }
        throw AppError.timedOut(seconds: (watch.elapsed - start).roundedSeconds)
    }

    /// Handles messages until the end of the stream or the cancellation of the task.
    private func follow() async throws {
        followers += 1
        defer {
            followers -= 1
            lastUse = watch.elapsed
            wakeOne()
        }
        while end == nil { try await waitForData(unless: nil) }
    }

    /// Returns whether the stream is usable, after reading the available bytes.
    func isUsable(over routes: [AuthorizedRoute]) async -> Bool {
        guard routes.contains(where: { $0.route == route }) else { return false }
        await readAvailable()
        return end == nil
    }

    /// Returns whether the stream is in use or was used recently.
    func shouldStayOpen() async -> Bool {
        await readAvailable()
        return end == nil && (!pending.isEmpty || followers > 0 || watch.elapsed - lastUse < Self.lifetime)
    }

    // MARK: Reading

    /// Reads the available bytes if no task reads.
    private func readAvailable() async {
        guard !hasReader else { return }
        hasReader = true
        defer {
            hasReader = false
            wakeOne()
        }
        do throws(ExchangeError) {
            while end == nil, let bytes = try connection.receiveNow() { await feed(bytes) }
        } catch { finish(.responseLost) }
    }

    /// Returns when data has arrived for any request, or when a new reader is needed.
    private func waitForData(unless id: RPCID?) async throws {
        // The response may have arrived before this task ran.
        guard end == nil, id.flatMap({ pending[$0]?.response }) == nil else { return }
        if hasReader {
            lastWaiter += 1
            let (number, wait) = (lastWaiter, Promise<Void>())
            waiters[number] = wait
            defer { waiters[number] = nil }
            return try await wait.value()
        }
        hasReader = true
        defer { hasReader = false }
        do { await feed(try await connection.receive()) } catch is ExchangeError { finish(.responseLost) }
    }

    /// Only the reader runs this. It may suspend while a large line is parsed elsewhere.
    private func feed(_ bytes: [UInt8]) async {
        if bytes.isEmpty {
            let rest = decoder.finish()
            if !rest.isEmpty { await handle(rest) }
            do { try reservation?.check() } catch { return finish(error.appError) }
            return finish(.responseLost)
        }
        decoder.append(bytes)
        while end == nil, let event = decoder.next() {
            switch event {
            case .line(let line): await handle(line)
            case .tooLong: finish(ExchangeError.tooLarge(limit: Self.limit).appError)
            }
        }
        do {
            reservation = try await pool.reserve(
                decoder.partialCount,
                for: reservation,
                over: connection,
                within: LargeResponseBudget.stallLimit
            )
        } catch { finish(AppError(error)) }
        // A partial line counts as activity for all requests, since the one it answers is unknown.
        if decoder.partialCount > 0 { for id in pending.keys { pending[id]?.lastActivity = watch.elapsed } }
    }

    private func handle(_ line: ArraySlice<UInt8>) async {
        let decoder = ServerMessageDecoder(redactor: redactor) { [pool] in pool.record($0) }
        do throws(AppError) {
            for message in try await decoder.messages(in: line) { handle(message, size: line.count) }
            hasSpoken = true
        } catch {
            // A line of a log among the messages is skipped. A damaged message may be the response that a request awaits.
            if !hasSpoken || ServerMessageDecoder.isMessage(line) { finish(error) } else { pool.record(.foreignText) }
        }
        wakeAll()
    }

    private func handle(_ message: RPCMessage, size: Int) {
        switch message {
        case .response(let answered, let outcome):
            // A response without an ID answers an unreadable request. It is assigned only if a single request is in
            // flight. The first of two responses counts.
            guard let id = answered ?? soleRequestID, pending[id]?.response == nil else { return }
            let reservation = size > LargeResponseBudget.largeSize ? self.reservation : nil
            reservation?.complete()
            pending[id]?.response = UpstreamResponse(outcome: outcome, size: size, reservation: reservation)
        case .notification(let notification) where notification.method == "notifications/progress":
            guard let id = notification.params?["progressToken"].flatMap(RPCID.init) else { return }
            pending[id]?.lastActivity = watch.elapsed
            pending[id]?.handler.handle(message)
        case .notification(let notification) where notification.method == "notifications/message":
            // A log message names no request. It is forwarded only for a single request in flight, because another
            // client's messages are private.
            if let id = soleRequestID { pending[id]?.handler.handle(message) }
        default: defaultHandler.handle(message)
        }
    }

    /// The ID of the only request in flight; nil if there are none or several.
    private var soleRequestID: RPCID? { pending.count == 1 ? pending.keys.first : nil }

    private func finish(_ failure: AppError) {
        if end == nil { end = failure }
        wakeAll()
    }

    private func wakeOne() {
        guard !hasReader, let number = waiters.keys.min() else { return }
        waiters.removeValue(forKey: number)?.complete(.success(()))
    }

    private func wakeAll() {
        for wait in waiters.values { wait.complete(.success(())) }
        waiters = [:]
    }

    // MARK: Writing

    /// Writes a line. A partly written line of a cancelled writer is completed first, because half a line would corrupt
    /// the next one.
    private func write(_ message: JSON, _ admission: DeliveryAuthorization?, within limit: Duration) async throws {
        let permit = try await writeSemaphore.acquire()
        defer { permit.release() }
        if let end { throw end == .responseLost ? .unwritten : end }
        do {
            do { try await flush(within: limit) } catch ExchangeError.notPermitted {
                // A partly written line must not be completed.
                throw ExchangeError.unwritten
            }
            let line = message.bytes + [0x0A]
            unwritten = (line[...], admission)
            do { try await flush(within: limit) } catch {
                let isPartlyWritten = unwritten.bytes.count < line.count
                if !isPartlyWritten { unwritten = ([], nil) }
                if isPartlyWritten, case ExchangeError.notPermitted = error { finish(.responseLost) }
                throw error
            }
        } catch let failure as ExchangeError {
            if failure == .unwritten { finish(.responseLost) }
            throw failure.appError
        }
    }

    private func flush(within limit: Duration) async throws {
        while !unwritten.bytes.isEmpty {
            let count = try await connection.sendSome(
                unwritten.bytes,
                by: unwritten.admission?.permission,
                within: limit,
                clock: clock
            )
            unwritten.bytes = unwritten.bytes.dropFirst(count)
        }
    }
}
