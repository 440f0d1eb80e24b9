package import Model
import ServiceLifecycle
import SystemIO

/// The source of sightings of apps that register themselves.
///
/// The registry has received the events of an operation when the operation returns. It receives all events in the order
/// of the operations.
package actor RegistrationSource: Service {
    private var table: RegistrationTable
    private let report: @Sendable (SightingEvent) async -> Void
    private let newID: @Sendable () -> String
    private let clock: any Clock<Duration>
    private let timer: ElapsedTimer
    private var isReporting = false
    /// The operations that wait for the reporting one.
    private var waiting: [CheckedContinuation<Void, Never>] = []
    /// Wakes `run()`, because there was no deadline before.
    private var wakeUp: AsyncStream<Void>.Continuation?

    /// - Parameters:
    ///   - kinds: The kinds that can be registered.
    ///   - clock: The clock of the heartbeats.
    ///   - newID: Returns a random ID.
    ///   - report: Passes an event to the registry.
    package init(
        kinds: [EndpointKind],
        clock: any Clock<Duration> = ContinuousClock(),
        newID: @escaping @Sendable () -> String = { randomID() },
        report: @escaping @Sendable (SightingEvent) async -> Void
    ) {
        table = RegistrationTable(kinds: kinds)
        self.clock = clock
        self.newID = newID
        self.report = report
        timer = ElapsedTimer(clock)
    }

    /// Returns 80 random bits as text.
    package static func randomID() -> String {
        Base32.encode((0..<10).map { _ in UInt8.random(in: .min ... .max) }).lowercased()
    }

    /// Registers an app. An earlier registration of the same app with the same grant ends.
    ///
    /// - Throws: `RegistrationError`.
    package func register(
        _ spec: RegistrationSpec,
        from registrant: RegistrationTable.Registrant
    ) async throws(RegistrationError) -> RegistrationTable.Entry {
        let entry = try table.register(spec, from: registrant, as: newID(), at: timer.elapsed)
        wakeUp?.yield()
        await reportEvents()
        return entry
    }

    /// Keeps a registration for 90 s more.
    ///
    /// - Throws: `RegistrationError.notFound`, `.moved`.
    @discardableResult
    package func heartbeat(
        _ id: String,
        from registrant: RegistrationTable.Registrant
    ) throws(RegistrationError) -> RegistrationTable.Entry {
        try table.heartbeat(id, from: registrant, at: timer.elapsed)
    }

    /// Ends a registration. Its endpoint is offline on return.
    ///
    /// - Throws: `RegistrationError.notFound`.
    package func end(_ id: String, of grant: String) async throws(RegistrationError) {
        try table.end(id, of: grant)
        await reportEvents()
    }

    /// Ends the registrations of a grant. Their endpoints are offline on return.
    package func endAll(of grant: String) async {
        table.endAll(of: grant)
        await reportEvents()
    }

    /// Ends registrations without a heartbeat.
    package func run() async throws {
        await cancelWhenGracefulShutdown { await self.expire() }
    }

    private func expire() async {
        while !Task.isCancelled {
            let (wakes, wakeUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            self.wakeUp = wakeUp
            table.expire(at: timer.elapsed)
            await reportEvents()
            if let deadline = table.deadline {
                try? await clock.sleep(for: deadline - timer.elapsed)
            } else {
                for await _ in wakes { break }
            }
        }
    }

    /// Passes every event to the registry, in order. One operation reports at a time, for all.
    private func reportEvents() async {
        if isReporting { return await withCheckedContinuation { waiting.append($0) } }
        isReporting = true
        while let event = table.nextEvent() { await report(event) }
        isReporting = false
        waiting.forEach { $0.resume() }
        waiting = []
    }
}
