import Glibc
import Synchronization
import SystemIO
import TestSupport

/// A simulated phone with an app that sends the phone's UDID, and a client that reads it again and again through a
/// tunnel of a broker.
final class PhoneReader: Sendable {
    let udid: String
    let options: PhoneOptions
    private let path: String
    private let port: UInt16
    /// The number of streams that `run` has begun.
    private let streams = Atomic(0)
    /// The number of each stream, and the UDID that it brought; empty for a stream that failed.
    private let results = Replay<(stream: Int, udid: String)>()

    /// Starts the app. The apps of different phones have different addresses, and the same port.
    init(_ udid: String, address: String, port: UInt16, in scratch: ScratchFolder) throws {
        self.udid = udid
        self.port = port
        var options = PhoneOptions()
        options.address = address
        self.options = options
        path = scratch.file("\(udid).sock")
        _ = try LoopbackServer(address: address, port: port, in: scratch) { connection in
            guard BlockingStream.send(Array(udid.utf8)[...], to: connection) else { return }
            var byte: UInt8 = 0
            while recv(connection, &byte, 1, 0) > 0 {}
        }
    }

    /// Opens a tunnel to the phone at a broker.
    func forward(at broker: RunningBroker) async throws {
        _ = try await broker.ask("forward", "--detach", "-d", udid, "unix:\(path):\(port)")
    }

    /// Opens a stream and reads the UDID. The stream stays open.
    func connect() async throws -> (stream: SocketStream, udid: String) {
        let stream = try await SocketStream.connect(to: .unix(path: path))
        return (stream, String(decoding: try await stream.receive(udid.utf8.count), as: UTF8.self))
    }

    /// Reads until the task is canceled.
    func run() async {
        while !Task.isCancelled {
            let stream = streams.add(1, ordering: .sequentiallyConsistent).newValue
            results.say((stream, (try? await connect().udid) ?? ""))
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Waits until a stream that was opened after the call brings the UDID of this phone.
    func waitForAnswer() async throws { try await waitForResult(udid) }

    /// Waits until a stream that was opened after the call fails.
    func waitForFailure() async throws { try await waitForResult("") }

    /// The UDIDs of other phones that streams brought.
    var wrongAnswers: [String] { results.soFar.map(\.udid).filter { $0 != udid && !$0.isEmpty } }

    private func waitForResult(_ wanted: String) async throws {
        // The last of these streams may be open still, and end with a result from before this call.
        let begun = streams.load(ordering: .sequentiallyConsistent)
        try await withDeadline(.seconds(60), { [self] in "\(udid): no result \"\(wanted)\"" }) { [self] in
            for await result in results.elements() where result.stream > begun && result.udid == wanted { return }
        }
    }
}
