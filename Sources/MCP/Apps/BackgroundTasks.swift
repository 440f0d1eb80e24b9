import AccessControl
import Model
import Registry
import Synchronization
import SystemIO

/// What happens while nobody waits: following what changes, and errands.
extension AppProxy {
    /// How many errands to apps run at once.
    private static let errandWidth = 16

    func followRegistry() async {
        // The registry lets a follower go that is too slow; whoever waits looks again then.
        while !Task.isCancelled {
            let (start, changes) = await registry.changes()
            if case .snapshot(let endpoints, _) = start { for endpoint in endpoints { see(endpoint, isStart: true) } }
            bells.ringAll(())
            for await change in changes {
                if change.kind == .removed {
                    await forget(change.endpoint.id)
                } else {
                    see(change.endpoint, isStart: false)
                }
                if change.kind != .changed { news.ring(change.endpoint.id, .tools) }
                bells.ring(change.endpoint.id, ())
            }
        }
    }

    func followTrust() async {
        for await id in await trust.changes() {
            // Whether a new token is the right one, the next call tells.
            noteNeed(of: id, of: nil)
            bells.ring(id, ())
            refreshIfDue(id)
        }
    }

    /// Notes where an endpoint is now; one that is started, or comes back, has arrived.
    private func see(_ endpoint: Endpoint, isStart: Bool) {
        guard Self.speaksMCP(endpoint.kind) else { return }
        let launch = endpoint.state == .offline ? nil : endpoint.launch
        entries.withLock { entries in
            var entry =
                entries[endpoint.id] ?? Entry(line: makeLine(to: endpoint.id), approvedApp: endpoint.approvedApp)
            let isNew = launch != nil && entry.launch != launch
            entry.approvedApp = endpoint.approvedApp
            entry.launch = launch
            if isNew, !isStart { entry.arrival = watch.elapsed }
            if isNew { (entry.isListDue, entry.wanting) = (true, nil) }
            entries[endpoint.id] = entry
        }
        if endpoint.state != .offline { refreshIfDue(endpoint.id) }
    }

    private func forget(_ id: EndpointID) async {
        let line = entries.withLock { $0.removeValue(forKey: id)?.line }
        await line?.part()
        for line in owns.withLock({ $0.forget(id) }) { retire(line, of: id) }
        await shelf.forget(id)
    }

    func runErrands() async {
        let gate = AsyncSemaphore(places: Self.errandWidth)
        await withDiscardingTaskGroup { group in
            for await errand in errands {
                group.addTask { [self] in
                    switch errand {
                    // These wait more than they do.
                    case .tidy(let line): await tidy(line)
                    case .attend(let line, let known, let passages, let opened, let end):
                        await line.readStream(of: known, passages, opened: opened, until: end)
                    case .retire: await retireIdle()
                    case .run(let run): await run()
                    case .ask(let question, let line, let passages): await ask(question, line, passages)
                    case .listen(let id, let caller): await listen(to: id, for: caller)
                    case .refresh(let id, let change, let pause): await perform(change, of: id, after: pause, gate)
                    case .tell(let line, let message, let passages):
                        guard let permit = try? await gate.enter() else { return }
                        // Nobody waits for it: an app that cannot be told is one that need not be.
                        try? await line.tell(message, by: passages)
                        permit.giveBack()
                    case .list(let id, let caller):
                        guard let permit = try? await gate.enter() else { return }
                        _ = try? await freshList(CachedApp.tools, of: id, for: caller, wait: .zero)
                        permit.giveBack()
                    }
                }
            }
        }
    }

    private func ask(
        _ question: ClientRequestForwarder.Question,
        _ line: UpstreamSession,
        _ passages: [AuthorizedRoute]
    ) async {
        let outcome = await question.ask(within: limits.question, clock: clock)
        if let outcome { try? await line.tell(.response(id: question.id, outcome), by: passages) }
        question.inquirer.close(question.id)
    }

    private func tidy(_ line: UpstreamSession) async {
        repeat {
            guard (try? await clock.sleep(for: PooledConnection.lifetime)) != nil else { return }
        } while await line.tidy()
    }
}

extension AgentCaller {
    /// The broker itself, which follows what others want to hear of.
    static let broker = AgentCaller(.broker, permissions: nil)
}

/// Following what apps tell of their changes, while somebody wants to hear it.
extension AppProxy {
    /// After a stream has ended for which nobody says why.
    private static let listeningPause = Duration.seconds(5)

    func listen(to id: EndpointID, for caller: AgentCaller) async {
        guard let endpoint = try? await endpoint(id) else { return }
        _ = line(to: endpoint)
        let isFirst = entries.withLock { entries in
            guard entries[id]?.isFollowed == false else { return false }
            entries[id]?.isFollowed = true
            return true
        }
        guard isFirst else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.news.quiet(id) }
            group.addTask { await self.keepListening(to: id, for: caller) }
            await group.next()
            group.cancelAll()
        }
        entries.withLock { $0[id]?.isFollowed = false }
        // One may have come between the last one's going and now.
        if news.isHeard(alone: id), !Task.isCancelled { send(.listen(id, for: caller)) }
    }

    private func keepListening(to id: EndpointID, for caller: AgentCaller) async {
        while !Task.isCancelled {
            // A new one each time: a stream whose reader is cancelled is over.
            let bell = bells.stream(of: id, keeping: 1) { _, _ in () }
            let isTelling = try? await listenOnce(to: id, for: caller)
            let pause: Duration? = isTelling == true ? Self.listeningPause : nil
            // One that tells nothing, or is away, is looked at again when something changes about it.
            guard let pause else {
                for await _ in bell { break }
                continue
            }
            _ = try? await withDeadline(pause, clock: clock) {
                for await _ in bell { break }
                return true
            }
        }
    }

    private func listenOnce(to id: EndpointID, for caller: AgentCaller) async throws -> Bool {
        let endpoint = try await endpoint(id)
        let (line, clearance) = try await admit(caller, to: endpoint)
        return try await line.listen(to: endpoint, by: clearance.passages)
    }
}

/// Something that is done with an app while nobody waits for it.
enum BackgroundTask: Sendable {
    /// The app is told something that it does not answer.
    case tell(UpstreamSession, RPCMessage, [AuthorizedRoute])
    /// An app wants to know something of the caller whose request it works on.
    case ask(ClientRequestForwarder.Question, UpstreamSession, [AuthorizedRoute])
    /// The stream of an app is read on which it asks beside the requests.
    case attend(UpstreamSession, ServerInfo, [AuthorizedRoute], opened: Promise<Void>, until: Promise<Void>)
    /// Lines that are one caller's alone are given up when they have not been used for long.
    case retire
    /// A call goes on while its caller finds out what the app wants to know; an app is told that a session is over.
    case run(@Sendable () async -> Void)
    /// Streams that it kept open are closed when nobody has used them for a while.
    case tidy(UpstreamSession)
    /// Its tools are listed, as somebody wants to hear when they change.
    case list(EndpointID, for: AgentCaller)
    /// It is looked at what an app says has changed, or what may have changed with its launch.
    case refresh(EndpointID, ServerChange, after: Duration)
    /// Its changes are followed while somebody wants to hear of them.
    case listen(EndpointID, for: AgentCaller)
}
