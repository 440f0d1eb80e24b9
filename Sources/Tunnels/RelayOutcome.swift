import SystemIO

/// How a relayed connection ended, and how much it carried.
package struct RelayOutcome: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// Both sides said all they had to say, and it was delivered.
        case finished
        /// The client ended its side, and the device, which cannot be told so over usbmuxd, had nothing more to say.
        case drained
        /// The client's side failed with this errno; the target was reset.
        case brokenByClient(CInt)
        /// The target's side failed with this errno, or closed while the client's bytes waited; the client was reset.
        case brokenByTarget(CInt)
        /// The way to the target went while the stream was open: the phone was unplugged, or usbmuxd ended. The client was
        /// reset, after everything that had come.
        case severed
        /// The client's first request was refused: a web page may have sent it. The target got no byte.
        case refused(BrowserGuard.Refusal)
        /// We ended it: the tunnel was removed, or the broker stops.
        case cut
    }

    package let reason: Reason
    package let bytesUp: UInt64
    package let bytesDown: UInt64
}

extension RelayOutcome: CustomStringConvertible {
    package var description: String {
        let amount = "after \(bytesUp) bytes up and \(bytesDown) bytes down"
        return switch reason {
        case .finished: "finished \(amount)"
        case .drained: "finished \(amount), the device had no more to say"
        case .brokenByClient(let code): "the client broke off \(amount): \(SocketError.words(for: code))"
        case .brokenByTarget(let code): "the target broke off \(amount): \(SocketError.words(for: code))"
        case .severed: "the phone or usbmuxd went \(amount)"
        case .refused(let refusal): "\(refusal)"
        case .cut: "cut \(amount)"
        }
    }
}
