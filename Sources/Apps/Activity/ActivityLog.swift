package import AccessControl
package import FoundationEssentials
package import Model
package import Registry
import ServiceLifecycle
import Synchronization
import SystemIO

/// The bounded history of the calls of apps' tools, and of the changes of endpoints between them. It is in memory only.
///
/// A call takes one lock at its beginning and one at its end. Texts are searched for secrets when a client reads them, and
/// images are kept as they were delivered, in base64, and decoded then. `ActivityHistory` shares the places among the clients.
package final class ActivityLog: Service {
    /// A call in progress, for `end`.
    package struct RunningCall: Sendable {
        fileprivate let id: UInt64
        fileprivate var start: ContinuousClock.Instant
        fileprivate let device: UDID?
        fileprivate let grant: String?
        fileprivate let secrets: [[UInt8]]
    }

    fileprivate struct App {
        let name: SanitizedText
        let device: UDID?
        let approvedApp: SanitizedText?
        let launchID: SanitizedText?
        let state: Endpoint.State
    }

    fileprivate struct State {
        var calls: ActivityHistory
        var changes: ActivityHistory
        var newest: UInt64 = 0
        var revision: UInt64 = 0
        var apps: [EndpointID: App] = [:]
        var usage: UsageCounter
        var subscribers: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastSubscriber = 0
    }

    /// The number of kept calls. Changes of endpoints do not take their places.
    package let limit: Int
    private let secrets: @Sendable () -> [[UInt8]]
    private let registry: EndpointRegistry
    private let now: @Sendable () -> Date
    private let state: Mutex<State>

    /// Creates an empty log.
    ///
    /// - Parameters:
    ///   - limit: The number of kept calls, at least 1.
    ///   - pictureLimit: The memory for pictures in bytes.
    ///   - registry: The endpoints of this host.
    ///   - secrets: Returns the secrets that the log must not contain.
    ///   - now: Returns the time of the wall clock.
    package init(
        limit: Int,
        pictureLimit: Int,
        registry: EndpointRegistry,
        secrets: @escaping @Sendable () -> [[UInt8]] = { [] },
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.limit = limit
        self.registry = registry
        self.secrets = secrets
        self.now = now
        state = Mutex(
            State(
                calls: ActivityHistory(capacity: limit, pictureLimit: pictureLimit),
                changes: ActivityHistory(capacity: limit),
                usage: UsageCounter(startingAt: now())
            )
        )
    }
}

/// The calls.
extension ActivityLog {
    /// Records the beginning of a call.
    ///
    /// - Parameters:
    ///   - tool: The tool.
    ///   - arguments: The arguments as the client sent them.
    ///   - id: The endpoint.
    ///   - principal: The client.
    ///   - agent: The program of the client, as it calls itself.
    ///   - trace: The ID of the client's trace; nil without one.
    ///   - isWaiting: True if the call waits for a lease first, until `start`.
    /// - Returns: The call, to pass to `end`.
    package func begin(
        _ tool: String,
        _ arguments: JSONObject,
        at id: EndpointID,
        for principal: Principal,
        agent: SanitizedText? = nil,
        trace: String? = nil,
        isWaiting: Bool = false
    ) -> RunningCall {
        let (known, client, date) = (secrets(), ActivityEntry.Client(principal, agent), now())
        let texts = ActivityTexts(tool, arguments, secrets: known)
        let (number, device) = state.withLock { state in
            let app = state.apps[id]
            let call = ActivityEntry.Call(
                device: app?.device,
                client: client,
                trace: trace,
                outcome: isWaiting ? .waiting : .running
            )
            let name = app?.name ?? SanitizedText(id.text)
            state.append(\.calls, .call(call), texts, of: ActivityHistory.Holder(principal), at: id, name, date)
            return (state.newest, app?.device)
        }
        return RunningCall(id: number, start: .now, device: device, grant: client.grant, secrets: known)
    }

