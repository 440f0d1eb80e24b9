import AccessControl
import JSON
import Model
import Registry
import Synchronization
import SystemIO

/// Getting a request to an app, as soon as the app is there.
extension AppProxy {
    /// Sends a request to an app, and waits so long for one that cannot be reached.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    func reach(
        _ request: MCPRequest,
        at id: EndpointID,
        for caller: AgentCaller,
        wait: Duration
    ) async throws -> AppReply {
        do {
            let reply = try await converse(request) { try await hold($0, id, caller, wait) }
            await note(request, id, caller, size: reply.size, outcome: Self.outcome(of: reply))
            return reply
        } catch let failure as AppError {
            await note(request, id, caller, size: 0, outcome: failure.code)
            throw failure
        } catch {
            await note(request, id, caller, size: 0, outcome: "cancelled")
            throw error
        }
    }

    private func hold(
        _ request: MCPRequest,
        _ id: EndpointID,
        _ caller: AgentCaller,
        _ wait: Duration
    ) async throws -> AppReply {
        let watch = ElapsedTimer(clock)
        let traits = await traits(of: request, id)
        // What the caller allows is for everything; else the wait for the app has a limit of its own.
        let limit = request.patience ?? wait + limits.longest
        var hold = RetryPolicy(of: id, for: min(wait, limit), mayRepeat: request.mayRepeat(traits))
        var bell: AsyncStream<Void>?
        while true {
            let trouble: Trouble
            do {
                return try await attempt(request, id, caller, traits, within: limit - watch.elapsed)
            } catch let error as Trouble {
                trouble = error
            }
            switch hold.move(after: trouble, at: watch.elapsed, sinceArrival: sinceArrival(of: id)) {
            case .tryAgain:
                // The app may get it twice: each delivery has its line.
                if trouble == .lost { await note(request, id, caller, size: 0, outcome: "lost, sent again") }
                continue
            case .giveUp(let failure): throw failure
            case .wait(let longest):
                if let heard = bell {
                    let isRung = try await withDeadline(longest, clock: clock) {
                        for await _ in heard { break }
                        return true
                    }
                    // A stream whose reader is cancelled is over.
                    if isRung == nil { bell = bells.stream(of: id, keeping: 1) { _, _ in () } }
                } else {
                    // What changed before the bell was there shows at the next try.
                    bell = bells.stream(of: id, keeping: 1) { _, _ in () }
                }
            }
        }
    }

    /// - Throws: `Trouble`, `CancellationError`.
    private func attempt(
        _ request: MCPRequest,
        _ id: EndpointID,
        _ caller: AgentCaller,
        _ traits: ToolAnnotations,
        within limit: Duration
    ) async throws -> AppReply {
        // The request has waited, and its grant may have ended meanwhile.
        guard trust.isLive(caller) else { throw CancellationError() }
        let generation = trust.generation
        let endpoint = try await endpoint(id)
        let (line, clearance) = try await admit(caller, to: endpoint)
        let admission = Admission(clearance.passages, of: caller, by: trust, since: generation, limit: limit)
        do {
            let reply = try await ask(request, of: endpoint, for: caller, over: line, by: admission, traits)
            if endpoint.state != .online { await registry.report(nil, of: id) }
            noteNeed(of: id, of: nil)
            if clearance.hasSecret { await trust.noteSecret(of: endpoint, isTaken: true) }
            return reply
        } catch Trouble.wantsSecret(.rejected) where caller.may(.secretUse, on: endpoint) {
            noteNeed(of: id, of: endpoint)
            await trust.noteSecret(of: endpoint, isTaken: false)
            throw Trouble.wantsSecret(.rejected)
        } catch Trouble.wantsSecret(.missing) where clearance.isSecretOutdated {
            noteNeed(of: id, of: endpoint)
            throw Trouble.wantsSecret(.outdated)
        } catch Trouble.wantsSecret(.missing) where caller.may(.secretUse, on: endpoint) {
            noteNeed(of: id, of: endpoint)
            throw Trouble.wantsSecret(.missing)
        } catch Trouble.wantsSecret where !caller.may(.secretUse, on: endpoint) {
            throw Trouble.notPermitted(.secretUse)
        } catch Trouble.unreachable(let failure) {
            // Told where the prober would find out later. A phone's ports are watched by others.
            if endpoint.state == .online, endpoint.isInNetwork { await registry.report(failure, of: id) }
            throw Trouble.unreachable(failure)
        } catch let error where !(error is Trouble) && !(error is CancellationError) {
            throw Trouble.unreachable(DialError(.failed, "\(id) could not be reached: \(error)"))
        }
    }

    func endpoint(_ id: EndpointID) async throws -> Endpoint {
        guard let endpoint = try? await registry.endpoint(id) else {
            throw Trouble.unreachable(
                DialError(.noRoute, "no endpoint is called \(id); `patchbay list` shows them all")
            )
        }
        return endpoint
    }

    /// The line to an endpoint and the ways that this caller may take to it.
    ///
    /// - Throws: `Trouble`.
    func admit(_ caller: AgentCaller, to endpoint: Endpoint) async throws -> (UpstreamSession, EndpointAccess) {
        guard caller.may(.endpointCall, on: endpoint) else { throw Trouble.notPermitted(.endpointCall) }
        guard Self.speaksMCP(endpoint.kind) else { throw Trouble.noMCP }
        guard !endpoint.routes.isEmpty, endpoint.state != .blocked else {
            throw Trouble.unreachable(UpstreamSession.noRoute(to: endpoint))
        }
        let clearance = await trust.clearance(of: endpoint, for: caller)
        guard !clearance.isRefused else {
            let changed = endpoint.routes.first { $0.mismatch != nil }
            throw changed.flatMap { route in
                route.mismatch.map { Trouble.mismatch(route.route, found: $0) }
            } ?? Trouble.notApproved
        }
        return (line(to: endpoint), clearance)
    }

    /// Kinds that are known to be something else are not asked for MCP.
    static func speaksMCP(_ kind: EndpointKind) -> Bool {
        ![.appDebug, .debug, .openagents, .dartVM, .tcp].contains(kind)
    }

    /// What the app's list says of the tool that is called; nothing where it was never listed, as it is not asked for that.
    func traits(of request: MCPRequest, _ id: EndpointID) async -> ToolAnnotations {
        guard let tool = request.tool else { return .unknown }
        return await shelf.record(of: id).traits[tool] ?? .unknown
    }

    private func sinceArrival(of id: EndpointID) -> Duration? {
        entries.withLock { $0[id]?.arrival }.map { watch.elapsed - $0 }
    }

    // MARK: The log

    /// Lists are what a client asks for by itself; the rest is somebody's doing.
    private static let logged: Set = ["tools/call", "resources/read", "prompts/get"]

    private func note(_ request: MCPRequest, _ id: EndpointID, _ caller: AgentCaller, size: Int, outcome: String)
        async
    {
        guard Self.logged.contains(request.method) else { return }
        let use = EndpointCallEvent(of: id, subject: SanitizedText(request.subject), bytes: size, outcome: outcome)
        await trust.note(use, by: caller)
    }

    private static func outcome(of reply: AppReply) -> String {
        switch reply.outcome {
        case .success(let result): result["isError"] == true ? "answered with isError" : "answered"
        case .failure(let error): "answered with error \(error.code)"
        }
    }
}

extension Endpoint {
    fileprivate var isInNetwork: Bool {
        routes.contains { $0.route.isNetwork }
    }
}
