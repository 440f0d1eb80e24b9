import FoundationEssentials
import Glibc
import Model
import Synchronization
import TestSupport
import Testing

/// `patchbay log` with the real adb server and simulated phones.
@Suite(.needs(.adb, .usbmuxd, .python), .timeLimit(.minutes(3)), .scratchFolder) struct PhoneLogTests {
    private let scratch = ScratchFolder.current
    private static let configuration = "[api]\ntcp = false\n"
    private static let udid = "android-R58M12ABCDE"

    /// A phone with two apps that have debug servers, and a broker that lists both.
    private struct Bench {
        let phone: AndroidPhone
        let apps: AndroidApps
        let shop: AndroidApps.App
        let bank: AndroidApps.App
        let android: ADBFixture
        let broker: RunningBroker
        let servers: [SampleApp]

        init(
            in scratch: ScratchFolder,
            configuration: String = PhoneLogTests.configuration,
            _ change: (inout AndroidPhone) -> Void = { _ in }
        ) async throws {
            apps = try AndroidApps(in: scratch)
            var phone = AndroidPhone("R58M12ABCDE", address: PhoneOptions.loopback)
            (phone.log, phone.apps) = (apps.logFile, apps.appsFile)
            change(&phone)
            self.phone = phone
            let first = try await SampleApp(mode: .android, address: phone.address, in: scratch)
            let second = try await SampleApp("com.example.bank", mode: .android, address: phone.address, in: scratch)
            servers = [first, second]
            shop = .init(first.bundle, processID: 4_711, user: 10_234, ports: [first.port])
            bank = .init(second.bundle, processID: 4_712, user: 10_235, ports: [second.port])
            try apps.set([shop, bank])
            try apps.log(AndroidApps.sessionURL(port: first.port, token: first.token ?? ""), by: shop)
            try apps.log(AndroidApps.sessionURL(port: second.port, token: second.token ?? ""), by: bank)
            android = try await ADBFixture([phone], in: scratch)
            broker = try await RunningBroker(in: scratch, android: android, configuration: configuration)
            try await eventually("both apps are listed with their tokens") { [broker] in
                try await broker.endpoints().count { $0.routes.contains(where: \.isSecretHeld) } == 2
            }
        }

        /// Creates a grant with a socket of its own. Returns a function that starts `patchbay` with it.
        func grant(_ options: String..., in scratch: ScratchFolder) async throws
            -> (_ words: String...) async throws -> Program
        {
            let socket = scratch.file("grant-\(UInt32.random(in: 0 ... .max)).sock")
            let pair = try await broker.start(["pair", "--socket", socket] + options)
            #expect(try await pair.exitStatus() == .exited(0), "\(pair.log)")
            return { (words: String...) in
                try await Program(
                    Executable.built("patchbay"),
                    words,
                    in: scratch,
                    environment: ["PATCHBAY_SOCKET": socket, "HOME": scratch.path]
                )
            }
        }

        /// The number of `logcat`s that go on for readers, beside the one that looks for tokens.
        func logcats() async -> Int {
            let lines = await android.output(of: phone.serial).split(separator: "\n").filter {
                !$0.contains("-s AppReveal")
            }
            return lines.count { $0.contains("logcat begins") } - lines.count { $0.contains("logcat ends") }
        }
    }

    private static func line(_ text: String, at second: Int, by app: AndroidApps.App, level: String = "I") -> String {
        let time = "11-26 10:\(10 + second / 60):\(10 + second % 60).\(100 + second % 900)"
        return "\(time) \(app.user) \(app.processID) \(app.processID) \(level) Shop    : \(text)\n"
    }

    @Test(arguments: [false, true])
    func `the log of an app has its lines alone, without tokens, also with a logcat that cannot filter`(isOld: Bool)
        async throws
    {
        let bench = try await Bench(in: scratch) { $0.hasOldLogcat = isOld }
        let (apps, broker) = (bench.apps, bench.broker)
        try apps.logRaw(Self.line("first\tword \u{1B}[31mred", at: 1, by: bench.shop, level: "E"))
        try apps.logRaw(Self.line("of the bank", at: 2, by: bench.bank))
        try apps.logRaw("11-26 10:10:13.000  root     1     1 I init    : of the system\n")
        try apps.logRaw(Self.line("http://127.0.0.1:41321/EMYU73JbR-A=/ password=hunter2", at: 4, by: bench.shop))

        let shown = try await broker.ask("log", "shop-pixel-8")
        #expect(shown.count == 3, "\(shown)")
        #expect(shown[0].hasSuffix("appreveal_session_token=[removed]"), "\(shown)")
        #expect(shown[1] == "11-26 10:10:11.101  4711 E Shop: first    word \u{FFFD}[31mred")
        #expect(shown[2].hasSuffix("Shop: http://127.0.0.1:41321/[removed]/ password=[removed]"), "\(shown)")
        #expect(try await broker.ask("log", "shop-pixel-8", "--lines", "1") == [shown[2]])
        let json = try await broker.ask("log", "com.example.shop", "-n", "2", "--json")
        #expect(json.count == 2 && json[0].contains(#""level":"E""#) && json[0].contains(#""uid":"10234""#), "\(json)")

        let whole = try await broker.ask("log", Self.udid)
        #expect(whole.count == 6 && whole.contains { $0.hasSuffix("init: of the system") }, "\(whole)")
        for server in bench.servers { #expect(!whole.joined().contains(server.token ?? "?")) }
        #expect(try await broker.ask("log", Self.udid, "-n", "2").count == 2)
        #expect(await bench.logcats() == 0)
    }

    @Test func `a grant gets the lines of its app, and none of another app, a phone or a shared user`() async throws {
        let bench = try await Bench(in: scratch)
        try bench.apps.logRaw(Self.line("of the shop", at: 1, by: bench.shop))
        try bench.apps.logRaw(Self.line("of the bank", at: 2, by: bench.bank))
        let run = try await bench.grant("--endpoint", "shop-pixel-8", in: scratch)

        let own = try await run("log", "shop-pixel-8")
        #expect(try await own.exitStatus() == .exited(0))
        #expect(own.output.count == 2 && own.output[1].hasSuffix("Shop: of the shop"), "\(own.log)")
        let other = try await run("log", "bank-pixel-8")
        #expect(try await other.exitStatus() != .exited(0))
        let phone = try await run("log", Self.udid)
        #expect(try await phone.exitStatus() != .exited(0))
        #expect(phone.log.contains("only an owner"), "\(phone.log)")

        let named = try await bench.grant("--endpoint", "shop-pixel-8", "--tool", "screenshot", in: scratch)
        let refused = try await named("log", "shop-pixel-8")
        #expect(try await refused.exitStatus() != .exited(0))
        #expect(refused.log.contains("the log is none of them"), "\(refused.log)")

        var shared = bench.bank
        shared.user = bench.shop.user
        try bench.apps.set([bench.shop, shared])
        let both = try await run("log", "shop-pixel-8")
        #expect(try await both.exitStatus() != .exited(0))
        #expect(both.log.contains("shares its user") && both.output.isEmpty, "\(both.log)")
        #expect(try await bench.broker.ask("log", "shop-pixel-8").count == 2)
    }

    @Test func `the log of an app that has ended is read, and a port that another app took gives nothing`() async throws
    {
        let bench = try await Bench(in: scratch)
        try bench.apps.logRaw(Self.line("FATAL EXCEPTION: main", at: 1, by: bench.shop, level: "E"))
        let run = try await bench.grant("--endpoint", "shop-pixel-8", in: scratch)
        // The bank's app has the port of the shop's.
        var taken = bench.bank
        taken.ports += bench.shop.ports
        try bench.apps.set([taken])
        let thief = try await run("log", "shop-pixel-8")
        #expect(try await thief.exitStatus() != .exited(0))
        #expect(thief.output.isEmpty && thief.log.contains("does not confirm"), "\(thief.log)")

        var ended = bench.shop
        (ended.processID, ended.ports) = (0, [])
        try bench.apps.set([ended, bench.bank])
        try await bench.servers[0].quit()
        try await eventually("the app is offline") {
            try await bench.broker.endpoints().contains { $0.id.text == "shop-pixel-8" && $0.state == .offline }
        }
        let crash = try await run("log", "shop-pixel-8")
        #expect(try await crash.exitStatus() == .exited(0), "\(crash.log)")
        #expect(crash.output.last?.contains("E Shop: FATAL EXCEPTION: main") == true, "\(crash.log)")
        try await bench.broker.restart()
        try await eventually("the phone is listed") { try await bench.broker.devices().contains { $0.isReady } }
        #expect(try await bench.broker.ask("log", "shop-pixel-8").count == 2)
    }

    @Test func `follow goes on after a replug without a lost or a repeated line, and ends the phone's logcat`()
        async throws
    {
        let bench = try await Bench(in: scratch)
        let follow = try await bench.broker.start("log", "shop-pixel-8", "--follow")
        try await follow.waitForLine("appreveal_session_token")
        for number in 0..<5 { try bench.apps.logRaw(Self.line("line \(number)", at: number, by: bench.shop)) }
        try await follow.waitForLine("line 4")
        #expect(await bench.logcats() == 1)

        try await bench.android.detach(bench.phone.serial)
        try await follow.waitForLine("is not attached any more")
        for number in 5..<10 { try bench.apps.logRaw(Self.line("line \(number)", at: number, by: bench.shop)) }
        try bench.apps.logRaw(Self.line("of the bank", at: 10, by: bench.bank))
        try await bench.android.attach(bench.phone)
        try await follow.waitForLine("is back")
        try await follow.waitForLine("line 9")
        try bench.apps.logRaw(Self.line("line 10", at: 11, by: bench.shop))
        try await follow.waitForLine("line 10")
        let numbers = follow.output.compactMap { $0.split(separator: "line ").last.flatMap { Int($0) } }
        #expect(numbers == Array(0...10), "\(follow.log)")
        #expect(!follow.log.contains("of the bank"))

        follow.send(SIGINT)
        _ = try await follow.exitStatus()
        try await eventually("no logcat of a reader runs on the phone") { await bench.logcats() == 0 }
    }

    @Test func `follow goes on with the process of an app that is started again, and says so once`() async throws {
        let bench = try await Bench(in: scratch)
        let follow = try await bench.broker.start("log", "shop-pixel-8", "--follow")
        try await follow.waitForLine("appreveal_session_token")
        try bench.apps.logRaw(Self.line("before", at: 1, by: bench.shop))
        try await follow.waitForLine("Shop: before")

        try bench.apps.set([bench.bank])
        try await bench.servers[0].quit()
        try await eventually("the app is offline") {
            try await bench.broker.endpoints().contains { $0.id.text == "shop-pixel-8" && $0.state == .offline }
        }
        let server = try await SampleApp(mode: .android, address: bench.phone.address, in: scratch)
        var again = bench.shop
        (again.processID, again.ports) = (4_812, [server.port])
        try bench.apps.set([again, bench.bank])
        try bench.apps.log(AndroidApps.sessionURL(port: server.port, token: server.token ?? ""), by: again)
        for number in 0..<3 { try bench.apps.logRaw(Self.line("again \(number)", at: 2 + number, by: again)) }
        try bench.apps.logRaw(Self.line("of the bank", at: 5, by: bench.bank))
        try bench.apps.logRaw(Self.line("the end", at: 6, by: again))

        try await follow.waitForLine("Shop: the end")
        let notes = follow.log.split(separator: "\n").filter {
            $0.hasSuffix("com.example.shop has started as process 4812")
        }
        #expect(notes.count == 1 && !follow.output.joined().contains("has started"), "\(follow.log)")
        #expect(follow.output.suffix(4).map { String($0.suffix(7)) } == ["again 0", "again 1", "again 2", "the end"])
        #expect(!follow.log.contains("of the bank"))
        try await eventually("the app is online with its new token") {
            try await bench.broker.endpoints().contains { endpoint in
                endpoint.id.text == "shop-pixel-8" && endpoint.state == .online
                    && endpoint.routes.contains(where: \.isSecretHeld)
            }
        }
    }

    @Test func `a flood to a slow reader costs no memory, and another phone's tunnel stays quick`() async throws {
        let bench = try await Bench(in: scratch)
        let echo = try EchoServer(in: scratch)
        let other = AndroidPhone("RZ8N90XYZ12")
        try await bench.android.attach(other)
        try await eventually("the other phone is listed") { try await bench.broker.devices().count == 2 }
        let port = try await bench.broker.forward("tcp:0:\(echo.port)", "--device", "android-RZ8N90XYZ12")
        let follow = try await bench.broker.start("log", "shop-pixel-8", "--follow")
        try await follow.waitForLine("appreveal_session_token")
        follow.freeze()
        let before = try Self.memory(of: bench.broker.daemon)

        try bench.apps.logRaw(Self.line(String(repeating: "x", count: 1 << 20), at: 0, by: bench.shop))
        let text = String(repeating: "y", count: 150)
        for second in 1...10 {
            let lines = (0..<10_000).map { _ in Self.line(text, at: second, by: bench.shop) }
            try bench.apps.logRaw(lines.joined())
            #expect(await LoopbackClient.echoes(100_000, from: port, within: .seconds(2)))
        }
        try bench.apps.logRaw(Self.line("the end", at: 11, by: bench.shop))
        let grown = try Self.memory(of: bench.broker.daemon) - before
        #expect(grown < 64 << 20, "\(grown) bytes")
        follow.thaw()
        try await follow.waitForLine("the end", within: .seconds(60))
        try await follow.waitForLine("lines were dropped here")
        #expect(follow.output.allSatisfy { $0.utf8.count < 9_000 })
        print("log memory: \(grown) bytes; \(follow.output.count) lines shown")
    }

    private static func memory(of program: Program) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(program.processID)/statm", encoding: .utf8)
        return (Int(status.split(separator: " ")[1]) ?? 0) * 4_096
    }

    @Test func `an agent reads the log of an app as a resource`() async throws {
        let bench = try await Bench(in: scratch)
        let padding = String(repeating: "z", count: 1_000)
        for number in 0..<600 { try bench.apps.logRaw(Self.line("\(number) \(padding)", at: number, by: bench.shop)) }
        let agent = try await bench.broker.start("mcp", input: .pipe)
        func ask(_ number: Int, _ method: String, _ params: String) async throws -> String {
            try agent.write(#"{"jsonrpc":"2.0","id":\#(number),"method":"\#(method)","params":\#(params)}"# + "\n")
            return try await agent.waitForLine(#"{"jsonrpc":"2.0","id":\#(number),"#)
        }
        let uri = "patchbay://endpoint/shop-pixel-8/log"
        #expect(try await ask(1, "resources/list", "{}").contains(#""\#(uri)""#))
        let read = try await ask(2, "resources/read", #"{"uri":"\#(uri)"}"#)
        #expect(read.contains("Shop: 599 zz") && !read.contains("Shop: 500 zz"), "\(read.prefix(500))")
        #expect((60_000...70_000).contains(read.utf8.count), "\(read.utf8.count)")
    }

    @Test func `iPhones, a broker without read_logs and wrong names get a helpful message`() async throws {
        let phones = try await UsbmuxdFixture([Phones.one], in: scratch)
        let android = try await ADBFixture([AndroidPhone("R58M12ABCDE")], in: scratch)
        let broker = try await RunningBroker(
            in: scratch,
            phones: phones,
            android: android,
            configuration: Self.configuration + "[devices]\nread_logs = false\n"
        )
        try await eventually("both are listed") { try await broker.devices().count == 2 }
        for (subject, words) in [
            (Phones.one, "reads the logs of Android phones only"), (Self.udid, "devices.read_logs"),
            ("nothing", "no endpoint matches"),
        ] {
            let log = try await broker.start("log", subject)
            #expect(try await log.exitStatus() != .exited(0))
            #expect(log.log.contains(words), "\(log.log)")
        }
    }
}