    /// Records that a call has waited for its lease and now runs.
    ///
    /// - Returns: The call, to pass to `end`.
    package func start(_ call: RunningCall) -> RunningCall {
        var started = call
        started.start = .now
        state.withLock { state in
            state.revision += 1
            let revision = state.revision
            let wait = call.start.duration(to: started.start)
            guard state.calls.update(call.id, { $0.start(after: wait, revision: revision) }) else { return }
            for subscriber in state.subscribers.values { subscriber.yield() }
        }
        return started
    }

    /// Records the end of a call.
    ///
    /// - Parameters:
    ///   - call: The call.
    ///   - result: The result that the client gets, or the error.
    package func end(_ call: RunningCall, _ result: Result<JSONObject, any Error>) {
        let outcome = ActivityEntry.Outcome(result)
        let excerpt = ActivityTexts.Excerpt(result, secrets: call.secrets)
        let picture = (try? result.get()).flatMap(ActivityPicture.init)
        let (milliseconds, date) = (call.start.duration(to: .now).milliseconds, now())
        state.withLock { state in
            state.usage.record(isFailure: outcome.isFailure, device: call.device, grant: call.grant, at: date)
            state.revision += 1
            let revision = state.revision
            let isKept = state.calls.update(call.id) { record in
                record.end(outcome, excerpt, picture, after: milliseconds, revision: revision)
            }
            guard isKept else { return }
            for subscriber in state.subscribers.values { subscriber.yield() }
        }
    }

    /// Records a call that the broker refuses before it reaches the proxy of apps.
    package func refuse(
        _ tool: String,
        _ arguments: JSONObject,
        at id: EndpointID,
        for principal: Principal,
        as error: AppError
    ) {
        end(begin(tool, arguments, at: id, for: principal), .failure(error))
    }

    /// Runs a call and records it.
    package func record(
        _ call: RunningCall,
        _ body: () async throws -> JSONObject
    ) async throws -> JSONObject {
        let result: Result<JSONObject, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        end(call, result)
        return try result.get()
    }
}

extension ActivityLog.State {
    fileprivate mutating func append(
        _ history: WritableKeyPath<Self, ActivityHistory>,
        _ content: ActivityEntry.Content,
        _ texts: ActivityTexts = ActivityTexts(),
        of holder: ActivityHistory.Holder,
        at id: EndpointID,
        _ app: SanitizedText,
        _ date: Date
    ) {
        newest += 1
        revision += 1
        let entry = ActivityEntry(id: newest, at: date, endpoint: id, app: app, content: content)
        let approvedApp = apps[id]?.approvedApp
        self[keyPath: history].append(
            ActivityRecord(entry: entry, texts: texts, holder: holder, approvedApp: approvedApp, revision: revision)
        )
        for subscriber in subscribers.values { subscriber.yield() }
    }
}

extension ActivityHistory.Holder {
    /// The client of a call. The names that a client gives itself make no difference.
    fileprivate init(_ principal: Principal) {
        if let grant = principal.grant {
            self = .grant(grant.id)
        } else if let member = principal.member {
            self = .host(member.host)
        } else {
            self = .user(principal.leaseHolder.name)
        }
    }
}

