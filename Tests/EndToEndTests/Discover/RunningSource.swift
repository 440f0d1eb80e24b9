import Logging
import Model
import TestSupport

@testable import Discovery

/// A Bonjour source that runs for one test, with all its events.
final class RunningSource: Sendable {
    let source: BonjourSource
    let told = Replay<SightingEvent>()

    private init(_ source: BonjourSource) { self.source = source }

    /// Runs a source on the bus of `BusSwitch` for the duration of the body.
    static func with<Value: Sendable>(
        options: DiscoveryOptions = DiscoveryOptions(denied: []),
        heartbeat: Duration? = nil,
        _ body: @escaping @Sendable (RunningSource) async throws -> Value
    ) async throws -> Value {
        var timing = AvahiEngine.Timing()
        if let heartbeat { timing.heartbeat = heartbeat }
        var logger = Logger(label: "discover", factory: { _ in SwiftLogNoOpLogHandler() })
        logger.logLevel = .critical
        let running = RunningSource(
            BonjourSource(options: options, timing: timing, clock: ContinuousClock(), logger: logger)
        )
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await running.source.run() }
            group.addTask { for await event in running.source.events { running.told.say(event) } }
            defer { group.cancelAll() }
            try await eventually("it has started") { await running.source.status().state != .off }
            return try await body(running)
        }
    }

    /// The current sightings according to the events. Stale sightings are left out until they are seen again.
    var listed: [Sighting] { Self.fold(told.soFar) }

    func sighting(_ name: String) -> Sighting? { listed.first { $0.name.text == name } }

    /// Waits for a sighting with that name that satisfies the condition.
    @discardableResult
    func awaits(
        _ name: String,
        within limit: Duration = eventLimit,
        where satisfies: (Sighting) -> Bool = { _ in true }
    ) async throws -> Sighting {
        try await eventually(within: limit, "\(name) is listed; told was \(told.soFar.suffix(5))") {
            listed.first { $0.name.text == name && satisfies($0) }
        }
    }

    func awaitsGone(_ name: String, within limit: Duration = eventLimit) async throws {
        try await eventually(within: limit, "\(name) is gone") { sighting(name) == nil }
    }

    /// Waits for an event after the first `start` ones. Returns the number of events up to it.
    @discardableResult
    func awaits(_ event: SightingEvent, after start: Int = 0, within limit: Duration = eventLimit) async throws -> Int {
        try await eventually(within: limit, "\(event) is told") {
            told.soFar.dropFirst(start).firstIndex(of: event).map { $0 + 1 }
        }
    }

    func awaitsState(_ state: SourceStatus.State, within limit: Duration = eventLimit) async throws {
        try await eventually(within: limit, "the state is \(state)") { await source.status().state == state }
    }

    private static func fold(_ events: [SightingEvent]) -> [Sighting] {
        var standing: [Sighting.ID: Sighting] = [:]
        for event in events {
            switch event {
            case .seen(let sighting): standing[sighting.id] = sighting
            case .lost(let id): standing[id] = nil
            case .sourceLost: standing = [:]
            case .sourceReconciled: break
            }
        }
        return Array(standing.values)
    }
}
