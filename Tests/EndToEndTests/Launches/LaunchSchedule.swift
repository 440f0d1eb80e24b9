import Model
import TestSupport
import Testing

/// Two apps on the three probed ports of a phone, and what happens to them, to the phone and to usbmuxd, in an order that a
/// seed gives.
struct LaunchSchedule {
    /// What happens in one step. Each round has every step once.
    enum Step: CaseIterable {
        /// An app ends and starts again on its port.
        case relaunch
        /// An app ends and starts again on the port that is free.
        case move
        /// Both apps end, and each starts again on the port of the other one.
        case swap
        /// An app stalls in the middle of three large answers.
        case stall
        case unplug, kill, restart, freeze
    }

    /// One of the apps, and what is known about it.
    private struct App {
        let bundle: String
        let id: EndpointID
        let tunnel: UInt16
        var running: SampleApp
        var position: Int
        /// All launches of the app.
        var launches: [SampleApp]
    }

    /// The longest call of an app during a step that does not affect it.
    private(set) var longestOther = Duration.zero
    /// The longest time from the end of a step until both tunnels led to their apps, for each step.
    private(set) var longestReturns: [Step: Duration] = [:]
    private(set) var counts: [Step: Int] = [:]

    private let phone: AppPhone
    private var faults: FaultSchedule
    private var random: SeededGenerator
    /// The rest of the current round.
    private var round: [Step] = []
    private var apps: [App] = []
    private var launchCount = 0

    /// The bounds. Most of the time of a call starts the command.
    private static let otherLimit = Duration.seconds(5)
    private static let stallTimeout = 3

    /// Starts the apps and opens a tunnel to each.
    init(on phone: AppPhone, seed: UInt64) async throws {
        self.phone = phone
        random = SeededGenerator(seed: seed)
        faults = FaultSchedule(on: phone.rig, phones: [(AppPhone.udid, phone.options)], seed: seed)
        for (position, bundle) in ["com.example.cam", "com.example.shop"].enumerated() {
            let app = try await launch(bundle, at: position)
            let port = phone.ports[position]
            let id = try await eventually("the app is online") {
                try await phone.broker.endpoints().first {
                    $0.state == .online && $0.routes.contains { $0.port == port }
                }
            }.id
            let tunnel = try await phone.broker.forward("tcp:0", "--endpoint", id.text)
            apps.append(App(bundle: bundle, id: id, tunnel: tunnel, running: app, position: position, launches: [app]))
        }
        try await check()
    }

    /// Runs one step, and checks that every app kept its identity.
    mutating func runStep() async throws {
        if round.isEmpty { round = Step.allCases.shuffled(using: &random) }
        let step = round.removeLast()
        counts[step, default: 0] += 1
        let index = Int.random(in: 0...1, using: &random)
        let pause = Bool.random(using: &random) ? Int.random(in: 0...2_500, using: &random) : 0
        switch step {
        case .relaunch: try await relaunch([index: apps[index].position], after: pause)
        case .move: try await relaunch([index: 3 - apps[0].position - apps[1].position], after: pause)
        case .swap: try await relaunch([0: apps[1].position, 1: apps[0].position], after: pause)
        case .stall: try await stall(index)
        case .unplug: try await perform(.unplug(AppPhone.udid))
        case .kill: try await perform(.kill)
        case .restart: try await perform(.restart)
        case .freeze: try await perform(.freeze)
        }
        let time = try await check("after \(step)")
        longestReturns[step] = max(longestReturns[step] ?? .zero, time)
    }

    private mutating func launch(_ bundle: String, at position: Int) async throws -> SampleApp {
        launchCount += 1
        // Every second launch has no launch ID, as AppReveal 0.10.1.
        let boot = launchCount.isMultiple(of: 2) ? "boot\(launchCount)" : ""
        return try await phone.launch(bundle, boot: boot, isNamed: true, at: position)
    }

