package import AccessControl
package import Model
import Synchronization
import SystemIO

/// Shows the screens of apps to people, and sends their input.
///
/// Looking needs no lease and extends none, and its screenshots are no entries of the activity. Input is a call like any
/// other one.
package final class ScreenService: Sendable {
    /// The maximum number of screens whose last picture is kept.
    private static let limit = 32
    /// The time after which a screen without a viewer is dropped.
    private static let retention = Duration.seconds(60)
    private static let toolsLifetime = Duration.seconds(5)
    private static let callTimeout = Duration.seconds(15)
    /// The maximum edge of a picture in pixels.
    private static let maxEdge = 1_568

    let proxy: AppProxy
    private let images: ImageResizer
    private let watch: ElapsedTimer
    private let screens = Mutex<[EndpointID: SharedScreen]>([:])

    package init(_ proxy: AppProxy, images: ImageResizer) {
        self.proxy = proxy
        self.images = images
        watch = ElapsedTimer(proxy.context.clock)
    }

    /// The possibilities of a client with a screen.
    package struct Description: Sendable {
        /// The tool that takes the picture; nil without one.
        package let tool: String?
        /// The possible kinds of input: `tap`, `type` and `swipe`. With `type`, the keys of `ScreenTools.Key`.
        package let input: [String]
        package let limits: [String]
    }

    /// Returns what a client can do with the screen of an app.
    ///
    /// - Throws: `AppError`, `CancellationError`.
    package func description(of endpoint: Endpoint, for principal: Principal) async throws -> Description {
        let tools = try await tools(of: endpoint)
        var limits = tools.limits
        func isAllowed(_ tool: ScreenTools.Tool?) async -> Bool {
            guard let tool else { return false }
            do {
                try await proxy.sender.requireTool(Self.request(tool.name), at: endpoint.id, for: principal)
                return true
            } catch {
                if let reason = (error as? AppError)?.description(at: endpoint.id) { limits.append(reason) }
                return false
            }
        }
        let hasPicture = await isAllowed(tools.screenshot)
        var input: [String] = []
        for (name, tool) in [("tap", tools.tap), ("type", tools.type), ("swipe", tools.swipe?.tool)]
        where await isAllowed(tool) {
            input.append(name)
        }
        if input.contains("type") { input += tools.keys.map(\.rawValue) }
        return Description(tool: hasPicture ? tools.screenshot?.name : nil, input: input, limits: limits)
    }

    /// Returns the current picture of an app's screen.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint.
    ///   - width: The wanted width in pixels; nil for the largest picture.
    ///   - principal: The viewer.
    /// - Returns: The picture, as PNG or JPEG.
    /// - Throws: `AppError`, `Problem`, `ImageError`, `CancellationError`.
    package func picture(of endpoint: Endpoint, width: Int?, for principal: Principal) async throws -> ImageFile {
        let picture = try await picture(of: endpoint, for: principal)
        return try await picture.copy(width: width, by: images)
    }

    private func picture(of endpoint: Endpoint, for principal: Principal) async throws -> ScreenPicture {
        let tool = try await tools(of: endpoint).screenshot
        guard let tool else {
            throw Problem(
                .conflict,
                "\(endpoint.id) has no tool for a screenshot",
                hint: "patchbay tools \(endpoint.id)"
            )
        }
        try await authorize(principal, to: endpoint, tool)
        let screen = screen(of: endpoint.id)
        if screen.beginsToLook(principal.holder, at: watch.elapsed) {
            let subject = SanitizedText("live screen")
            let event = EndpointCallEvent(of: endpoint.id, subject: subject, bytes: 0, outcome: "viewed")
            await proxy.context.authorizer.audit(event, by: principal)
        }
        switch screen.picture(at: watch.elapsed) {
        case .ready(let picture): return picture
        case .failed(let error): throw error
        case .wait(let promise, let isNew):
            if isNew {
                let isQueued = proxy.context.tasks.schedule { [self] in
                    let result = await takePicture(of: endpoint.id, with: tool)
                    screen.end(result, at: watch.elapsed)
                }
                if !isQueued { screen.end(.failure(.busy), at: watch.elapsed) }
            }
            return try await promise.value()
        }
    }

    /// Throws unless a client may call the tool itself. The broker takes the shared screenshot and asks for the size of the
    /// screen with its own rights, so this comes first.
    private func authorize(_ principal: Principal, to endpoint: Endpoint, _ tool: ScreenTools.Tool) async throws {
        _ = try await proxy.pool.authorize(principal, to: endpoint)
        try await proxy.sender.requireTool(Self.request(tool.name), at: endpoint.id, for: principal)
        guard !principal.may(.secretUse, on: endpoint) else { return }
        let access = await proxy.context.authorizer.access(to: endpoint, for: .broker)
        if access.hasSecret { throw AppError.forbidden(.secretUse) }
    }

    private func screen(of id: EndpointID) -> SharedScreen {
        let now = watch.elapsed
        return screens.withLock { screens in
            if let screen = screens[id] { return screen }
            screens = screens.filter { $0.value.isInProgress || now - $0.value.usedAt < Self.retention }
            if screens.count >= Self.limit, let oldest = screens.min(by: { $0.value.usedAt < $1.value.usedAt }) {
                screens[oldest.key] = nil
            }
            let screen = SharedScreen()
            screens[id] = screen
            return screen
        }
    }

    static func request(_ tool: String, _ arguments: JSONObject = [:]) -> MCPRequest {
        var request = MCPRequest(
            "tools/call",
            ["name": .string(tool), "arguments": .object(arguments)],
            wait: .zero,
            timeout: callTimeout
        )
        request.isObservation = true
        return request
    }

    // MARK: The broker's own calls

    private func takePicture(of id: EndpointID, with tool: ScreenTools.Tool) async -> Result<ScreenPicture, AppError> {
        do {
            var request = Self.request(tool.name)
            let offersJPEG = await proxy.sender.annotations(of: request, id).offersJPEG
            if offersJPEG { request = request.requestingJPEG }
            let response = try await proxy.sender.send(request, at: id, for: .broker)
            defer { response.reservation?.release() }
            let result = try response.result()
            let turn = try await proxy.pool.session(of: id)?.imageTurns.acquire()
            defer { turn?.release() }
            return .success(try await picture(in: result))
        } catch {
            guard error is ImageError else { return .failure(AppError(error)) }
            return .failure(.invalidResponse("a picture that cannot be read: \(error)"))
        }
    }

    private func picture(in result: JSONObject) async throws -> ScreenPicture {
        let content = result["content"]?.array ?? []
        guard let base64 = content.first(where: { $0["type"] == "image" })?["data"]?.string else {
            let text = content.lazy.compactMap { $0["text"]?.string }.first ?? "no image"
            throw AppError.invalidResponse("no picture: \(SanitizedText(text, limit: 200))")
        }
        let (original, fitted, _) = try await images.resize(base64: base64, to: Self.maxEdge)
        return ScreenPicture(
            fitted,
            screen: (original.width, original.height),
            scale: Self.document(in: result)?["scale"]?.number?.double
        )
    }

    /// Returns the JSON of a result: its structured content, or its first text that is JSON.
    private static func document(in result: JSONObject) -> JSON? {
        if let structured = result["structuredContent"], structured.object != nil { return structured }
        return result["content"]?.array?.lazy.compactMap { $0["text"]?.string }
            .filter { $0.first == "{" || $0.first == "[" }.compactMap { try? JSON(parsing: $0) }.first
    }

    /// Asks an app for a fact; nil if it does not answer.
    private func document(of tool: ScreenTools.Tool?, at id: EndpointID) async -> JSON? {
        guard let tool else { return nil }
        let response = try? await proxy.sender.send(Self.request(tool.name), at: id, for: .broker)
        defer { response?.reservation?.release() }
        return (try? response?.result()).flatMap(Self.document)
    }

    private func tools(of endpoint: Endpoint) async throws -> ScreenTools {
        let (id, screen) = (endpoint.id, screen(of: endpoint.id))
        if let known = screen.tools(notBefore: watch.elapsed - Self.toolsLifetime) { return known }
        let cached = proxy.pool.isListDue(of: id) ? nil : await proxy.catalog.cachedList(CachedApp.tools, of: id)
        let list: JSONObject
        if let cached {
            list = cached
        } else {
            list = try await proxy.catalog.list(CachedApp.tools, of: id, for: .broker).result
        }
        let tools = ScreenTools(list["tools"]?.array?.compactMap(\.object) ?? [])
        screen.keep(tools, at: watch.elapsed)
        return tools
    }

    // MARK: Input

    /// Sends the input of a person, as a call of the app's tool.
    ///
    /// - Throws: `AppError`, `Problem`, `CancellationError`.
    package func send(_ input: ScreenInput, to endpoint: Endpoint, for principal: Principal) async throws {
        let tools = try await tools(of: endpoint)
        let (tool, arguments) = try await call(input, tools, endpoint, principal)
        let call = ToolCall(tool.name, of: endpoint, arguments: arguments, wait: .zero, timeout: Self.callTimeout)
        let result = try await proxy.call(call, of: principal)
        guard result["isError"] == true else { return }
        let text = result["content"]?.array?.lazy.compactMap { $0["text"]?.string }.first ?? ""
        throw Problem(.conflict, "\(endpoint.id) refused the input: \(SanitizedText(text, limit: 500))")
    }

    /// Returns the call for an input.
    private func call(
        _ input: ScreenInput,
        _ tools: ScreenTools,
        _ endpoint: Endpoint,
        _ principal: Principal
    ) async throws -> (ScreenTools.Tool, JSONObject) {
        switch input {
        case .type(let text):
            guard let tool = tools.type else { throw Self.impossible("no typing", tools, endpoint) }
            return (tool, ["text": .string(text)])
        case .tap(let point):
            guard let tool = tools.tap else { throw Self.impossible("no taps", tools, endpoint) }
            try await authorize(principal, to: endpoint, tool)
            let geometry = try await geometry(of: endpoint, tools, tool, for: principal)
            let (x, y) = geometry.point(point, whole: tool.isWhole)
            return (tool, ["x": Self.number(x), "y": Self.number(y)])
        case .swipe(let start, let end, let milliseconds):
            guard let swipe = tools.swipe else { throw Self.impossible("no swipes", tools, endpoint) }
            try await authorize(principal, to: endpoint, swipe.tool)
            let geometry = try await geometry(of: endpoint, tools, swipe.tool, for: principal)
            let from = geometry.point(start, whole: swipe.tool.isWhole)
            let to = geometry.point(end, whole: swipe.tool.isWhole)
            var arguments: JSONObject = [
                swipe.arguments.from.x: Self.number(from.x), swipe.arguments.from.y: Self.number(from.y),
                swipe.arguments.to.x: Self.number(to.x), swipe.arguments.to.y: Self.number(to.y),
            ]
            if let duration = swipe.duration { arguments[duration.name] = .number(JSONNumber(milliseconds)) }
            return (swipe.tool, arguments)
        }
    }

    private static func impossible(_ what: String, _ tools: ScreenTools, _ endpoint: Endpoint) -> Problem {
        let limit = tools.limits.first { $0.hasPrefix(what) } ?? what
        return Problem(.conflict, "\(endpoint.id) has \(limit)", hint: "patchbay tools \(endpoint.id)")
    }

    private static func number(_ value: Double) -> JSON {
        if let whole = Int(exactly: value) { return .number(JSONNumber(whole)) }
        // The number has at most two digits after its point, so its text is valid JSON.
        return (try? JSON(parsing: "\(value)")) ?? .number(JSONNumber(0))
    }

    private func geometry(
        of endpoint: Endpoint,
        _ tools: ScreenTools,
        _ tool: ScreenTools.Tool,
        for principal: Principal
    ) async throws -> ScreenGeometry {
        let screen = screen(of: endpoint.id)
        // The last picture is what the person has seen.
        let picture: ScreenPicture
        if let shown = screen.shown {
            picture = shown
        } else {
            picture = try await self.picture(of: endpoint, for: principal)
        }
        let facts: ScreenFacts
        if let known = screen.facts(of: endpoint.launchID, picture) {
            facts = known
        } else {
            facts = await self.facts(of: endpoint, picture, tools)
            screen.keep(facts, of: endpoint.launchID, picture)
        }
        return ScreenGeometry(picture: picture.screen, facts, unit: tool.unit)
    }

    private func facts(of endpoint: Endpoint, _ picture: ScreenPicture, _ tools: ScreenTools) async -> ScreenFacts {
        var facts = ScreenFacts(scale: picture.scale)
        if let size = ScreenFacts.Size(await document(of: tools.windowSize, at: endpoint.id)) {
            facts.size = size
        } else if facts.scale == nil, let info = await document(of: tools.deviceInfo, at: endpoint.id) {
            facts.size = ScreenFacts.Size(info["screenSize"])
            facts.scale = info["scale"]?.number?.double
        } else if facts.scale == nil, let elements = await document(of: tools.elements, at: endpoint.id) {
            facts.scale = ScreenFacts.scale(of: picture.screen, elements: elements)
        }
        if endpoint.kind == .appreveal, let context = await document(of: tools.launchContext, at: endpoint.id) {
            let isAndroid = context["platform"]?.string?.lowercased() == "android"
            facts.takesPixels = isAndroid && context["frameworkType"]?.string != "flutter"
        }
        if facts.size == nil, facts.scale == nil, endpoint.kind.text == "debugbridge" {
            facts.scale = ScreenFacts.scaleOfIOS(picture.screen)
        }
        return facts
    }
}
