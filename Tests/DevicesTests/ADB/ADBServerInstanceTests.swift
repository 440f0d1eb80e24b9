import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Devices

/// Transports that may lead to another phone, with the real adb server.
@Suite(.needs(.adb), .scratchFolder, .timeLimit(.minutes(3))) struct ADBServerInstanceTests {
    private let scratch = ScratchFolder.current

    /// Follows the lists of a server, and reads the serial of each new attachment.
    private final class Follower: ADBTransportSource {
        let instance: ADBServerInstance
        private let client: ADBClient
        private let phones = Mutex<[String: ADBServerInstance.Attachment]>([:])

        init(_ rig: ADBFixture) async throws {
            let address = ServerAddress.unix(path: rig.socketPath)
            client = ADBClient(address: address)
            instance = try await ADBServerInstance(at: address)
        }

        func run() async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [self] in await instance.answerChecks(list: client.devices) }
                while true {
                    let attachments = try await instance.nextList().compactMap(\.attachment)
                    phones.withLock { $0 = [:] }
                    for attachment in attachments {
                        let serial = try? await client.output(of: "getprop ro.serialno", on: attachment.id)
                        guard let serial, instance.isCurrent(attachment) else { continue }
                        phones.withLock { $0[String(serial.prefix { !$0.isNewline })] = attachment }
                    }
                }
            }
        }

        func attachment(of serial: String) -> ADBServerInstance.Attachment? { phones.withLock { $0[serial] } }

        func transport(of udid: UDID) async throws(DialError) -> ADBTransport {
            let serial = RigTransports.udids.first { $0.value == udid }?.key ?? ""
            guard let attachment = attachment(of: serial) else {
                throw DialError(.deviceAbsent, "\(serial) is not attached")
            }
            return ADBTransport(
                attachment.id,
                at: instance.address,
                of: instance,
                name: SanitizedText(serial),
                isCurrent: { [instance] in instance.isCurrent(attachment) },
                linkCheck: { [instance] in instance.check(attachment, $0) }
            )
        }
    }

    /// The number of streams by what the app sent.
    private final class Answers: Sendable {
        let counts = Mutex<[String: Int]>([:])
    }

    private func withFollower(of rig: ADBFixture, _ body: @Sendable (Follower) async throws -> Void) async throws {
        let follower = try await Follower(rig)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try? await follower.run() }
            defer { group.cancelAll() }
            try await body(follower)
        }
    }

    @Test func `an attachment is current until the phone leaves, and a replug is another one`() async throws {
        let phone = AndroidPhone("R58M12ABCDE")
        let rig = try await ADBFixture([phone], in: scratch)
        try await withFollower(of: rig) { follower in
            let first = try await eventually("the phone is known") { follower.attachment(of: phone.serial) }
            #expect(follower.instance.isCurrent(first))
            #expect(await isReachable(first, follower))

            try await rig.detach(phone.serial)
            try await eventually("it has left") { !follower.instance.isCurrent(first) }
            #expect(await isReachable(first, follower) == false)
            try await rig.attach(phone)

            let second = try await eventually("it is back") { follower.attachment(of: phone.serial) }
            #expect(second != first && follower.instance.isCurrent(second))
            #expect(!follower.instance.isCurrent(first))
            follower.instance.close()
            #expect(!follower.instance.isCurrent(second))
            #expect(await isReachable(second, follower) == false)
        }
    }

    private func isReachable(_ attachment: ADBServerInstance.Attachment, _ follower: Follower) async -> Bool {
        await withCheckedContinuation { continuation in
            follower.instance.check(attachment) { continuation.resume(returning: $0) }
        }
    }

    @Test func `no stream reaches another phone that takes the transport over TCP`() async throws {
        let one = AndroidPhone("R58M12ABCDE", attachment: .tcp)
        let two = AndroidPhone("RZ8N90XYZ12", attachment: .tcp, address: "127.0.1.2")
        let right = try LoopbackServer(in: scratch) { _ = BlockingStream.send(Array("right".utf8)[...], to: $0) }
        _ = try LoopbackServer(address: two.address, port: right.port, in: scratch) {
            _ = BlockingStream.send(Array("wrong".utf8)[...], to: $0)
        }
        let rig = try await ADBFixture([one], in: scratch)
        let target = USBRoute(udid: try #require(RigTransports.udids[one.serial]), port: right.port)
        let answers = Answers()
        try await withFollower(of: rig) { follower in
            let planner = ADBPlanner(follower)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        while !Task.isCancelled {
                            guard let stream = try? await planner.dial(.usb(target)) else {
                                try await Task.sleep(for: .milliseconds(1))
                                continue
                            }
                            let text = String(decoding: try await stream.receive(5), as: UTF8.self)
                            answers.counts.withLock { $0[text, default: 0] += 1 }
                        }
                    }
                }
                for round in 0..<4 {
                    try await eventually("the first phone answers") {
                        answers.counts.withLock { $0["right", default: 0] } > 0
                    }
                    let (old, new) = round % 2 == 0 ? (one, two) : (two, one)
                    try await rig.replace(old.serial, by: new)
                    try await eventually("the phone is known") { follower.attachment(of: new.serial) != nil }
                    if round % 2 == 1 { answers.counts.withLock { $0["right"] = nil } }
                }
                group.cancelAll()
                while let result = await group.nextResult() {
                    if case .failure(let error) = result, !(error is CancellationError) { throw error }
                }
            }
        }
        #expect(answers.counts.withLock { $0["wrong"] } == nil)
    }
}