    /// Ends apps, and starts each at its new position after a pause in milliseconds. Another app is called meanwhile.
    private mutating func relaunch(_ positions: [Int: Int], after pause: Int) async throws {
        let calls = try await startCalls(of: apps.indices.filter { positions[$0] == nil })
        let start = ContinuousClock.now
        async let times = Self.times(of: calls, since: start)
        for index in positions.keys.sorted() { try await apps[index].running.quit() }
        try await ContinuousClock().sleep(for: .milliseconds(pause))
        for (index, position) in positions.sorted(by: { $0.key < $1.key }) {
            apps[index].position = position
            apps[index].running = try await launch(apps[index].bundle, at: position)
            apps[index].launches.append(apps[index].running)
        }
        record(try await times)
    }

    /// Lets an app stall in the middle of large answers, and calls both apps meanwhile.
    private mutating func stall(_ index: Int) async throws {
        let (app, timeout) = (apps[index], Self.stallTimeout)
        var calls: [Program] = []
        for _ in 0..<3 {
            let seen = app.running.program.transcript.soFar.count
            // The schema of the tool does not mention this argument.
            let words = [
                "call", app.id.text, "wait", "--json-args", #"{"stall": 6000000}"#, "--timeout", "\(timeout)s",
            ]
            calls.append(try await phone.broker.start(words))
            try await app.running.program.waitForLine("stalled", from: seen)
        }
        let start = ContinuousClock.now
        record(try await Self.times(of: startCalls(of: apps.indices), since: start))
        for call in calls {
            #expect(try await call.exitStatus(within: .seconds(timeout) + Self.otherLimit) != .exited(0), "\(call.log)")
        }
    }

    /// Runs a fault of the phone or of usbmuxd during a call, which ends in any case.
    private mutating func perform(_ event: FaultSchedule.Event) async throws {
        let app = apps[Int.random(in: 0...1, using: &random)]
        let call = try await phone.broker.start("call", app.id.text, "wait", "seconds=1", "--timeout", "10s")
        try await faults.perform(event)
        _ = try await call.exitStatus(within: .seconds(20))
    }

    private func startCalls(of indices: some Sequence<Int>) async throws -> [Program] {
        var calls: [Program] = []
        for index in indices {
            calls.append(try await phone.broker.start("call", apps[index].id.text, "launch_context", "--wait", "2s"))
        }
        return calls
    }

    /// Waits for calls of apps that the current step does not affect, and returns the time of each.
    private static func times(of calls: [Program], since start: ContinuousClock.Instant) async throws -> [Duration] {
        var times: [Duration] = []
        for call in calls {
            #expect(try await call.exitStatus() == .exited(0), "\(call.log)")
            times.append(ContinuousClock.now - start)
        }
        return times
    }

    private mutating func record(_ times: [Duration]) {
        #expect(times.allSatisfy { $0 < Self.otherLimit }, "\(times)")
        longestOther = max(longestOther, times.max() ?? .zero)
    }

    /// Checks that there is one ID for each app, that its tunnel leads to it, that it accepts its token, and that no app
    /// received the token of another launch.
    ///
    /// - Returns: The time until both tunnels led to their apps.
    @discardableResult
    private func check(_ comment: String = "at the start") async throws -> Duration {
        let start = ContinuousClock.now
        try await eventually("each app is online at its port \(comment)") {
            let online = try await phone.broker.endpoints().filter { $0.state == .online }
            return apps.allSatisfy { app in
                online.contains { $0.id == app.id && $0.routes.contains { $0.port == phone.ports[app.position] } }
            }
        }
        for app in apps {
            try await eventually("the tunnel leads to \(app.bundle) \(comment)") {
                let health = try? await phone.broker.fetch("/health", port: app.tunnel)
                return health?.contains(app.bundle) == true
            }
        }
        let time = ContinuousClock.now - start
        for app in apps {
            try await phone.broker.setSecret(try #require(app.running.token), of: app.id.text)
            let (isAccepted, log) = try await phone.call(app.id)
            #expect(isAccepted && log.contains(app.bundle), "\(comment): \(log)\n\(app.running.program.log)")
            for launch in app.launches {
                #expect(Set(launch.receivedTokens).isSubset(of: [try #require(launch.token)]), "\(comment)")
            }
        }
        // The schedule must not go on from a wrong state.
        let ids = try await Set(phone.broker.endpoints().map(\.id))
        try #require(ids == Set(apps.map(\.id)), "\(comment): \(ids)\n\(phone.broker.daemon.log)")
        return time
    }
}
