import CLinux
import Glibc

/// One side of a stream of `Pattern`. Counts and checks every byte, and waits at most until its deadline.
///
/// Its calls block and need their own thread. The socket is neither opened nor closed here.
package struct PatternPeer: Sendable {
    package struct Sent: Sendable, Equatable {
        package var count = 0
        /// The longest wait for buffer space: about the length of a reader's stall.
        package var longestWait = Duration.zero

        package init() {}
    }

    package enum End: Sendable, Equatable {
        /// The stream is still open, or the deadline has passed.
        case open
        /// The other side has sent its end of stream.
        case closed
        case broken(CInt)
    }

    package struct Received: Sendable, Equatable {
        package var count = 0
        /// True if the received bytes are the pattern without a gap.
        package var isIntact = true
        package var end = End.open

        package init(count: Int = 0, isIntact: Bool = true, end: End = .open) {
            (self.count, self.isIntact, self.end) = (count, isIntact, end)
        }
    }

    /// A pause of the reader.
    package struct Stall: Sendable {
        /// The number of bytes before the pause.
        package let offset: Int
        /// The length of the pause.
        package let length: Duration

        package init(after offset: Int, for length: Duration) { (self.offset, self.length) = (offset, length) }
    }

    let socket: CInt
    let deadline: ContinuousClock.Instant

    package init(_ socket: CInt, deadline: ContinuousClock.Instant) {
        (self.socket, self.deadline) = (socket, deadline)
    }

    /// Sends a range of the pattern, or less if the other side closes or the deadline passes.
    package func send(_ range: Range<Int>) -> Sent {
        var sent = Sent()
        while sent.count < range.count {
            let start = range.lowerBound + sent.count
            var rest = Pattern.bytes(start..<min(start + 65536, range.upperBound))[...]
            while !rest.isEmpty {
                let taken = rest.withUnsafeBytes {
                    Glibc.send(socket, $0.baseAddress, $0.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
                }
                if taken > 0 {
                    sent.count += taken
                    rest = rest.dropFirst(taken)
                    continue
                }
                guard errno == EAGAIN || errno == EINTR else { return sent }
                let start = ContinuousClock.now
                guard wait(for: POLLOUT) else { return sent }
                sent.longestWait = max(sent.longestWait, .now - start)
            }
        }
        return sent
    }

    /// Receives up to `count` bytes, which must be the pattern from `offset` on. Stops early at the end of the stream
    /// or at the deadline.
    package func receive(_ count: Int = .max, from offset: Int = 0, stall: Stall? = nil) -> Received {
        var received = Received()
        var stall = stall
        var buffer = [UInt8](repeating: 0, count: 65536)
        while received.count < count {
            if let pause = stall, received.count >= pause.offset {
                stall = nil
                usleep(UInt32(pause.length / .microseconds(1)))
            }
            let got = recv(socket, &buffer, min(buffer.count, count - received.count), CInt(MSG_DONTWAIT))
            if got > 0 {
                // After the first gap no byte matches.
                received.isIntact =
                    received.isIntact && Pattern.matches(buffer[..<got], from: offset + received.count)
                received.count += got
            } else if got == 0 {
                received.end = .closed
                break
            } else if errno != EAGAIN, errno != EINTR {
                received.end = .broken(errno)
                break
            } else if !wait(for: POLLIN) {
                break
            }
        }
        return received
    }

    /// Half-closes the stream.
    package func finish() { shutdown(socket, CInt(SHUT_WR)) }

    private func wait(for events: CInt) -> Bool {
        var entry = pollfd(fd: socket, events: CShort(events), revents: 0)
        let left = (deadline - .now) / .milliseconds(1)
        return left > 0 && poll(&entry, 1, CInt(left.rounded(.up))) > 0
    }
}
