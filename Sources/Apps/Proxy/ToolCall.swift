import AccessControl
package import Model
import SystemIO

/// A call of an app's tool.
package struct ToolCall: Sendable {
    package let endpoint: Endpoint
    package let tool: String
    package let arguments: JSONObject
    /// The wait time for an unreachable app; 10 s by default.
    package let wait: Duration
    /// The timeout of the whole call; nil means 15 s without a byte, since an app at a breakpoint is silent.
    package private(set) var timeout: Duration?
    /// The maximum image edge in the result, in pixels; 0 keeps the original, as a link.
    package let maxPixels: Int
    /// The format of the images in the result; nil for any.
    package let imageFormat: ImageFormat?
    package let notify: (@Sendable (RPCNotification) -> Void)?
    /// The program of the client, as it calls itself, for the activity.
    package let agent: SanitizedText?
    package let trace: CallTrace
    /// Takes the lease that the call begins with, within the timeout; nil without one.
    package let takeLease: (@Sendable () async throws(AppError) -> Void)?

    package init(
        _ tool: String,
        of endpoint: Endpoint,
        arguments: JSONObject = [:],
        wait: Duration = .seconds(10),
        timeout: Duration? = nil,
        maxPixels: Int = 1_568,
        imageFormat: ImageFormat? = nil,
        notify: (@Sendable (RPCNotification) -> Void)? = nil,
        agent: SanitizedText? = nil,
        trace: CallTrace = CallTrace(),
        takeLease: (@Sendable () async throws(AppError) -> Void)? = nil
    ) {
        self.endpoint = endpoint
        self.tool = tool
        self.arguments = arguments
        self.wait = wait
        self.timeout = timeout
        self.maxPixels = maxPixels
        self.imageFormat = imageFormat
        self.notify = notify
        self.agent = agent
        self.trace = trace
        self.takeLease = takeLease
    }

    /// Waits for the lease of the call.
    ///
    /// - Returns: The call with the rest of its timeout, at least one second.
    /// - Throws: The reason why there is no lease.
    package func leased(_ clock: any Clock<Duration>) async throws(AppError) -> ToolCall {
        guard let takeLease else { return self }
        let watch = ElapsedTimer(clock)
        try await takeLease()
        var call = self
        call.timeout = timeout.map { max($0 - watch.elapsed, .seconds(1)) }
        return call
    }
}

/// Calls of tools.
extension ToolCatalog {
    /// Calls a tool with arguments that its schema allows. The timeout of the request limits the whole call.
    ///
    /// - Parameters:
    ///   - request: The call.
    ///   - id: The app.
    ///   - principal: The caller.
    ///   - defaultTimeout: The timeout of the sent request, if the call has none; nil for 15 s without a byte.
    ///   - alias: The prefix of tool names for a principal that sees the tools of several apps.
    /// - Returns: The result, of a limited size.
    /// - Throws: `AppError`, the app's own `RPCError`, `CancellationError`.
    func call(
        _ request: MCPRequest,
        at id: EndpointID,
        for principal: Principal,
        defaultTimeout: Duration? = nil,
        alias: String? = nil
    ) async throws -> JSONObject {
        let watch = ElapsedTimer(context.clock)
        try await listIfFilterNeedsIt(id, for: principal, within: request.timeout)
        let call = try await validated(request.after(watch.elapsed), at: id, for: principal)
        let timeout = request.after(watch.elapsed).timeout ?? defaultTimeout
        let result = try await sender.call(
            timeout.map { call.request.with(timeout: $0) } ?? call.request,
            at: id,
            for: principal
        )
        return await withToolSuggestions(
            call.withWarning(result),
            request.tool ?? "",
            at: id,
            for: principal,
            alias: alias,
            within: request.timeout.map { $0 - watch.elapsed }
        )
    }
}

extension RequestSender {
    /// Calls a tool and limits the size of its result.
    ///
    /// - Throws: `AppError`, the app's own `RPCError`, `CancellationError`.
    func call(_ request: MCPRequest, at id: EndpointID, for principal: Principal) async throws -> JSONObject {
        let watch = ElapsedTimer(context.clock)
        var request = request
        // A client that wants the original (`maxPixels` 0) or PNG gets the app's default format.
        let isOpenToJPEG = request.maxPixels != 0 && request.imageFormat != .png && request.isOpenToJPEG
        if isOpenToJPEG, await offersJPEG(request, id) { request = request.requestingJPEG }
        let response: UpstreamResponse
        do {
            response = try await send(request, at: id, for: principal)
        } catch AppError.invalidResponse(let what) {
            // The app has answered, so it has received the call.
            throw AppError.invalidResponse("\(what) (delivered, result unknown)")
        }
        defer { response.reservation?.release() }
        let result = repaired(try response.result(), of: id)
        let (turn, hasTurn) = try await imageTurn(
            for: result,
            of: id,
            within: (request.timeout ?? context.timeouts.response.total) - watch.elapsed
        )
        defer { turn?.release() }
        return await sizeLimiter.limitSize(
            of: await resourceLinks.filtered(result, of: id, for: principal, sizeLimiter.artifacts),
            maxPixels: hasTurn ? request.maxPixels : 0,
            as: request.imageFormat,
            for: principal,
            onLooseBase64: { pool.deviations.record(.looseBase64, of: id) }
        )
    }

    /// Returns a result that every client accepts.
    private func repaired(_ result: JSONObject, of id: EndpointID) -> JSONObject {
        guard let repaired = ToolResultSanitizer.repaired(result) else { return result }
        pool.deviations.record(.invalidResult, of: id)
        return repaired
    }

    /// Waits until no other image of the app is being resized.
    ///
    /// - Returns: The permit to release, nil for a result without images; and false after the time limit. The images are
    ///   then linked.
    private func imageTurn(
        for result: JSONObject,
        of id: EndpointID,
        within limit: Duration
    ) async throws -> (Permit?, Bool) {
        guard ResultSizeLimiter.hasImages(result), let turns = pool.session(of: id)?.imageTurns else {
            return (nil, true)
        }
        if let permit = turns.tryAcquire() { return (permit, true) }
        let permit = try await withTimeout(limit, clock: context.clock) { try await turns.acquire() }
        return (permit, permit != nil)
    }

    private func offersJPEG(_ request: MCPRequest, _ id: EndpointID) async -> Bool {
        guard await annotations(of: request, id).offersJPEG else { return false }
        return (try? await pool.endpoint(id).kind) == .appreveal
    }
}
