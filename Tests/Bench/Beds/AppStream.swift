import Glibc
import TestSupport
import SystemIO

/// Serves one stream of an app on the thread that calls it, and closes it.
///
/// Reads and writes are large and blocking: the app is not to be what limits a forwarder.
struct AppStream: ~Copyable {
    let app: App
    let stream: ByteStream

    init(_ app: App, over descriptor: consuming Descriptor) {
        self.app = app
        stream = ByteStream(over: descriptor)
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
        guard let order = Order(try stream.receive(Order.size)) else { throw RigError("no order") }
        let isRight = try stream.take(order)
        try stream.send([isRight ? 1 : 0])
    }

    private borrowing func give() throws {
        guard let order = Order(try stream.receive(Order.size)) else { throw RigError("no order") }
        try stream.give(order)
    }

    private borrowing func answer() throws {
        _ = try stream.receive(1)
        try stream.send([UInt8](repeating: 1, count: SplitReply.half))
        // Awake: a sleeping thread would come 50 us late (timer slack, prctl(2)).
        let second = ContinuousClock.now + SplitReply.gap
        while ContinuousClock.now < second {}
        try stream.send([UInt8](repeating: 2, count: SplitReply.half))
    }
}
