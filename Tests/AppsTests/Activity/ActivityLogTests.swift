import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import Synchronization
import Testing

@testable import Apps

@Suite struct ActivityLogTests {
    private static let owner = Principal.sampleOwner
    private static let picture = Data(repeating: 7, count: 300).base64EncodedString()

    private static func log(limit: Int = 3, pictureLimit: Int = 1_000_000) -> ActivityLog {
        ActivityLog(limit: limit, pictureLimit: pictureLimit, registry: EndpointRegistry())
    }

    @discardableResult
    private static func call(
        _ log: ActivityLog,
        _ tool: String,
        of principal: Principal = Self.owner,
        _ result: Result<JSONObject, any Error> = .success(["content": []])
    ) -> ActivityLog.RunningCall {
        let call = log.begin(tool, [:], at: "shop-iphone", for: principal)
        log.end(call, result)
        return call
    }

    private static func image(_ base64: String = picture) -> Result<JSONObject, any Error> {
        .success(["content": [["type": "image", "data": .string(base64), "mimeType": "image/png"]]])
    }

    private static func tools(_ log: ActivityLog, for principal: Principal = Self.owner) async -> [String] {
        await log.entries(for: principal).entries.compactMap { $0.entry.call?.tool.text }
    }

    @Test func `only the newest calls are kept, and their numbers rise`() async {
        let log = Self.log()

        for tool in ["a", "b", "c", "d", "e"] { Self.call(log, tool) }

        #expect(await Self.tools(log) == ["c", "d", "e"])
        #expect(await log.entries(for: Self.owner).entries.map(\.entry.id) == [3, 4, 5])
    }

    @Test func `a call is listed while it runs, and changes when it ends`() async throws {
        let log = Self.log()
        let call = log.begin("tap", ["x": 1], at: "shop-iphone", for: Self.owner)
        let (running, revision) = await log.entries(for: Self.owner)

        log.end(call, .success(["content": [["type": "text", "text": "tapped"]]]))

        #expect(running.map(\.entry.call?.outcome) == [.running])
        let ended = try #require(await log.entries(for: Self.owner).entries.first)
        #expect(ended.revision > revision && ended.entry.id == running[0].entry.id)
        #expect(ended.entry.call?.outcome == .ok && ended.entry.call?.result?.text == "tapped")
        #expect(ended.entry.call?.durationMilliseconds != nil)
    }

