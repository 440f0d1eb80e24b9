import CLinux
import Glibc

extension PatternPeer {
    /// The results of both directions of one stream.
    package struct Exchanged: Sendable {
        package var sent = 0
        package var received = Received()
        /// The time of the first byte, or of the end of a stream without one.
        package var firstByteTime: ContinuousClock.Instant?
    }

    /// Sends the start of the pattern and, at the same time, receives and checks the other direction.
    ///
    /// - Parameters:
    ///   - sending: The number of bytes to send.
    ///   - expecting: Stops after this number of received bytes when everything is sent; nil to read to the end of the
    ///     stream.
    ///   - finishes: True to half-close after everything is sent.
    /// - Returns: The results so far if the stream ends or the deadline passes.
    package func exchange(sending: Int, expecting: Int? = nil, finishes: Bool = false) -> Exchanged {
        var exchanged = Exchanged()
        var buffer = [UInt8](repeating: 0, count: 65536)
        var canSend = sending > 0
        var refusal: CInt?
        if sending == 0, finishes { finish() }
        while exchanged.received.count < expecting ?? .max || canSend {
            let isReading = exchanged.received.count < expecting ?? .max
            let events = (isReading ? POLLIN : 0) | (canSend ? POLLOUT : 0)
            var entry = pollfd(fd: socket, events: CShort(events), revents: 0)
            let left = (deadline - .now) / .milliseconds(1)
            guard left > 0, poll(&entry, 1, CInt(left.rounded(.up))) >= 0 else { return exchanged }
            if entry.revents & ~CShort(POLLOUT) != 0 {
                let room = min(buffer.count, max(1, (expecting ?? .max) - exchanged.received.count))
                let got = recv(socket, &buffer, room, CInt(MSG_DONTWAIT))
                if got < 0, errno == EAGAIN { continue }
                if exchanged.firstByteTime == nil { exchanged.firstByteTime = .now }
                guard got > 0 else {
                    // The kernel reports a reset once, to the first call after it.
                    exchanged.received.end = got < 0 ? .broken(errno) : refusal.map { .broken($0) } ?? .closed
                    return exchanged
                }
                let isRight = Pattern.matches(buffer[..<got], from: exchanged.received.count)
                exchanged.received.isIntact = exchanged.received.isIntact && isRight
                exchanged.received.count += got
            } else if entry.revents & CShort(POLLOUT) != 0 {
                let bytes = Pattern.bytes(exchanged.sent..<min(exchanged.sent + 65536, sending))
                let taken = Glibc.send(socket, bytes, bytes.count, CInt(MSG_DONTWAIT | MSG_NOSIGNAL))
                exchanged.sent += max(taken, 0)
                if taken < 0, errno != EAGAIN { refusal = errno }
                // Data received before the other side closed can still be read.
                canSend = exchanged.sent < sending && refusal == nil
                if exchanged.sent == sending, finishes { finish() }
            }
        }
        return exchanged
    }
}
