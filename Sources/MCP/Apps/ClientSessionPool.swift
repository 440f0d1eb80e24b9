import AccessControl
import JSON
import Model
import Synchronization

/// The lines that are one caller's alone: which there are, which of them are used, and which make room.
///
/// Such a line is a session at an app with what its caller can do for the app, so that the app may ask that caller and cannot
/// ask another one.
struct ClientSessionPool: Sendable {
    struct Key: Hashable, Sendable {
        let endpoint: EndpointID
        /// The same user or grant.
        let holder: String
        /// The same client of it, or clients that can do the same.
        let client: String
        /// Which of several, where it is not one client: each is for one request at a time.
        var number = 0
    }

    /// At one app, and altogether; how long one is kept that nobody uses.
    static let limitOfOne = 16
    static let limit = 64
    static let lifetime = Duration.seconds(600)

    private struct Entry: Sendable {
        let line: UpstreamSession
        var users = 0
        var lastUsed: Duration
    }

    private var entries: [Key: Entry] = [:]

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }

    /// Takes the line under that key, which is made if there is none; `leave` when done.
    ///
    /// - Parameters:
    ///   - key: Whose.
    ///   - isShared: Whether several requests may have it at the same time; else it is under a key of another number where
    ///     others have it.
    ///   - now: Since when.
    ///   - make: A new one.
    /// - Returns: The line, under which key it is, and what had to make room, to be retired.
    /// - Throws: `Trouble.busy` when there are too many, all of them used.
    mutating func enter(
        _ key: Key,
        isShared: Bool = true,
        at now: Duration,
        _ make: () -> UpstreamSession
    ) throws(Trouble) -> (key: Key, line: UpstreamSession, retired: [(EndpointID, UpstreamSession)]) {
        var (key, retired) = (key, [(EndpointID, UpstreamSession)]())
        while !isShared, let taken = entries[key], taken.users > 0 { key.number += 1 }
        if entries[key] == nil {
            if entries.keys.count(where: { $0.endpoint == key.endpoint }) >= Self.limitOfOne {
                retired.append(try makeRoom { $0.endpoint == key.endpoint })
            } else if entries.count >= Self.limit {
                retired.append(try makeRoom { _ in true })
            }
        }
        var entry = entries[key] ?? Entry(line: make(), lastUsed: now)
        entry.users += 1
        entry.lastUsed = now
        entries[key] = entry
        return (key, entry.line, retired)
    }

    mutating func leave(_ key: Key, _ line: UpstreamSession, at now: Duration) {
        guard entries[key]?.line === line else { return }
        entries[key]?.users -= 1
        entries[key]?.lastUsed = now
    }

    /// Takes out one that turned out to be of no use.
    mutating func remove(_ key: Key, _ line: UpstreamSession) {
        if entries[key]?.line === line { entries[key] = nil }
    }

    /// Takes out what nobody has used for long.
    mutating func expire(at now: Duration) -> [(EndpointID, UpstreamSession)] {
        let old = entries.filter { $0.value.users == 0 && now - $0.value.lastUsed >= Self.lifetime }
        for key in old.keys { entries[key] = nil }
        return old.map { ($0.key.endpoint, $0.value.line) }
    }

    /// Takes out everything of an endpoint that is forgotten.
    mutating func forget(_ endpoint: EndpointID) -> [UpstreamSession] {
        let all = entries.filter { $0.key.endpoint == endpoint }
        for key in all.keys { entries[key] = nil }
        return all.map(\.value.line)
    }

    private mutating func makeRoom(_ isMeant: (Key) -> Bool) throws(Trouble) -> (EndpointID, UpstreamSession) {
        let idle = entries.filter { $0.value.users == 0 && isMeant($0.key) }
        guard let oldest = idle.min(by: { $0.value.lastUsed < $1.value.lastUsed }) else { throw .busy }
        entries[oldest.key] = nil
        return (oldest.key.endpoint, oldest.value.line)
    }
}