    @Test func `no reader gets a secret from the time of a call, nor one of now`() async throws {
        let secrets = Mutex(["first-secret", "old-secret"])
        let log = ActivityLog(
            limit: 3,
            pictureLimit: 0,
            registry: EndpointRegistry(),
            secrets: { secrets.withLock { $0.map { Array($0.utf8) } } }
        )
        let text = "is first-secret, old-secret or new-secret, password=hunter2"
        let large = String(repeating: "long ", count: 20_000)
        let calls = [["value": .string(text)], ["value": .string(text), "large": .string(large)]].map {
            log.begin("first-secret", $0, at: "shop-iphone", for: Self.owner)
        }
        secrets.withLock { $0 = ["new-secret"] }
        let running = await log.entries(for: Self.owner).entries
        log.end(calls[0], .success(["content": [["type": "text", "text": .string(text)]]]))
        log.end(calls[1], .success(["structuredContent": ["value": .string(text), "large": .string(large)]]))
        Self.call(log, "refused", .failure(RPCError(-32_000, "new-secret, password=hunter2")))

        let ended = await log.entries(for: Self.owner).entries
        #expect(ended.map(\.entry.call?.result?.text.isEmpty) == [false, false, false])
        let shown = (running + ended).map { "\($0.entry.json.text)" }.joined()
        for secret in ["first-secret", "old-secret", "new-secret", "hunter2"] { #expect(!shown.contains(secret)) }
        #expect(shown.utf8.count < 20_000 && shown.contains("is [removed], [removed] or [removed]"))
    }

    @Test func `an entry that was read while its call ended has both texts`() async throws {
        let log = Self.log()
        let call = log.begin("tap", ["x": 1], at: "shop-iphone", for: Self.owner)
        var (read, kept) = (try #require(log.record(1, for: Self.owner)), try #require(log.record(1, for: Self.owner)))
        read.read([])
        log.end(call, .success(["content": [["type": "text", "text": "tapped"], ["type": "text", "text": "twice"]]]))
        kept = try #require(log.record(1, for: Self.owner))
        kept.adopt(read)
        kept.read([])

        #expect(kept.entry.call?.arguments == ["x": 1] && kept.entry.call?.result?.text == "tapped\ntwice")
        #expect(read.entry.call?.tool.text == "tap" && read.entry.call?.result == nil)
    }

    @Test func `a call that ends after its entry was dropped changes no other entry`() async {
        let log = Self.log(limit: 1)
        let call = log.begin("slow", [:], at: "shop-iphone", for: Self.owner)
        _ = log.begin("fast", [:], at: "shop-iphone", for: Self.owner)

        log.end(call, Self.image())

        #expect(await log.entries(for: Self.owner).entries.map(\.entry.call?.outcome) == [.running])
    }

    @Test func `the oldest pictures are dropped first, also that of a call that ended late`() async {
        let log = Self.log(limit: 10, pictureLimit: 2 * Self.picture.utf8.count)
        let late = log.begin("late", [:], at: "shop-iphone", for: Self.owner)
        for tool in ["a", "b", "c"] { Self.call(log, tool, Self.image()) }
        log.end(late, Self.image())

        let kept = await log.entries(for: Self.owner).entries.filter { $0.picture != nil }

        #expect(kept.map(\.entry.call?.tool.text) == ["b", "c"])
        Self.call(log, "large", Self.image(String(repeating: "A", count: 10_000)))
        #expect(await log.entries(for: Self.owner).entries.allSatisfy { $0.picture == nil })
    }

    @Test func `a busy grant pushes out its own calls and pictures, and not those of others`() async {
        let (busy, other) = (Principal.holder(of: "g1", [.endpointCall]), Principal.holder(of: "g2", [.endpointCall]))
        let log = Self.log(limit: 4, pictureLimit: 3 * Self.picture.utf8.count)
        Self.call(log, "first", of: other, Self.image())
        Self.call(log, "second", of: other)
        for tool in ["a", "b", "c", "d", "e"] { Self.call(log, tool, of: busy, Self.image()) }

        #expect(await Self.tools(log) == ["first", "second", "d", "e"])
        #expect(await log.entries(for: Self.owner).entries.map { $0.picture != nil } == [true, false, true, true])
        Self.call(log, "mine", Self.image())
        Self.call(log, "mine too")
        #expect(await Self.tools(log) == ["second", "e", "mine", "mine too"])
        #expect(await Self.tools(log, for: busy) == ["e"])
    }

    @Test func `of many grants with one call each, the newest are kept`() async {
        let log = Self.log(limit: 2)
        for grant in 1...5 { Self.call(log, "\(grant)", of: .holder(of: "g\(grant)", [.endpointCall]), Self.image()) }

        #expect(await Self.tools(log) == ["4", "5"])
    }

    @Test func `a grant sees its own calls, and an owner all`() async {
        let log = Self.log(limit: 10)
        let (one, other) = (
            Principal.holder(of: "g1", [.endpointCall]), Principal.holder(of: "g2", [.endpointCall])
        )
        Self.call(log, "a", of: one)
        Self.call(log, "b", of: other)
        Self.call(log, "c")

        #expect(await Self.tools(log, for: one) == ["a"])
        #expect(await Self.tools(log, for: other) == ["b"])
        #expect(await Self.tools(log) == ["a", "b", "c"])
        #expect(log.record(2, for: one) == nil && log.record(2, for: other) != nil)
        #expect(await Self.tools(log, for: Principal(.anonymous, source: .unix(uid: 1), actor: .anonymous)).isEmpty)
    }

    @Test(
        arguments: [
            (.success([:]), .ok), (.success(["isError": true]), .error),
            (.success(.toolFailure("…", code: "leased")), .refused),
            (.success(.toolFailure("…", code: "timeout")), .unknown),
            (.failure(AppError.notApproved), .refused), (.failure(AppError.responseLost), .unknown),
            (.failure(CancellationError()), .cancelled), (.failure(AppError.notMCP), .error),
        ] as [(Result<JSONObject, any Error>, ActivityEntry.Outcome)]
    )
    func `the outcome tells what happened to the call`(
        result: Result<JSONObject, any Error>,
        outcome: ActivityEntry.Outcome
    ) {
        #expect(ActivityEntry.Outcome(result) == outcome)
    }

    @Test func `calls are counted by phone, grant and hour, for a day`() {
        let start = Date(timeIntervalSince1970: 1_000_000_800)
        var counter = UsageCounter(startingAt: start)
        counter.record(isFailure: false, device: nil, grant: "g1", at: start)
        counter.record(isFailure: true, device: nil, grant: "g1", at: start + 3_600)
        counter.record(isFailure: true, device: nil, grant: "g2", at: start + 3_601)

        let now = start + 3_700
        #expect(counter.hours(ofGrant: nil, until: now).map(\.calls) == [1, 2])
        #expect(counter.hours(ofGrant: "g1", until: now).map(\.failures) == [0, 1])
        #expect(
            counter.grants(until: now) == [
                "g1": Usage.Counts(calls: 2, failures: 1), "g2": Usage.Counts(calls: 1, failures: 1),
            ]
        )
        #expect(
            counter.grants(until: start + 86_500) == [
                "g1": Usage.Counts(calls: 1, failures: 1), "g2": Usage.Counts(calls: 1, failures: 1),
            ]
        )
        #expect(counter.hours(ofGrant: nil, until: start + 200_000).count == 24)
    }

