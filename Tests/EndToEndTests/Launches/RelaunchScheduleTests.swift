import FoundationEssentials
import Model
import TestSupport
import Testing

/// Relaunches and swaps of two apps on the ports of one phone, in an order that a seed gives.
@Suite(.needs(.usbmuxd, .python), .timeLimit(.minutes(15))) struct RelaunchScheduleTests {
    /// The number of relaunches; 200 in the long form.
    private static var length: Int { ProcessInfo.processInfo.environment["PATCHBAY_SOAK"] == nil ? 24 : 200 }
    private static let seed: UInt64 = 28

    /// One of the two apps, and what the test knows about it.
    private struct App {
        let bundle: String
        var running: SampleApp
        var position: Int
        var id: EndpointID?
        /// All launches of the app.
        var launches: [SampleApp]
    }

    @Test func `relaunches and swaps send no token to a wrong app and create no second ID`() async throws {
        try await withScratchFolder { scratch in
            let phone = try await AppPhone(in: scratch)
            var random = SeededGenerator(seed: Self.seed)
            var count = 0
            func start(_ bundle: String, _ position: Int) async throws -> SampleApp {
                count += 1
                // Every second launch has no launch ID, as AppReveal 0.10.1.
                let boot = count.isMultiple(of: 2) ? "boot\(count)" : ""
                return try await phone.launch(bundle, boot: boot, isNamed: true, at: position)
            }
            var apps: [App] = []
            for (position, bundle) in ["com.example.cam", "com.example.shop"].enumerated() {
                let app = try await start(bundle, position)
                apps.append(App(bundle: bundle, running: app, position: position, launches: [app]))
            }
            func settle() async throws -> [Endpoint] {
                try await eventually("both apps are online at their ports") {
                    let online = try await phone.broker.endpoints().filter { $0.state == .online }
                    let ports = Set(online.flatMap { $0.routes.map(\.port) })
                    return online.count == 2 && ports == Set(phone.ports) ? online : nil
                }
            }
            for index in apps.indices { apps[index].id = try await Self.id(of: apps[index], in: settle(), phone) }
            let ids = apps.compactMap(\.id)
            var tunnels: [UInt16] = []
            for id in ids { tunnels.append(try await phone.broker.forward("tcp:0", "--endpoint", id.text)) }

            for _ in 0..<Self.length {
                let isSwap = Bool.random(using: &random)
                let changed = isSwap ? [0, 1] : [Int.random(in: 0...1, using: &random)]
                for index in changed { try await apps[index].running.quit() }
                if Bool.random(using: &random) {
                    try await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 0...2_500, using: &random)))
                }
                if isSwap { (apps[0].position, apps[1].position) = (apps[1].position, apps[0].position) }
                for index in changed {
                    apps[index].running = try await start(apps[index].bundle, apps[index].position)
                    apps[index].launches.append(apps[index].running)
                }
                let started = ContinuousClock.now
                _ = try await settle()
                for index in apps.indices {
                    do {
                        try await eventually("the tunnel follows its app") {
                            let health = try? await phone.broker.fetch("/health", port: tunnels[index])
                            return health?.contains(apps[index].bundle) == true
                        }
                    } catch {
                        let list = try await phone.broker.ask("list") + phone.broker.ask("tunnels")
                        Issue.record("\(list.joined(separator: "\n"))\n\(phone.broker.daemon.log)")
                        throw error
                    }
                }
                print("relaunch: tunnels followed after \(ContinuousClock.now - started)")
                for index in apps.indices {
                    try await phone.broker.setSecret(try #require(apps[index].running.token), of: ids[index].text)
                    let (isAccepted, log) = try await phone.call(ids[index])
                    guard !isAccepted || !log.contains(apps[index].bundle) else { continue }
                    let audit = try await phone.broker.ask("audit", "--last", "5").joined(separator: "\n")
                    Issue.record("\(log)\n\(audit)\n\(apps[index].running.program.log)")
                }
                // The schedule must not go on from a wrong state.
                try #require(try await Set(phone.broker.endpoints().map(\.id)) == Set(ids))
            }
            for app in apps.flatMap(\.launches) {
                #expect(Set(app.receivedTokens).isSubset(of: [try #require(app.token)]))
            }
        }
    }

    /// Returns the endpoint of an app, which is at the app's port.
    private static func id(of app: App, in endpoints: [Endpoint], _ phone: AppPhone) async throws -> EndpointID {
        try #require(endpoints.first { $0.routes.contains { $0.port == phone.ports[app.position] } }).id
    }
}
