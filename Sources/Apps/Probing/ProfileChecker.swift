package import Model
package import SystemIO

/// Tries a profile on a live server, for a person who writes one.
///
/// Runs the recognition, and then calls the read-only tools that need no argument, no secret and no session. Such calls
/// change nothing.
package struct ProfileChecker: Sendable {
    /// The maximum size of a tool's response: 32 MiB, enough for a screenshot in base64.
    private static let responseLimit = 32 << 20
    /// The maximum time for a tool in seconds, whatever the profile allows.
    private static let toolTimeout = Duration.seconds(15)

    private let sender: ProbeSender

    /// - Parameters:
    ///   - dialer: Opens the connections.
    ///   - clock: The clock for the timeouts.
    ///   - isInUse: Returns true if another stream to the route is open. Nothing is sent to such a route.
    package init(
        dialer: any Dialer,
        clock: any Clock<Duration> = PollerClock(),
        isInUse: @escaping @Sendable (Route) -> Bool = { _ in false }
    ) {
        sender = ProbeSender(dialer: dialer, timeout: ProfileRecognizer.timeout, clock: clock, isInUse: isInUse)
    }

    /// Checks the server at a route.
    ///
    /// - Parameters:
    ///   - profile: The profile to check.
    ///   - summary: The profile for the result.
    ///   - route: The route to the server.
    /// - Returns: The result with all steps.
    /// - Throws: `DialError` if the port accepted no connection in time; `PortInUse`; `CancellationError`.
    package func check(_ profile: Profile, _ summary: ProfileSummary, at route: Route) async throws -> ProfileCheck {
        var check = ProfileCheck(profile: summary)
        var recognizer = ProfileRecognizer(profile)
        while let request = recognizer.nextRequest {
            let reply = try await sender.send(request.httpRequest(), to: route)
            recognizer.receive(reply)
            check.steps.append(
                ProfileCheck.Step(
                    request: "\(request)",
                    status: reply.response?.status,
                    mismatch: recognizer.steps.last?.mismatch.map { SanitizedText($0, limit: 500).text }
                )
            )
        }
        guard case .match(let server) = recognizer.outcome else { return check }
        check.server = ProfileCheck.Server(app: server.app, version: server.version, launchID: server.launchID)
        for tool in profile.tools where tool.isReadOnly {
            let isStopped = check.tools.contains { $0.outcome == .failed && $0.status == nil }
            check.tools.append(
                isStopped
                    ? ProfileCheck.Tool(
                        name: tool.name,
                        outcome: .skipped,
                        reason: "the server did not answer an earlier tool"
                    ) : try await call(tool, of: profile, at: route)
            )
        }
        return check
    }

    private func call(_ tool: ProfileTool, of profile: Profile, at route: Route) async throws -> ProfileCheck.Tool {
        func result(_ outcome: ProfileCheck.Tool.Outcome, _ status: Int?, _ reason: String?) -> ProfileCheck.Tool {
            ProfileCheck.Tool(
                name: tool.name,
                outcome: outcome,
                status: status,
                reason: reason.map { SanitizedText($0, limit: 500).text }
            )
        }
        guard !profile.authentication.requiresSecret else { return result(.skipped, nil, "it needs the app's token") }
        guard !tool.needsSession else { return result(.skipped, nil, "it needs a session") }
        let authentication = ProfileAuthentication(profile, newToken: ExchangeToken(""))
        let arguments: JSONObject = [:]
        guard let request = try? profile.request(for: tool, arguments: arguments, with: authentication) else {
            return result(.skipped, nil, "it needs arguments")
        }
        let reply = try await sender.send(
            request.httpRequest(),
            to: route,
            limit: Self.responseLimit,
            within: min(tool.timeout, Self.toolTimeout)
        )
        guard let response = reply.response else { return result(.failed, nil, "no HTTP response") }
        do {
            var repairs = JSONRepairs()
            let answer = try profile.result(of: tool, arguments: arguments, response: response, repairs: &repairs)
            guard case .content(let content) = answer, content["isError"] == true else {
                return result(.answered, response.status, nil)
            }
            return result(.failed, response.status, content["content"]?.array?.first?["text"]?.string)
        } catch {
            return result(.failed, response.status, error.description)
        }
    }
}
