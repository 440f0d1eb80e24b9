import FoundationEssentials
package import Logging
package import Model
import ServiceLifecycle
import SystemIO

/// Tracks the Android phones of an adb server while running.
///
/// The server sends its list at each change. Each phone is then asked for its serial, which is its identity: a stream is
/// opened only on an attachment whose serial was read. The name follows.
///
/// The server is absent on a machine without adb, and the monitor never starts one unless it was told so.
package actor ADBDeviceMonitor: Service {
    /// The interval of requested lists while the server may not report a change: of a phone over TCP, and of one that
    /// is not ready.
    private static let listInterval = Duration.seconds(2)
    private static let answerTimeout = Duration.seconds(5)
    /// The time that a connect waits for a serial that is being read.
    private static let readTimeout = Duration.seconds(3)
    /// The time that a phone has to report its name before its endpoints are listed without it.
    private static let nameTimeout = Duration.seconds(1)

    /// The phones after each change, for a single consumer; ends with `run()`.
    package nonisolated let snapshots: AsyncStream<DeviceDirectory.Snapshot>

    nonisolated let address: ServerAddress
    private nonisolated let client: ADBClient
    private nonisolated let isRequired: Bool
    private nonisolated let starter: ADBServerStarter?
    private nonisolated let clock = ContinuousClock()
    private nonisolated let logger: Logger
    private nonisolated let continuation: AsyncStream<DeviceDirectory.Snapshot>.Continuation
    private nonisolated let reachable = Broadcast<Set<ADBReachablePhone>>(slow: .keepsNewest(1))

    private var instance: ADBServerInstance?
    private var table = ADBDeviceTable()
    /// The transports whose phones are being asked, each by one task.
    private var asked: Set<ADBTransportID> = []
    private var published: DeviceDirectory.Snapshot?
    private var health = ADBServerHealth()

    /// - Parameters:
    ///   - address: The address of the server, which may be absent.
    ///   - isRequired: True if the configuration names the server. Otherwise its absence is no problem.
    ///   - startsServer: True to start a server of this machine where none runs.
    ///   - logger: The logger.
    package init(address: ServerAddress, isRequired: Bool = false, startsServer: Bool = false, logger: Logger) {
        self.address = address
        self.isRequired = isRequired
        self.logger = logger
        client = ADBClient(address: address, timeout: Self.answerTimeout)
        starter = startsServer ? ADBServerStarter(address, logger: logger) : nil
        (snapshots, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// Follows each run of the server, until the service group shuts down.
    package func run() async throws {
        await cancelWhenGracefulShutdown { await self.followServers() }
        continuation.finish()
        reachable.finish()
    }

    /// The status of the source.
    package func status() -> SourceStatus { health.status(of: address, isRequired: isRequired) }

    /// The phones that can be reached, now and after each change.
    package func reachablePhones() -> AsyncStream<Set<ADBReachablePhone>> {
        reachable.subscribe(startingWith: table.reachable)
    }

    private func followServers() async {
        let watcher = address.path.map { DirectoryWatcher(path: $0) }
        var pauses = ADBServerPauses()
        while !Task.isCancelled {
            // Arm the watch before the attempt, so that a socket created after a failed attempt is not missed.
            let canWatch = watcher?.arm() != nil
            let begin = clock.now
            do { try await follow() } catch let error as ADBError { end(error) } catch {
                // Cancelled: the loop ends.
            }
            let pause = pauses.next(after: begin.duration(to: clock.now))
            if instanceIsAbsent, let starter { await starter.start() }
            await wait(pause, orChangeOf: canWatch ? watcher : nil)
        }
    }

    private var instanceIsAbsent: Bool { if case .absent = health.error { true } else { false } }

    private nonisolated func wait(_ pause: Duration, orChangeOf watcher: DirectoryWatcher?) async {
        guard let watcher else {
            try? await clock.sleep(for: pause)
            return
        }
        _ = try? await withTimeout(pause, clock: clock) { try await watcher.change() }
    }

    /// Handles one run of the server to its end. Always ends by throwing.
    private func follow() async throws {
        let instance = try await withTimeout(Self.answerTimeout, clock: clock) { [address] in
            try await ADBServerInstance(at: address)
        }
        guard let instance else {
            throw ADBError.timedOut(request: ADBRequest.trackDevices.service, limit: Self.answerTimeout)
        }
        let version = try await client.version()
        begin(instance, version)
        defer { finish(instance) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.readLists(of: instance) }
            group.addTask { try await self.requestLists(of: instance) }
            group.addTask { await instance.answerChecks { try await self.requestList(of: instance) } }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func begin(_ instance: ADBServerInstance, _ version: Int) {
        self.instance = instance
        table = ADBDeviceTable()
        asked = []
        health.begin(version: version, at: clock.now)
        logger.info("connected to the adb server", metadata: ["address": "\(address)", "version": "\(version)"])
    }

    private func finish(_ instance: ADBServerInstance) {
        instance.close()
        self.instance = nil
        table = ADBDeviceTable()
        health.phones = nil
        publish()
    }

    /// Logs once that the server is absent or fails, and again after each of its runs.
    private func end(_ error: ADBError) {
        let known = health.error
        let isLoss = health.end(error)
        guard !Task.isCancelled else { return }
        let metadata: Logger.Metadata = ["address": "\(address)", "reason": "\(error)"]
        if isLoss {
            logger.notice("lost the connection to the adb server", metadata: metadata)
        } else if known != error {
            logger.info("no adb server is used", metadata: metadata)
        }
    }

    private nonisolated func readLists(of instance: ADBServerInstance) async throws {
        var budget = ADBListBudget()
        try await withThrowingDiscardingTaskGroup { group in
            while true {
                let list = try await instance.nextList()
                for id in await apply(list, of: instance) { group.addTask { await self.ask(id, of: instance) } }
                if let pause = budget.pause(at: clock.now) { try await clock.sleep(for: pause) }
            }
        }
    }

    /// Returns the transports of phones to ask, for which no task runs.
    private func apply(
        _ list: [(record: ADBDeviceRecord, attachment: ADBServerInstance.Attachment?)],
        of instance: ADBServerInstance
    ) -> [ADBTransportID] {
        guard instance === self.instance else { return [] }
        table.apply(list, at: Date.now)
        let new = table.unread.filter { asked.insert($0).inserted }
        publish()
        return new
    }

    private nonisolated func requestLists(of instance: ADBServerInstance) async throws {
        while true {
            try await clock.sleep(for: Self.listInterval)
            if await table.needsRequests { _ = try await requestList(of: instance) }
        }
    }

    private nonisolated func requestList(of instance: ADBServerInstance) async throws -> [ADBDeviceRecord] {
        let list = try await client.devices()
        await apply(requested: list, of: instance)
        return list
    }

    private func apply(requested list: [ADBDeviceRecord], of instance: ADBServerInstance) {
        if instance === self.instance, table.apply(requested: list) { publish() }
    }

    private func publish() {
        let snapshot = table.snapshot
        health.phones = instance.map { _ in snapshot.devices }
        health.sharedSerials = table.sharedSerials
        reachable.send(table.reachable)
        guard snapshot != published else { return }
        published = snapshot
        continuation.yield(snapshot)
    }
}

/// The questions to phones.
extension ADBDeviceMonitor {
    /// Asks the phone on a transport until nothing is unknown or the transport is gone. A phone that does not answer is
    /// asked again, with pauses.
    private nonisolated func ask(_ id: ADBTransportID, of instance: ADBServerInstance) async {
        var backoff = Backoff(from: .seconds(1), to: .seconds(60))
        while let question = await nextQuestion(to: id, of: instance) {
            let isAnswered: Bool
            switch question {
            case .values(let attachment):
                let phone = (try? await client.output(of: ADBPhone.command, on: id)).flatMap { ADBPhone(output: $0) }
                isAnswered = await set(phone, of: attachment, in: instance)
            case .name(let attachment):
                let output = try? await withTimeout(Self.nameTimeout, clock: clock) { [client] in
                    try await client.output(of: ADBPhone.nameCommand, on: id)
                }
                await setName(output ?? nil, of: attachment, in: instance)
                isAnswered = true
            }
            guard !Task.isCancelled else { return }
            if isAnswered { continue }
            await wait(backoff.next(), while: question, of: id)
        }
    }

    private func nextQuestion(to id: ADBTransportID, of instance: ADBServerInstance) -> ADBDeviceTable.Question? {
        guard instance === self.instance else { return nil }
        let question = table.question(of: id)
        if question == nil { asked.remove(id) }
        return question
    }

    /// Returns false if the phone did not answer.
    private func set(
        _ phone: ADBPhone?,
        of attachment: ADBServerInstance.Attachment,
        in instance: ADBServerInstance
    ) async -> Bool {
        // Another phone may have answered, if the first one has left its transport.
        guard instance === self.instance, instance.isCurrent(attachment) else {
            // The list that says so is about to be applied.
            try? await clock.sleep(for: .milliseconds(5))
            return true
        }
        if table.set(phone, of: attachment, at: Date.now) { publish() }
        return phone != nil
    }

    private func setName(_ output: String?, of attachment: ADBServerInstance.Attachment, in instance: ADBServerInstance)
    {
        guard instance === self.instance, instance.isCurrent(attachment) else { return }
        if table.setName(output: output, of: attachment) { publish() }
    }

    /// Waits until the pause is over, or until the phone has left its transport.
    private nonisolated func wait(_ pause: Duration, while question: ADBDeviceTable.Question, of id: ADBTransportID)
        async
    {
        let changes = reachable.subscribe(startingWith: [])
        _ = try? await withTimeout(pause, clock: clock) {
            for await _ in changes where await self.table.question(of: id) != question { return }
        }
    }
}

extension ADBDeviceMonitor: ADBTransportSource {
    /// - Throws: `DialError` with the reason `deviceAbsent`.
    @discardableResult
    package func transport(of udid: UDID) async throws(DialError) -> ADBTransport {
        if table.isPending(udid), table.attachment(of: udid) == nil { await waitForAnswer(of: udid) }
        guard let instance else {
            let why = health.error?.description ?? "the adb server has not been reached yet; try again in a moment"
            throw DialError(.deviceAbsent, "phone \(udid) cannot be reached: \(why)")
        }
        guard let (attachment, phone) = table.attachment(of: udid) else { throw absence(of: udid) }
        return ADBTransport(
            attachment.id,
            at: instance.address,
            of: instance,
            name: phone.name ?? phone.model ?? SanitizedText("phone \(udid)"),
            isCurrent: { instance.isCurrent(attachment) },
            linkCheck: { instance.check(attachment, $0) }
        )
    }

    package nonisolated func isListening(_ socket: DeviceSocket, of udid: UDID) async -> Bool? {
        let shell = PhoneShell { try await self.open($0, of: udid) }
        guard let output = try? await shell.output(of: PhoneSockets.command(listing: socket)) else { return nil }
        return PhoneSockets.lists(socket, in: output)
    }

    /// Opens a connection for one service of a phone, such as a command of its shell whose output has no end.
    ///
    /// - Throws: `DialError` if the phone cannot be reached; `ADBError`; `CancellationError`.
    nonisolated func open(_ request: ADBRequest, of udid: UDID) async throws -> ADBConnection {
        let transport = try await transport(of: udid)
        let connection = try await withTimeout(Self.answerTimeout, clock: clock) { [address] in
            let connection = try await ADBConnection(to: address)
            try await connection.request(.transport(transport.id))
            try await connection.request(request)
            return connection
        }
        guard let connection else { throw ADBError.timedOut(request: request.service, limit: Self.answerTimeout) }
        guard transport.isCurrent() else { throw DialError.absent(udid) }
        return connection
    }

    /// Makes a request of which the phone itself sends an answer or a text, which `read` reads.
    ///
    /// - Throws: `DialError` if the phone cannot be reached; `ADBError`; `CancellationError`.
    nonisolated func perform<Answer: Sendable>(
        _ request: ADBRequest,
        on udid: UDID,
        _ read: @escaping @Sendable (ADBConnection, ADBRequest) async throws -> Answer
    ) async throws -> Answer {
        let connection = try await open(request, of: udid)
        let answer = try await withTimeout(Self.answerTimeout, clock: clock) { try await read(connection, request) }
        guard let answer else { throw ADBError.timedOut(request: request.service, limit: Self.answerTimeout) }
        return answer
    }

    /// Returns whether a phone accepts requests now.
    func isReachable(_ udid: UDID) -> Bool { table.attachment(of: udid) != nil }

    private func absence(of udid: UDID) -> DialError {
        guard let device = table.snapshot.devices.first(where: { $0.udid == udid }), !device.isReady else {
            return .absent(udid)
        }
        return DialError(
            .deviceAbsent,
            "phone \(udid) \(device.state.obstacle ?? "cannot be reached"): \(device.state.hint ?? "try again")"
        )
    }

    private func waitForAnswer(of udid: UDID) async {
        let changes = reachable.subscribe(startingWith: [])
        _ = try? await withTimeout(Self.readTimeout, clock: clock) {
            for await _ in changes where await !self.table.isPending(udid) { return }
        }
    }
}
