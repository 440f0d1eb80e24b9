import CLinux
import Glibc

/// An app that sends `count` bytes of `Pattern` and checks that its input is `Pattern`.
package final class PatternServer: Sendable {
    /// The data that one client sent.
    package struct Upload: Sendable, Equatable {
        package var count = 0
        package var isIntact = true

        package init(count: Int = 0, isIntact: Bool = true) { (self.count, self.isIntact) = (count, isIntact) }
    }

    /// Contains one element per ended connection.
    package let uploads = Replay<Upload>()
    private let server: LoopbackServer

    /// Sends `count` bytes to each client, then half-closes and continues to read.
    ///
    /// `pause` slows the app down, in microseconds.
    package init(
        sending count: Int,
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        pauseBetweenReads pause: UInt32 = 0,
        in scratch: ScratchFolder
    ) throws {
        let uploads = uploads
        server = try LoopbackServer(address: address, port: port, in: scratch) { connection in
            var upload = Upload()
            var sent = 0
            var isReading = true
            var buffer = [UInt8](repeating: 0, count: 65536)
            let receiving = CShort(POLLIN)
            if count == 0 { shutdown(connection, CInt(SHUT_WR)) }
            while isReading || sent < count {
                let events = (isReading ? receiving : 0) | (sent < count ? CShort(POLLOUT) : 0)
                var entry = pollfd(fd: connection, events: events, revents: 0)
                guard poll(&entry, 1, -1) > 0 else { continue }
                if isReading, entry.revents & ~CShort(POLLOUT) != 0 {
                    let got = recv(connection, &buffer, buffer.count, CInt(MSG_DONTWAIT))
                    if got < 0, errno == EAGAIN { continue }
                    upload.isIntact = upload.isIntact && Pattern.matches(buffer[..<max(got, 0)], from: upload.count)
                    upload.count += max(got, 0)
                    if got < 0 { break }
                    isReading = got > 0
                    if pause > 0 { usleep(pause) }
                }
                if sent < count, entry.revents & CShort(POLLOUT) != 0 {
                    let bytes = Pattern.bytes(sent..<min(sent + 65536, count))
                    let flags = CInt(MSG_DONTWAIT | MSG_NOSIGNAL)
                    let taken = send(connection, bytes, bytes.count, flags)
                    if taken < 0, errno != EAGAIN { break }
                    sent += max(taken, 0)
                    if sent == count { shutdown(connection, CInt(SHUT_WR)) }
                }
            }
            uploads.say(upload)
        }
    }

    package var port: UInt16 { server.port }
}