    @Test func `an entry survives its JSON`() async throws {
        let log = Self.log()
        let running = log.begin(
            "tap",
            ["password": "x", "n": 1],
            at: "shop-iphone",
            for: Self.owner,
            agent: SanitizedText("probe 1")
        )
        log.end(running, Self.image(Data(SampleImages.header(width: 120, height: 80)).base64EncodedString()))
        let reader = ActivityReader(log, images: ImageResizer(), artifacts: StoredImages())
        let entry = try #require(reader.described(await log.entries(for: Self.owner).entries).first)

        #expect(ActivityEntry(entry.json)?.json == entry.json)
        #expect(entry.call?.picture?.width == 120 && entry.call?.picture?.height == 80)
        #expect(entry.call?.client.agent?.text == "probe 1")
        let page = ActivityPage(limit: 3, oldest: 1, newest: 1, revision: 2, entries: [entry])
        #expect(ActivityPage(page.json)?.json == page.json)
    }

    @Test func `an image that a result only links has its thumbnail, for clients that may read it`() async throws {
        let screen = try #require(PNG.file(of: SampleImages.screen(width: 300, height: 600), limit: 1_000_000))
        let artifacts = StoredImages(images: ["feed": screen, "beef": Array(repeating: 7, count: 9)], reader: "g1")
        let log = Self.log(limit: 4)
        func link(_ sha: String, _ type: String) -> Result<JSONObject, any Error> {
            let size = JSON.number(JSONNumber(artifacts.images[sha]?.count ?? 1))
            let uri = JSON.string("patchbay://artifact/\(sha)")
            return .success([
                "content": [["type": "resource_link", "uri": uri, "mimeType": .string(type), "size": size]]
            ])
        }
        let holder = Principal.holder(of: "g1", [.endpointCall])
        for (sha, type) in [
            ("feed", "image/png"), ("beef", "image/png"), ("gone", "image/png"), ("feed", "text/plain"),
        ] {
            Self.call(log, sha, of: holder, link(sha, type))
        }
        let reader = ActivityReader(log, images: ImageResizer(), artifacts: artifacts)
        let records = await log.entries(for: holder).entries
        #expect(records.map { $0.picture != nil } == [true, true, true, false])
        let record = try #require(records.first)
        #expect(reader.described([record]).first?.call?.picture?.bytes == screen.count)
        let thumbnail = try #require(try await reader.file(of: record, width: 96, for: holder))
        #expect(try ImageFile(reading: thumbnail.bytes, within: ImageLimits()).width == 120)
        #expect(try await reader.file(of: record, width: nil, for: holder)?.bytes == screen)
        let stranger = Principal.holder(of: "g2", [.endpointCall])
        #expect(try await reader.file(of: record, width: nil, for: stranger) == nil)
        for other in records[1...] { #expect(try await reader.file(of: other, width: 96, for: holder) == nil) }
    }

    @Test func `a call that waits for a lease is listed from its beginning to its end`() async throws {
        let app = ScriptedApp.appReveal { _ in .result(["content": [["type": "text", "text": "done"]]]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let (turn, next) = AsyncStream.makeStream(of: Bool.self)
        let waiting = ToolCall(
            "tap",
            of: shop,
            takeLease: { () async throws(AppError) in
                for await isGranted in turn {
                    guard isGranted else { throw .leaseRefused(Problem(.limit, "there are too many leases")) }
                    return
                }
            }
        )

        async let first = fixture.call(waiting, of: fixture.owner)
        while await fixture.calls().map(\.outcome) != [.waiting] { await Task.yield() }
        // The measured time of the wait is at least this one.
        try await Task.sleep(for: .milliseconds(5))
        next.yield(true)
        #expect(await !first.isError)
        next.yield(false)
        let refused = await fixture.call(waiting, of: fixture.owner)

        #expect(refused.text.contains("shop cannot be leased: there are too many leases"))
        let calls = await fixture.calls()
        #expect(calls.map(\.outcome) == [.ok, .refused] && app.calls.count == 1)
        #expect(calls.first.map { $0.waitMilliseconds >= 5 } == true && calls.last?.durationMilliseconds == 0)
    }

    @Test func `calls of both ways to an app are recorded, with the error of a refused one`() async throws {
        let app = ScriptedApp.appReveal { _ in .result(["content": [["type": "text", "text": "done"]]]) }
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        _ = await fixture.call(ToolCall("tap", of: shop, arguments: ["token": "abc"]), of: fixture.owner)
        let handler = AppRequestHandler(shop.id, proxy: fixture.proxy)
        _ = try await handler.answer(MCPRequest("tools/call", ["name": "tap"]), of: fixture.owner)
        _ = try await fixture.leases.take(shop, for: .holder(of: "g", [.endpointCall]), seconds: 60)
        _ = await fixture.call(ToolCall("tap", of: shop), of: fixture.owner)

        let calls = await fixture.calls()

        #expect(calls.map(\.outcome) == [.ok, .ok, .refused])
        #expect(calls.first?.arguments == ["token": "[removed]"] && calls.first?.result?.text == "done")
    }
}

/// Artifacts that the holder of one grant may read.
private struct StoredImages: ArtifactReader {
    var images: [String: [UInt8]] = [:]
    var reader = ""

    func artifact(_ sha: String, for principal: Principal) -> Artifact? {
        principal.grant?.id == reader ? images[sha].map { Artifact(bytes: $0, mimeType: "image/png") } : nil
    }
}

extension AppProxyFixture {
    /// The calls in the activity.
    fileprivate func calls() async -> [ActivityEntry.Call] {
        await activity.entries(for: owner).entries.compactMap(\.entry.call)
    }
}
