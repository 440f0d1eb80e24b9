import Model
import AccessControl
import Registry
import SystemIO
import Synchronization

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