/// The changes of endpoints.
extension ActivityLog {
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            // The registry drops a slow subscriber; the loop then subscribes again.
            while !Task.isCancelled {
                let (endpoints, changes) = await registry.changes()
                state.withLock { state in
                    for endpoint in endpoints { state.apps[endpoint.id] = App(endpoint) }
                }
                for await change in changes { record(change) }
            }
        }
    }

    private func record(_ change: EndpointChange) {
        let (endpoint, date) = (change.endpoint, now())
        state.withLock { state in
            let before = state.apps[endpoint.id]
            state.apps[endpoint.id] = change.kind == .removed ? nil : App(endpoint)
            // Any machine of the network can announce apps, so only approved ones are a part of the history.
            guard endpoint.approval == .approved, let text = Self.text(of: change, before) else { return }
            let name = change.kind == .removed ? "removed" : endpoint.state.rawValue
            let content = ActivityEntry.Content.change(text: text, state: name)
            state.append(
                \.changes,
                content,
                of: .endpoint(endpoint.id),
                at: endpoint.id,
                endpoint.activityName,
                date
            )
        }
    }

    private static func text(of change: EndpointChange, _ before: App?) -> String? {
        let state = change.endpoint.state
        if change.kind == .removed { return "\(before?.state.rawValue ?? state.rawValue) -> removed" }
        guard let before else { return "new -> \(state.rawValue)" }
        if before.state != state { return "\(before.state.rawValue) -> \(state.rawValue)" }
        let isRelaunch = before.launchID != nil && change.endpoint.launchID != before.launchID
        return isRelaunch && change.endpoint.launchID != nil ? "\(state.rawValue), launched again" : nil
    }
}

extension ActivityLog.App {
    fileprivate init(_ endpoint: Endpoint) {
        self.init(
            name: endpoint.activityName,
            device: endpoint.location.udid,
            approvedApp: endpoint.approvedApp,
            launchID: endpoint.launchID,
            state: endpoint.state
        )
    }
}

extension Endpoint {
    fileprivate var activityName: SanitizedText { app.isEmpty ? name : app }
}

/// Reading.
extension ActivityLog {
    /// Returns the kept entries, oldest first, as a client may see them. An owner sees all. Another client sees the calls
    /// with its own grant, and the changes of the endpoints that it may see.
    ///
    /// - Returns: The entries, and the number of the last change of any entry.
    package func entries(for principal: Principal) async -> (entries: [ActivityRecord], revision: UInt64) {
        let (calls, changes, revision) = state.withLock { ($0.calls.elements, $0.changes.elements, $0.revision) }
        let visible = (calls + changes).filter { $0.isVisible(to: principal) }.sorted { $0.entry.id < $1.entry.id }
        return (read(visible), revision)
    }

    /// Returns entries with their texts, which are kept for the next reader.
    private func read(_ records: [ActivityRecord]) -> [ActivityRecord] {
        let known = secrets()
        var (records, changed) = (records, [ActivityRecord]())
        for index in records.indices where records[index].isUnread {
            records[index].read(known)
            changed.append(records[index])
        }
        state.withLock { state in
            for record in changed { _ = state.calls.update(record.entry.id) { $0.adopt(record) } }
        }
        return records
    }

    /// Returns the call of an entry with its picture; nil if there is none that the client may see.
    package func record(_ id: UInt64, for principal: Principal) -> ActivityRecord? {
        let record = state.withLock { $0.calls[id] }
        return record.flatMap { $0.isVisible(to: principal) ? $0 : nil }
    }

    /// Keeps what was computed of a picture, unless the picture was dropped meanwhile.
    func keep(_ picture: ActivityPicture, of record: ActivityRecord) {
        state.withLock { state in
            _ = state.calls.update(record.entry.id) { kept in
                if kept.picture != nil { kept.picture = picture }
            }
        }
    }

    /// Streams a signal now and after changes of entries. Several changes may cause one signal.
    package func changes() -> AsyncStream<Void> {
        let (stream, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastSubscriber += 1
            state.subscribers[state.lastSubscriber] = signal
            return state.lastSubscriber
        }
        signal.onTermination = { [weak self] _ in self?.state.withLock { $0.subscribers[number] = nil } }
        signal.yield()
        return stream
    }

    /// The calls of the last 24 hours.
    package var usage: UsageCounter { state.withLock { $0.usage } }
}

extension Duration {
    /// The whole milliseconds, rounded down.
    var milliseconds: Int { Int(components.seconds) * 1_000 + Int(components.attoseconds / 1_000_000_000_000_000) }
}
