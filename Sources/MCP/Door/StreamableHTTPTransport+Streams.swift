import JSON

/// The streams that tell of changes: one kind in 2026-07-28, another one before.
extension StreamableHTTPTransport {
    func listen<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ subscription: SubscriptionRequest,
        for call: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        // Subscribed before it is said, so that nothing is missed in between.
        let changes = server.changes(for: caller)
        for uri in subscription.addresses.sorted() {
            // An app is asked to tell; that it cannot is known when nothing comes.
            _ = try? await server.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
        try await ChangeStream(heartbeat).run(
            for: call,
            to: &writer,
            changes: changes,
            first: SSEEncoder.message(subscription.acknowledgement),
            last: SSEEncoder.message(subscription.end)
        ) { subscription.message($0) }
    }

    func follow<Writer: MCPResponseBodyWriter & ~Copyable>(
        _ session: SessionStore.Session?,
        isResumed: Bool,
        for call: MCPHTTPRequest,
        of caller: AgentCaller,
        to writer: inout Writer
    ) async throws {
        let changes = server.changes(for: caller)
        let description = await server.description(for: caller)
        let listening = ChangeStream(heartbeat)
        var number: Int?
        if let session { number = await sessions.open(session) { listening.stop() } }
        var first = SSEEncoder.retry
        if isResumed {
            // What happened while the broker was away, nobody knows; so the client looks at everything again.
            for change in [ServerChange.tools, .prompts, .resources] where description.tells(of: change) {
                first += SSEEncoder.message(change.notification)
            }
        }
        let addresses: [String] =
            if isResumed, let session { await sessions.subscriptions(of: session).sorted() } else { [] }
        for uri in addresses { first += SSEEncoder.message(ServerChange.resource(uri).notification) }
        // An app has been told by an earlier run, if at all. It may be away, which holds nothing up here.
        async let _: Void = tell(addresses, of: caller)
        let end: Result<Void, any Error>
        do {
            try await listening.run(for: call, to: &writer, changes: changes, first: first, last: nil) {
                [sessions] change in
                if case .resource(let uri) = change {
                    guard let session, await sessions.isSubscribed(uri, session) else { return nil }
                    return change.notification
                }
                return description.tells(of: change) ? change.notification : nil
            }
            end = .success(())
        } catch { end = .failure(error) }
        if let session, let number { await sessions.close(number, of: session) }
        try end.get()
    }

    /// An app is asked to tell when these change; that it cannot is known when nothing comes.
    private func tell(_ addresses: [String], of caller: AgentCaller) async {
        for uri in addresses where !Task.isCancelled {
            _ = try? await server.answer(MCPRequest("resources/subscribe", ["uri": .string(uri)]), of: caller)
        }
    }
}

extension ServerDescription {
    fileprivate func tells(of change: ServerChange) -> Bool {
        switch change {
        case .tools: has("tools", "listChanged")
        case .prompts: has("prompts", "listChanged")
        case .resources: has("resources", "listChanged")
        case .resource: has("resources", "subscribe")
        }
    }
}

extension ServerChange {
    fileprivate var notification: JSON {
        var params: JSONObject?
        if case .resource(let uri) = self { params = ["uri": .string(uri)] }
        return RPCMessage.notification(RPCNotification(method: method, params: params)).json
    }
}
