import Glibc
import SystemIO
import TestSupport

/// Serves one stream of an app on the calling thread and closes it.
///
/// Reads and writes are large and blocking, so that the app does not limit the forwarder.
struct AppStream: ~Copyable {
    let app: App
    let stream: BlockingStream

    init(_ app: App, over descriptor: consuming Descriptor) {
        self.app = app
        stream = BlockingStream(over: descriptor)
    }

    consuming func serve() {
        switch app {
        case .sink: while (try? take()) != nil {}
        case .source: while (try? give()) != nil {}
        case .echo: break  // Served by the phone's own thread.
        case .split: while (try? answer()) != nil {}
        }
    }

    private borrowing func take() throws {
        guard let request = TransferRequest(try stream.receive(TransferRequest.size)) else {
            throw TestSupportError("no request")
        }
        let isRight = try stream.take(request)
        try stream.send([isRight ? 1 : 0])
    }

    private borrowing func give() throws {
        guard let request = TransferRequest(try stream.receive(TransferRequest.size)) else {
            throw TestSupportError("no request")
        }
        try stream.give(request)
    }

    private borrowing func answer() throws {
        _ = try stream.receive(1)
        try stream.send([UInt8](repeating: 1, count: SplitReply.half))
        // Busy-waits, because a sleeping thread wakes 50 µs late (timer slack, prctl(2)).
        let second = ContinuousClock.now + SplitReply.gap
        while ContinuousClock.now < second {}
        try stream.send([UInt8](repeating: 2, count: SplitReply.half))
    }
}