/// Lines that are one caller's alone.
extension AppProxy {
    /// What apps may ask during, and what counts for one session; everything else goes over the line of everybody's.
    private static let personal: Set = ["tools/call", "prompts/get", "resources/read", "logging/setLevel"]

    /// Asks over the caller's own line where the app may have questions to it, else over everybody's.
    ///
    /// - Throws: `Trouble`, `CancellationError`.
    func ask(
        _ request: MCPRequest,
        of endpoint: Endpoint,
        for caller: AgentCaller,
        over line: UpstreamSession,
        by admission: Admission,
        _ traits: ToolAnnotations
    ) async throws -> AppReply {
        guard let wayBack = request.wayBack, Self.personal.contains(request.method),
            let (key, own) = try await enter(wayBack, endpoint, caller, line, admission.passages)
        else { return try await line.ask(request, of: endpoint, by: admission, traits) }
        defer { owns.withLock { $0.leave(key, own, at: watch.elapsed) } }
        return try await own.ask(request, of: endpoint, by: admission, traits)
    }

    /// - Returns: Nil when the app has no sessions, without which it can ask nobody.
    private func enter(
        _ wayBack: ClientRequester,
        _ endpoint: Endpoint,
        _ caller: AgentCaller,
        _ line: UpstreamSession,
        _ passages: [AuthorizedRoute]
    ) async throws -> (ClientSessionPool.Key, UpstreamSession)? {
        let known = try await line.meet(endpoint, by: passages)
        // A server of both eras asks a client of the handshake's as it would without us; one of 2026-07-28 by its results.
        guard case .http(let path) = known.place,
            await line.mayHaveSessions(known, speaking: wayBack.takesResults)
        else { return nil }
        let client = ClientSessionPool.Key(endpoint: endpoint.id, holder: caller.holder, client: wayBack.key)
        let handshake = ClientSessionParameters(path: path, revision: wayBack.revision, faculties: wayBack.faculties)
        let (isFirst, entered) = try owns.withLock { owns throws(Trouble) in
            (
                owns.isEmpty,
                try owns.enter(client, isShared: wayBack.isOneClient, at: watch.elapsed) {
                    makeLine(to: endpoint.id, own: handshake)
                }
            )
        }
        let (key, own, retired) = entered
        if isFirst { send(.retire) }
        for (id, line) in retired { retire(line, of: id) }
        do {
            if try await own.meet(endpoint, by: passages).sessionID != nil { return (key, own) }
        } catch Trouble.noMCP {
        } catch {
            owns.withLock { $0.leave(key, own, at: watch.elapsed) }
            throw error
        }
        owns.withLock { $0.remove(key, own) }
        await line.noteNoSessions()
        return nil
    }

    /// Gives up what nobody has used for long, until nothing is left.
    func retireIdle() async {
        repeat {
            guard (try? await clock.sleep(for: ClientSessionPool.lifetime / 10)) != nil else { return }
            for (id, line) in owns.withLock({ $0.expire(at: watch.elapsed) }) { retire(line, of: id) }
        } while !owns.withLock { $0.isEmpty }
    }

    /// Ends the session at the app, if the app is there and may be reached; whoever it was for is not asked for it any more.
    func retire(_ line: UpstreamSession, of id: EndpointID) {
        send(
            .run { [self] in
                guard let endpoint = try? await endpoint(id),
                    let (_, clearance) = try? await admit(.broker, to: endpoint)
                else { return await line.retire(by: []) }
                await line.retire(by: clearance.passages)
            }
        )
    }
}

/// What is said in the handshake of a line that is one caller's alone, so that the app may ask that caller.
struct ClientSessionParameters: Hashable, Sendable {
    /// Where the app's server was met.
    let path: String
    let revision: ProtocolVersion
    let faculties: ClientCapabilities
}
