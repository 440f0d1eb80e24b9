import Model
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// The log and the processes of simulated phones behind the real adb server.
@Suite(.needs(.adb), .scratchFolder, .timeLimit(.minutes(3))) struct PhoneAppFollowerTests {
    private let scratch = ScratchFolder.current
    private static let token = String(repeating: "0123456789abcdef", count: 4)
    private static let other = String(repeating: "fedcba9876543210", count: 4)

    /// Follows one phone.
    private final class Phone: Sendable {
        let apps: AndroidApps
        let listener: LoopbackServer
        let reported = Mutex<[PhonePort]>([])
        let follower: PhoneAppFollower

        init(_ phone: AndroidPhone, _ rig: ADBFixture, apps: AndroidApps, in scratch: ScratchFolder) async throws {
            self.apps = apps
            listener = try LoopbackServer(address: phone.address, in: scratch) { _ in }
            let listed = await rig.listedSerial(of: phone.serial)
            let socketPath = rig.socketPath
            let (reports, continuation) = AsyncStream.makeStream(of: [PhonePort].self)
            follower = PhoneAppFollower(
                open: { request in
                    let address = ServerAddress.unix(path: socketPath)
                    let records = try await ADBClient(address: address).devices()
                    guard let record = records.first(where: { $0.serial.text == listed }) else {
                        throw DialError(.deviceAbsent, "gone")
                    }
                    let connection = try await ADBConnection(to: address)
                    try await connection.request(.transport(record.transportID))
                    try await connection.request(request)
                    return connection
                },
                logger: .quiet,
                report: { continuation.yield($0) }
            )
            self.reports = reports
        }

        private let reports: AsyncStream<[PhonePort]>

        func run() async {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.follower.run() }
                for await ports in reports { reported.withLock { $0 = ports } }
            }
        }

        var ports: [PhonePort] { reported.withLock { $0 } }
    }

    private func withPhones(
        _ count: Int = 1,
        _ body: @Sendable ([Phone], ADBFixture) async throws -> Void
    ) async throws {
        let known = [
            AndroidPhone("R58M12ABCDE", address: "127.0.1.11"), AndroidPhone("RZ8N90XYZ12", address: "127.0.1.12"),
        ]
        let rig = try await ADBFixture(in: scratch)
        var phones: [Phone] = []
        for var phone in known.prefix(count) {
            let apps = try AndroidApps(named: phone.serial, in: scratch)
            (phone.log, phone.apps) = (apps.logFile, apps.appsFile)
            try await rig.attach(phone)
            phones.append(try await Phone(phone, rig, apps: apps, in: scratch))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for phone in phones { group.addTask { await phone.run() } }
            defer { group.cancelAll() }
            try await body(phones, rig)
        }
    }

    private func shop(_ phone: Phone, process: UInt32 = 4_711) -> AndroidApps.App {
        AndroidApps.App("com.example.shop", processID: process, user: 10_234, ports: [phone.listener.port])
    }

    @Test func `an app's port, package and token are known, before and after its line, and after a relaunch`()
        async throws
    {
        try await withPhones { phones, rig in
            let phone = phones[0]
            try phone.apps.set([shop(phone)])
            try await eventually("the port is known by its process") {
                phone.ports.map(\.port) == [phone.listener.port]
            }
            #expect(phone.ports.first?.app?.text == "com.example.shop")
            #expect(phone.ports.first?.announcement == nil)

            try phone.apps.log(AndroidApps.sessionURL(port: phone.listener.port, token: Self.token), by: shop(phone))
            let bound = try await eventually("the token is known") { phone.ports.first { $0.announcement != nil } }
            #expect(bound.announcement?.reveal() == Self.token && bound.app?.text == "com.example.shop")
            #expect(await phone.follower.isOwner(of: bound))

            let relaunched = shop(phone, process: 4_712)
            try phone.apps.set([relaunched])
            try await eventually("the token of the first launch is forgotten") {
                phone.ports.allSatisfy { $0.announcement == nil }
            }
            #expect(await phone.follower.isOwner(of: bound) == false)
            try phone.apps.log(AndroidApps.sessionURL(port: phone.listener.port, token: Self.other), by: relaunched)
            try await eventually("the token of the second launch is known") {
                phone.ports.first?.announcement?.reveal() == Self.other
            }

            try phone.apps.set([])
            try await eventually("the end of the app is known") { phone.ports.isEmpty }
        }
    }

    @Test func `a line of another app, a wrong port and long lines give nothing`() async throws {
        try await withPhones { phones, rig in
            let phone = phones[0]
            let evil = AndroidApps.App("com.example.evil", processID: 6_666, user: 10_666)
            try phone.apps.set([shop(phone), evil])
            try phone.apps.log(AndroidApps.sessionURL(port: phone.listener.port, token: Self.other), by: evil)
            try phone.apps.log(AndroidApps.sessionURL(port: 1, token: Self.other), by: shop(phone))
            let long = String(repeating: "x", count: 1 << 20)
            try phone.apps.log(
                long + AndroidApps.sessionURL(port: phone.listener.port, token: Self.other),
                by: shop(phone)
            )
            try await eventually("the port is known") { phone.ports.map(\.port) == [phone.listener.port] }
            try await Task.sleep(for: .seconds(1))
            #expect(phone.ports.allSatisfy { $0.announcement == nil })

            try phone.apps.log(AndroidApps.sessionURL(port: phone.listener.port, token: Self.token), by: shop(phone))
            try await eventually("its own line counts") { phone.ports.first?.announcement?.reveal() == Self.token }
        }
    }

    @Test func `10,000 lines a second on one phone do not slow another one`() async throws {
        try await withPhones(2) { phones, rig in
            let (noisy, quiet) = (phones[0], phones[1])
            let evil = AndroidApps.App("com.example.evil", processID: 6_666, user: 10_666)
            try noisy.apps.set([shop(noisy), evil])
            try quiet.apps.set([shop(quiet)])
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    while !Task.isCancelled {
                        let lines = (0..<500).map { _ in
                            AndroidApps.line(
                                AndroidApps.sessionURL(port: .random(in: 1...UInt16.max), token: Self.other),
                                by: evil
                            )
                        }
                        try noisy.apps.logRaw(lines.joined())
                        try await Task.sleep(for: .milliseconds(50))
                    }
                }
                defer { group.cancelAll() }
                try await Task.sleep(for: .seconds(2))
                let begin = ContinuousClock.now
                try quiet.apps.log(
                    AndroidApps.sessionURL(port: quiet.listener.port, token: Self.token),
                    by: shop(quiet)
                )
                try await eventually("the quiet phone's token is known") { quiet.ports.first?.announcement != nil }
                #expect(begin.duration(to: .now) < .seconds(2))

                try noisy.apps.log(
                    AndroidApps.sessionURL(port: noisy.listener.port, token: Self.token),
                    by: shop(noisy)
                )
                try await eventually("the noisy phone's own app is found too") {
                    noisy.ports.contains { $0.announcement?.reveal() == Self.token }
                }
            }
            #expect(noisy.ports.allSatisfy { $0.announcement == nil || $0.announcement?.reveal() == Self.token })
        }
    }

    @Test func `a phone that was away is read again`() async throws {
        try await withPhones { phones, rig in
            let phone = phones[0]
            try phone.apps.set([shop(phone)])
            try phone.apps.log(AndroidApps.sessionURL(port: phone.listener.port, token: Self.token), by: shop(phone))
            try await eventually("the token is known") { phone.ports.first?.announcement != nil }
            try await rig.restart()
            try phone.apps.log(AndroidApps.sessionURL(port: phone.listener.port, token: Self.other), by: shop(phone))
            try await eventually("a later line is read") { phone.ports.first?.announcement?.reveal() == Self.other }
        }
    }
}
