import Devices
import Glibc
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Restarts of usbmuxd, which assigns DeviceIDs anew.
@Suite(.needs(.usbmuxd), .timeLimit(.minutes(3)), .scratchFolder) struct DeviceRestartTests {
    private let scratch = ScratchFolder.current

    /// Counts the results of connects.
    private final class ConnectResults: Sendable {
        private let counts = Mutex((right: 0, wrong: 0, failed: 0))

        var right: Int { counts.withLock { $0.right } }
        var wrong: Int { counts.withLock { $0.wrong } }
        var failed: Int { counts.withLock { $0.failed } }

        func reached(_ isRight: Bool) { counts.withLock { if isRight { $0.right += 1 } else { $0.wrong += 1 } } }
        func fail() { counts.withLock { $0.failed += 1 } }
    }

    /// Starts an app that sends the UDID of its phone.
    private static func nameServer(on udid: String, port: UInt16, in scratch: ScratchFolder) throws -> UInt16 {
        let server = try LoopbackServer(address: Phones.address(of: udid), port: port, in: scratch) { connection in
            _ = BlockingStream.send(Array(udid.utf8)[...], to: connection)
            var byte: UInt8 = 0
            while recv(connection, &byte, 1, 0) > 0 {}
        }
        return server.port
    }

    @Test(arguments: DeviceClientKind.allCases)
    func `connects during restarts that swap device IDs never reach the other phone`(
        kind: DeviceClientKind
    ) async throws {
        let port = try Self.nameServer(on: Phones.one, port: 0, in: scratch)
        _ = try Self.nameServer(on: Phones.two, port: port, in: scratch)
        let rig = try await UsbmuxdFixture(in: scratch)
        try await rig.attach(Phones.one, Phones.options(of: Phones.one))
        let results = ConnectResults()
        try await withDeviceSource(of: rig, kind.client(of: rig)) { source in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<4 {
                    let udid = index % 2 == 0 ? Phones.one : Phones.two
                    let route = try Phones.route(udid, port)
                    group.addTask {
                        while !Task.isCancelled {
                            do {
                                let carrier = try await source.planner.dial(route)
                                let name = try await carrier.receive(udid.utf8.count)
                                // An empty reply means that usbmuxd ended; it is not counted.
                                if !name.isEmpty { results.reached(Array(udid.utf8).starts(with: name)) }
                            } catch is DialError {
                                results.fail()
                                try await Task.sleep(for: .milliseconds(1))
                            }
                        }
                    }
                }
                // A single phone has DeviceID 1; after each restart the other phone has it.
                var plugged = Phones.one
                for round in 0..<8 {
                    let next = plugged == Phones.one ? Phones.two : Phones.one
                    if round % 2 == 0 { try await rig.kill() } else { try await rig.stop() }
                    try await rig.detach(plugged)
                    try await rig.attach(next, Phones.options(of: next))
                    try await rig.start()
                    plugged = next
                    try await source.lists([plugged])
                    let before = results.right
                    try await eventually("the phone is reached again") { results.right > before }
                }
                group.cancelAll()
            }
        }
        #expect(results.wrong == 0)
        #expect(results.right >= 8)
        #expect(results.failed > 0)
    }

    @Test func `a device ID from before a restart is refused even if usbmuxd would accept it`() async throws {
        let port = try Self.nameServer(on: Phones.two, port: 0, in: scratch)
        let rig = try await UsbmuxdFixture([Phones.one], in: scratch)
        let native = NativeUsbmuxClient(address: .unix(path: rig.socketPath))
        let swapping = InterruptedUsbmuxClient(native) {
            try await rig.kill()
            try await rig.detach(Phones.one)
            try await rig.attach(Phones.two, Phones.options(of: Phones.two))
            try await rig.start()
            try await eventually("usbmuxd lists the other phone") { try await native.listDevices().count == 1 }
        }
        try await withDeviceSource(of: rig, swapping) { source in
            try await source.lists([Phones.one])

            let failure = try await source.planner.failure(of: Phones.route(Phones.one, port))

            // usbmuxd accepted the old DeviceID, which now belongs to the other phone. On a slow machine this may happen twice.
            #expect(swapping.connected >= 1)
            #expect(failure?.reason == .deviceAbsent || failure?.reason == .usbmuxdAbsent)
        }
    }
}
